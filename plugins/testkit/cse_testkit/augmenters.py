"""The suite of augmenters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cse_core.types import TokenBatch
from cse_testkit.part_suite import PartSuite


class AugmenterSuite(PartSuite):
    """What an augmenter promises, at whichever point it acts."""

    def promise_it_is_called(self) -> None:
        """The run has a view that it names, and calls it."""
        assert self.trial().calls("call"), f"nothing called it in {self.steps} steps"

    def promise_it_keeps_rows_and_their_order(self) -> None:
        """As many rows come out as went in, each in its place, with its owner and slot."""
        for call in self.trial().calls("call"):
            x, result = call.arguments[0], call.result
            if isinstance(x, TokenBatch):
                _check_tokens(x, result, len(self.trial().rig.assembly.online.tokenizer.hf))
            elif isinstance(x, Tensor):
                assert bool(result.isfinite().all()), "returned values that are not finite"
            else:
                _check_places([text.split() for text in x], [text.split() for text in result])

    def promise_a_row_does_not_depend_on_the_others(self) -> None:
        """At an embedding point a row comes out the same, whatever is in the other rows.

        With gradient caching other rows are beside it than without.
        """
        mixed = self.trial().rig.watch.mixed
        assert not mixed, f"{', '.join(mixed[:2])} came out otherwise when the other rows changed"

    def promise_gradients_pass_through_it(self) -> None:
        """What it returns at an embedding point still leads back to the encoder's weights."""
        for call in self.trial().calls("call"):
            x = call.arguments[0]
            if isinstance(x, Tensor) and x.requires_grad:
                assert call.result.requires_grad, "cuts the gradient of what it changes"


def _check_places(before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> None:
    """Check that most rows are more like what they were than like another row.

    Likeness is the share of common words (or tokens) among all of both.
    """
    moved = []
    for row, words in enumerate(after):
        like = [_likeness(words, other) for other in before]
        nearest = max(range(len(like)), key=like.__getitem__)
        if like[nearest] > like[row] + 0.2:
            moved.append(f"row {row} is what row {nearest} was")
    assert 2 * len(moved) <= len(after), f"moves rows: {', '.join(moved[:2])}"


def _likeness(one: Sequence[Any], other: Sequence[Any]) -> float:
    together = set(one) | set(other)
    return len(set(one) & set(other)) / len(together) if together else 1.0


def _check_tokens(x: TokenBatch, result: TokenBatch, vocabulary: int) -> None:
    assert torch.equal(result.slot, x.slot), "changes the slots of its rows"
    assert result.offsets.device.type == "cpu", "moved the offsets from the CPU"
    total = int(result.offsets[-1])
    for name in ("ids", "positions", "source", "word", "special"):
        length = len(getattr(result, name))
        assert length == total, f"{name} has {length} entries for {total} tokens"
    assert bool((result.lengths >= 0).all()), "a row has less than no tokens"
    inside = (result.ids >= 0) & (result.ids < vocabulary)
    assert bool(inside.all()), "returned ids that are not in the vocabulary"
    rows = [(_rows(x, row), _rows(result, row)) for row in range(x.rows)]
    swapped = []
    for row, (before, after) in enumerate(rows):
        assert sorted(after["positions"]) == list(range(len(after["ids"]))), (
            f"the positions of row {row} are not 0 to {len(after['ids']) - 1} in some order"
        )
        assert _special(before) == _special(after), (
            f"changes the special or prompt tokens of row {row}"
        )
        foreign = set(after["source"]) - set(before["source"]) - {-1}
        assert not foreign, f"row {row} has tokens of another row (source {sorted(foreign)})"
        words = _pairs(after, "word") - _pairs(before, "word")
        new = sorted(pair for pair in words if pair[0] >= 0)
        assert not new, f"row {row}: (source, word) {new[:3]} are not those it had"
        if _pairs(after, "ids") - _pairs(before, "ids"):
            swapped.append(Counter(after["ids"]) == Counter(before["ids"]))
    assert not (swapped and all(swapped)), (
        "puts the ids of a row in another order and leaves source and word where they were: "
        "move whole tokens by take_tokens, or permute positions"
    )
    _check_places([before["ids"] for before, _ in rows], [after["ids"] for _, after in rows])


def _rows(tokens: TokenBatch, row: int) -> dict[str, list[Any]]:
    """Return the fields of the tokens of a row."""
    place = slice(int(tokens.offsets[row]), int(tokens.offsets[row + 1]))
    names = ("ids", "positions", "source", "word", "special")
    return {name: getattr(tokens, name)[place].tolist() for name in names}


def _special(row: dict[str, list[Any]]) -> list[int]:
    return [token for token, special in zip(row["ids"], row["special"], strict=True) if special]


def _pairs(row: dict[str, list[Any]], name: str) -> set[tuple[int, int]]:
    return set(zip(row["source"], row[name], strict=True))
