"""What the queue shows in every step, against a slow loop version."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.functional import unit
from cse_core.types import Batch, Negatives, StepContext
from tests.fixtures.equations import equation

SIZE, FIRST_FILL = 10, 3


@dataclass
class SlowQueue:
    """The rules of docs/methods/mocose.md: keys are lists of row, age and vector, newest first."""

    official: bool = False
    oldest: bool = False
    first_fill: int = FIRST_FILL
    keys: list[list[Any]] = field(default_factory=list)
    count: int = -1

    @property
    def capacity(self) -> int:
        return 2 * SIZE if self.oldest else SIZE

    @property
    def drawn(self) -> int:
        return self.capacity if self.official else self.first_fill

    def begin(self, random: Tensor) -> None:
        self.keys, self.count = [[-1, 0, vector] for vector in random], self.first_fill

    def seen(self) -> list[list[Any]]:
        keys = self.keys
        if self.official and self.count + self.first_fill < self.capacity:
            keys = keys[: self.count + self.first_fill]
        return keys[-SIZE:] if self.oldest else keys

    def put(self, rows: list[int], vectors: Tensor) -> None:
        replaced = self.official and not self.count  # the code's first keys, which are not cut
        self.keys = [[row, 0, v] for row, v in zip(rows, vectors, strict=True)] + self.keys
        if replaced:
            self.keys = self.keys[: len(rows)]
        for key in self.keys:
            key[1] += 1
        self.count += len(rows)
        if not replaced and (not self.official or self.count > self.capacity):
            while len(self.keys) > self.capacity:
                self.keys.pop()


@equation("MoCoSE", "the queue of K keys that begins with K_start", "negatives queue", within=0)
def test_what_losses_see_beside_lists() -> Iterator[tuple[Any, Any]]:
    """Ages, rows, vectors, order and count, for batches below and beyond the queue's size."""
    sizes = ([4, 4, 4, 4, 4, 4, 2, 4, 4], [5, 5, 5, 5, 5, 1, 5], [12, 3, 1, 12, 4])
    updates, growths = ("normal", "oldest"), ("paper", "official")
    for batches, update, growth, first in product(sizes, updates, growths, (FIRST_FILL, 0)):
        options = {"size": SIZE, "first_fill": first, "update": update, "growth": growth}
        store = make_part("negatives", "queue", **options)
        slow = SlowQueue(growth == "official", update == "oldest", first)
        for number, size in enumerate(batches):
            rows = [7 + 20 * number + 3 * place for place in range(size)]
            batch = make_batch(sentences=size, rows=rows, seed=number)
            ctx = make_context(batch, step=number)
            if not number:
                slow.begin(first_fill(ctx, slow.drawn, 8))
            found, wanted = store.candidates(batch, ctx), slow.seen()
            assert (found is None) == (not wanted), (batches, options, number)
            if found is not None:
                yield found.row.tolist(), [key[0] for key in wanted]
                yield found.age.tolist(), [key[1] for key in wanted]
                yield found.vectors, torch.stack([key[2] for key in wanted])
                assert not found.mask.any()
            store.after_step(batch, ctx)
            slow.put(rows, batch.views["positive"]["sentence"].vectors)
        assert sum(batches) >= 3 * SIZE


def first_fill(ctx: StepContext, count: int, size: int) -> Tensor:
    """Return the random rows: normal numbers of the first step's draws, made unit."""
    dtype = torch.float64 if size == 8 else torch.float32
    draws = ctx.generator("queue.first-fill")
    return unit(torch.zeros(count, size, dtype=dtype).normal_(generator=draws))


@pytest.mark.parametrize(("branch", "chunk"), [("target", "2"), ("ema", "none")])
def test_latest_keys_are_encoded_again(branch: str, chunk: str) -> None:
    """Each key is the vector of its text by the branch as it is, in the order of ``normal``.

    Compared without dropout; the first batch has more rows than the queue holds, the third fewer.
    """
    corpus = tiny_corpus(26)
    texts = corpus.column("text")
    sets = [
        f"negatives.queue.size={SIZE}", f"negatives.queue.first_fill={FIRST_FILL}",
        "model.dropout=0", "negatives.queue.update=latest", f"train.chunk_size={chunk}",
        "train.batch_size=12",
    ]  # fmt: skip
    if branch == "target":
        sets += ["pool.projector.dropout=0", "pool.predictor.dropout=0", "aug.fgsm.epsilon=1e-30"]
    made = compose(
        recipe="mocose" if branch == "target" else None,
        kinds=None if branch == "target" else {"negatives": ["queue"]},
        sets=sets,
        corpus=corpus,
    )
    view = made.view("queued")
    assert view is not None and (view.branch, view.role) == (branch, "aux")
    passes = [each for each in made.passes if "queued" in each.views]
    assert passes and all(each.branch == branch and not each.gradient for each in passes)

    rig, slow = Rig(made), SlowQueue()
    store: Any = rig.session.parts["negatives.queue"]
    plain = store.candidates
    calls: list[tuple[Negatives, Batch, StepContext]] = []

    def candidates(batch: Batch, ctx: StepContext) -> Negatives | None:
        found = plain(batch, ctx)
        calls.append((found, batch, ctx))
        return found

    store.candidates = candidates
    sentence_encoder = rig.session._loop.assembly.encoders[branch]
    for number, size in enumerate([12, 4, 1, 5, 4]):
        current = []
        for text in texts:
            # The shared poolers and heads see one text at a time, in training mode without dropout.
            tokens = sentence_encoder.rows(sentence_encoder.tokenizer.content([text], 32), "anchor")
            with torch.no_grad():
                levels = sentence_encoder.embed(tokens, torch.device("cpu"), 1)
                current.append(levels["sentence"].vectors[0])
        rig.step(1, rows=size)
        found, batch, ctx = calls[-1]
        if number == 0:
            slow.begin(first_fill(ctx, slow.drawn, 32))
        wanted = slow.seen()
        assert found.row.tolist() == [key[0] for key in wanted], number
        assert found.age.tolist() == [key[1] for key in wanted], number
        for vector, (row, _, random) in zip(found.vectors, wanted, strict=True):
            fresh = random if row == -1 else current[row]
            assert torch.allclose(vector, fresh, atol=1e-5), (number, row)
        slow.put(batch.rows.tolist(), batch.anchors)


def test_the_first_fill_is_never_more_than_the_size() -> None:
    with pytest.raises(ValueError, match="first_fill 9 is more than the 4 keys"):
        make_part("negatives", "queue", size=4, first_fill=9)
    batch = make_batch(sentences=2)
    store = make_part("negatives", "queue", size=4)
    assert len(store.candidates(batch, make_context(batch))) == 4
