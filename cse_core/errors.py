"""The one kind of error a user sees without a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

MAX_LINE_CHARACTERS = 560
"""Letters that a message has, more or less, so that a hint does not hide what is wrong."""
MAX_ERRORS_SHOWN = 20
"""Mistakes that are shown of many."""


def truncate(text: str, longest: int) -> str:
    """Return a text, or its ends where it is longer, with its length."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]} … {text[-longest // 6 :]} ({len(text):,} characters)"


def truncate_repr(value: object, longest: int = 150) -> str:
    """Return a value as messages show it, whatever its size and depth."""
    try:
        return truncate(repr(value), longest)
    except (ValueError, RecursionError):  # more digits or brackets than Python prints
        return f"{type(value).__name__} too long to show"


def visible(text: str) -> str:
    """Return a text in one line, with an escape in place of each character that cannot be seen."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def describe(error: BaseException) -> str:
    """Return an exception's type and text as one line, even if its text fails."""
    try:
        return " ".join(f"{type(error).__name__}: {error}".split())
    except Exception:
        return type(error).__name__


class CseError(Exception):
    """Report a user's mistake in one line: what, where, the value, what to do next.

    The command line prints it and exits with code 2; every other exception is a bug and keeps its
    traceback.

    Args:
        what: What is wrong: a clause that starts in lower case.
        where: The option path (``negatives.queue.size``) or file concerned.
        value: The offending value.
        hint: What to type or do next.
    """

    def __init__(
        self, what: str, *, where: str | None = None, value: object = None, hint: str | None = None
    ) -> None:
        self.what = what
        self.where = where
        self.value = value
        self.hint = hint
        super().__init__(self.line())

    def line(self) -> str:
        """Return the error as one line; what is too long for one is cut and its length given."""
        text = f"{truncate(self.where, 200)}: " if self.where else ""
        text += truncate(self.what, 400)
        if self.value is not None:
            text += f" (got {truncate_repr(self.value)})"
        if self.hint:
            text += f"; {truncate(self.hint, max(200, MAX_LINE_CHARACTERS - len(text)))}"
        return " ".join(text.split())

    def _render_traceback_(self) -> list[str]:
        """Return the line that a notebook shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class CseErrors(CseError):
    """Several mistakes found together, so that a user can fix them all at once."""

    def __init__(self, errors: Sequence[CseError]) -> None:
        self.errors = tuple(errors)
        first = errors[0]
        super().__init__(first.what, where=first.where, value=first.value, hint=first.hint)

    def line(self) -> str:
        """Return one line for each of the first mistakes."""
        lines = [error.line() for error in self.errors[:MAX_ERRORS_SHOWN]]
        if len(self.errors) > MAX_ERRORS_SHOWN:
            lines.append(f"and {len(self.errors) - MAX_ERRORS_SHOWN:,} more mistakes")
        return "\n".join(lines)


class ElsewhereError(CseError):
    """Report in one process that another one of the same run failed, which says why itself."""


class PartError(RuntimeError):
    """A part did not keep a promise of its contract: a bug of its plugin, named.

    Args:
        part: The part: it has a path and an owner.
        method: The method that was called.
        what: What was promised and what came.
    """

    def __init__(self, part: Any, method: str, what: str) -> None:
        self.part, self.method = part, method
        super().__init__(f"{part.path} of {part.owner}: {method} {what}")


def raise_all(errors: Sequence[CseError]) -> None:
    """Raise the collected errors, if there are any."""
    if errors:
        raise CseErrors(errors) if len(errors) > 1 else errors[0]


@contextmanager
def collect_errors(errors: list[CseError] | list[CseError | str]) -> Iterator[None]:
    """Add the mistakes that a block raises to a list, and go on behind it."""
    try:
        yield
    except CseError as error:
        errors.extend(error.errors if isinstance(error, CseErrors) else [error])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: close matches, or what there is."""
    names = sorted(set(known))
    swapped = [text for text in (name.replace("_", "-"), name.replace("-", "_")) if text in names]
    begin = [text for text in names if text.startswith(name)] if len(name) > 1 else []
    close = swapped[:1] or get_close_matches(name, names, n=2, cutoff=0.6) or begin[:2]
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "known: " + ", ".join(names) if names else "there are none"
