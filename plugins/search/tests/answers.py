"""Answers to compare: a query may be encoded in another way than by a loaded model."""

from typing import Any


def shortened(answer: Any) -> Any:
    """Round all numbers of an answer to four places."""
    if isinstance(answer, dict):
        return {key: shortened(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [shortened(value) for value in answer]
    return round(answer, 4) if isinstance(answer, float) else answer
