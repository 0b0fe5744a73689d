"""What a command answered, and what that counts as."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LONGEST_LINE = 600
"""Letters that a line of error may have: more is a page."""


class Outcome(StrEnum):
    """What became of a case."""

    CLEAR = "clear"
    """Refused as it should be: exit code 2, and lines of error that name what is wrong."""
    ACCEPTED = "accepted"
    """Done as it should be, with the words that the case asks for."""
    TRACEBACK = "traceback"
    """A traceback, or the end of the process by a signal."""
    HUNG = "hung"
    """No end within the time of the case."""
    SILENT = "silent"
    """Anything else: accepted where it should be refused, or refused without the words."""


GOOD = (Outcome.CLEAR, Outcome.ACCEPTED)


@dataclass(frozen=True)
class Answer:
    """How a command ended.

    Attributes:
        code: The exit code; minus the number of the signal that ended the process.
        hung: The time of the case was over, and the process was killed.
    """

    code: int
    out: str
    err: str
    hung: bool
    seconds: float


def classify(answer: Answer, expect: Outcome, says: Sequence[str] = (), code: int = 2) -> Outcome:
    """Return what an answer counts as where ``expect`` is what it should be.

    Args:
        says: Words that must be in the output: of a refusal in its lines of error, else anywhere.
        code: The exit code of a refusal.
    """
    if answer.hung:
        return Outcome.HUNG
    everything = answer.out + answer.err
    if "Traceback (most recent call last)" in everything or answer.code < 0:
        return Outcome.TRACEBACK
    if expect is Outcome.CLEAR:
        lines = [line for line in answer.err.splitlines() if line.startswith("error: ")]
        short = all(len(line) <= LONGEST_LINE for line in lines)
        named = all(any(word in line for line in lines) for word in says)
        clear = answer.code == code and lines and short and named
        return Outcome.CLEAR if clear else Outcome.SILENT
    accepted = answer.code == 0 and all(word in everything for word in says)
    return Outcome.ACCEPTED if accepted else Outcome.SILENT
