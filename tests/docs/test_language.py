"""Plain English: phrases that read as translated stay out of code, messages and pages.

A message says what is wrong, where, with which value, and what to type next, in the words of the
field: ``must be at least 1 (got 0)``, ``expected one text per line, but stdin is empty``.
"""

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT

PHRASES = {
    "is no": "is not a, has no, or no",
    "anew": "again",
    "alike": "similar, the same",
    "wished": "wanted, target",
    "is due": "is expected, must be",
    "are due": "are expected, must be",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "reckon": "count, compute",
    "reckons": "counts, computes",
    "reckoned": "counted, computed",
    "told": "printed, reported, said",
    "who feeds whom": "data flow",
    "passes of a step": "encoder passes per step",
    "a whole number": "an integer",
    "whole numbers": "integers",
}
"""Phrases, each with what to write."""
ALLOWED = {
    # Language data: words and sentences that parts read or make, or that their tests give them.
}
"""What a file or a folder may hold all the same."""
_FOUND = re.compile(rf"\b({'|'.join(map(re.escape, PHRASES))})\b", re.IGNORECASE)


def phrases(text: str) -> Iterator[tuple[int, str]]:
    """Yield each phrase with the number of the line where it begins, across line breaks."""
    joined = re.sub(r"\s", " ", text)  # of the same length, so that places stay
    for match in _FOUND.finditer(joined):
        yield text.count("\n", 0, match.start()) + 1, match[1].lower()


def test_translated_phrases_stay_out() -> None:
    words = ["git", "ls-files", "*.py", "*.md", "*.toml"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout: what is tracked is not known")
    found, needed = [], {start: set[str]() for start in ALLOWED}
    for name in done.stdout.splitlines():
        path = ROOT / name
        if not path.is_file() or path.samefile(__file__):
            continue
        for line, phrase in phrases(path.read_text(encoding="utf-8")):
            start = next((start for start in ALLOWED if name.startswith(start)), "")
            if start and phrase in ALLOWED[start]:
                needed[start].add(phrase)
            else:
                found.append(f"{name}:{line}: '{phrase}': write {PHRASES[phrase]}")
    assert not found, "\n".join(found)
    assert needed == ALLOWED, "what is allowed and no longer there"
    text = "It is not it. This is\nno good: told, untold, Anew."
    assert list(phrases(text)) == [(1, "is no"), (2, "told"), (2, "anew")]
