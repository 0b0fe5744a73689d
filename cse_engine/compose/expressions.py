"""Numbers written as expressions over parameters: ``"1 - alpha"``, ``"linear(0, 2*beta)"``."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

from cse_core.errors import CseError, did_you_mean
from cse_core.schedule import CURVES, Curve

_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
CALL = re.compile(r"\s*([a-z][\w/-]*)\s*\(")
"""The beginning of a schedule."""
_SCHEDULE = re.compile(rf"{CALL.pattern}(.*)\)\s*", re.DOTALL)
NAMES = re.compile(r"\b[^\W\d]\w*")
"""A name in an expression."""
_MAX_CHARACTERS = 200


def evaluate(text: str, params: Mapping[str, float], *, where: str | None = None) -> float:
    """Evaluate an expression of numbers, parameters, + - * / and parentheses; it must be finite."""
    try:
        if len(text) > _MAX_CHARACTERS:
            raise SyntaxError
        tree = ast.parse(text.strip(), mode="eval")
        value = _node_value(tree.body, params, where)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        what = "is neither a number nor an expression of parameters"
        hint = "write a number, or + - * / ( ) over names of [params]"
        raise CseError(what, where=where, value=text, hint=hint) from None
    except (ZeroDivisionError, OverflowError):
        raise CseError("divides by zero or overflows", where=where, value=text) from None
    if not math.isfinite(value):
        raise CseError("is not a finite number", where=where, value=text)
    return value


def evaluate_number(
    text: str,
    params: Mapping[str, float],
    curves: Mapping[str, Curve] = CURVES,
    *,
    where: str | None = None,
) -> float | str:
    """Evaluate an expression, or the bounds of a schedule, whose text is returned."""
    match = _SCHEDULE.fullmatch(text)
    if match is None or match[1] not in curves:
        return evaluate(text, params, where=where)
    bounds = match[2].split(",")
    if len(bounds) != 2:
        hint = f"write {match[1]}(from,to)"
        raise CseError("expects two numbers", where=where, value=text, hint=hint)
    start, end = (evaluate(bound, params, where=where) for bound in bounds)
    return f"{match[1]}({start!r},{end!r})"


def _node_value(node: ast.expr, params: Mapping[str, float], where: str | None) -> float:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return node.value
    elif isinstance(node, ast.Name):
        if node.id in params:
            return params[node.id]
        hint = did_you_mean(node.id, params) if params else "no parameters are set; write a number"
        raise CseError("unknown parameter", where=where, value=node.id, hint=hint)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _node_value(node.left, params, where), _node_value(node.right, params, where)
        return _OPERATIONS[type(node.op)](left, right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _node_value(node.operand, params, where)
        return -value if isinstance(node.op, ast.USub) else value
    raise SyntaxError
