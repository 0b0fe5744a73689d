"""The description of an option, from its docstring.

Docstrings are read when help asks for them: reading the source of every model took a tenth of the
time of a listing.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache

from cse_core.options import Options


def describe(model: type[Options], name: str) -> str:
    """Describe an option; a model that only changes a default inherits the words.

    Args:
        model: The options.
        name: Name of a field.

    Returns:
        The field's ``description``, or the text that stands below it in the source; nothing where
        there is neither, or no source.
    """
    for base in model.__mro__:
        if issubclass(base, Options) and name in base.__annotations__:
            words = base.model_fields[name].description or _texts_below(base).get(name, "")
            if words:
                return " ".join(words.split())
    return ""


@cache
def _texts_below(model: type[Options]) -> dict[str, str]:
    """Return the texts below a model's own fields, by field."""
    try:
        (made,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except (OSError, TypeError, SyntaxError):
        return {}
    if not isinstance(made, ast.ClassDef):
        return {}
    return {
        above.target.id: below.value.value
        for above, below in zip(made.body, made.body[1:], strict=False)
        if isinstance(above, ast.AnnAssign)
        and isinstance(above.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
