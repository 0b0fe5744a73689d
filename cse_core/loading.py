"""Import what a record names: a class, or a file of package data."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from cse_core.errors import CseError

Record = TypeVar("Record")
_SECONDS = 5.0
"""How long the hub may take to answer."""


def load_factory(factory: str, *, where: str | None = None) -> Any:
    """Import the ``"package.module:Class"`` that a record names; ``where`` is for errors.

    An exception other than ``ImportError`` while the module is imported is a bug of its author and
    passes with its traceback.

    Raises:
        CseError: If the text is malformed, a module is missing, or the module has no such name.
    """
    module_name, separator, name = factory.partition(":")
    if not separator or not module_name or not name.isidentifier():
        raise CseError("a factory is written package.module:Class", where=where, value=factory)
    try:
        module = import_module(module_name)
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        is_itself = missing is not None and (module_name + ".").startswith(missing + ".")
        hint = "reinstall its plugin"
        if missing and not is_itself:
            hint += f", or install what has the module {missing.split('.')[0]}"
        raise CseError(f"{factory} cannot be imported: {error}", where=where, hint=hint) from error
    except SystemExit as error:
        raise RuntimeError(f"{factory} calls sys.exit({error.code!r}) on import") from error
    try:
        return getattr(module, name)
    except AttributeError:
        hint = "correct the name in the plugin's record, or reinstall the plugin"
        raise CseError(f"module {module_name} has no {name}", where=where, hint=hint) from None


def package_path(path: str, *, where: str | None = None) -> Path:
    """Return ``"package:folder/file"`` of package data, without importing a top-level package.

    Raises:
        CseError: If the text is malformed, the package is not installed, or has no such file.
    """
    package, separator, relative = path.partition(":")
    steps = relative.split("/")
    if not separator or not package or not relative or ".." in steps or not steps[0]:
        raise CseError("package data is written package:folder/file", where=where, value=path)
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        candidate = Path(folder, *steps)
        if candidate.exists():
            return candidate
    what = f"package {package} has no {relative}" if folders else f"no package {package}"
    raise CseError(what, where=where, value=path, hint="reinstall its plugin")


def records_of_files(
    record: Callable[..., Record], folder: str, *names: str, prefix: str = "", **fields: Any
) -> list[Record]:
    """Return a record for each TOML file of a folder in package data, or of some names.

    A record is called ``prefix`` and the file's name, and has the fields; its summary is what the
    file begins with after comments, ``summary = "..."``.

    Raises:
        CseError: If the folder or a file is missing, or a file begins otherwise.
    """
    records, named = [], [package_path(f"{folder}/{name}.toml") for name in names]
    for path in named or sorted(package_path(folder).glob("*.toml")):
        with path.open(encoding="utf-8") as file:
            first = next((line for line in file if not line.startswith("#")), "")
        try:
            summary = json.loads(first.partition("summary = ")[2])
        except ValueError:
            hint = 'begin it with summary = "..."'
            raise CseError("does not say what it is", where=str(path), hint=hint) from None
        about = {"name": f"{prefix}{path.stem}", "path": f"{folder}/{path.name}"}
        records.append(record(**about, summary=summary, **fields))
    return records


def is_hub_reachable() -> bool:
    """Check whether the Hugging Face hub answers, with a shorter timeout than its client's."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=_SECONDS)
    except Exception:  # a network has many ways to fail, and may be switched off
        return False
    return True
