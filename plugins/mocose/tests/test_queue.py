"""What the queue shows in every step, against a slow loop version."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from cse_mocose.options import QueueOptions
from cse_mocose.queue import Queue
from cse_testkit import (
    Rig,
    compose,
    make_batch,
    make_context,
    make_part,
    make_setup,
    run_steps,
    tiny_corpus,
)
from torch import Tensor

from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.functional import unit
from cse_core.types import Batch, Negatives, StepContext

CORPUS = tiny_corpus(26)
SIZE, FIRST_FILL = 10, 3


@dataclass
class SlowQueue:
    """The rules of docs/methods/mocose.md: keys are lists of row, age and vector, newest first."""

    official: bool = False
    oldest: bool = False
    keys: list[list[Any]] = field(default_factory=list)
    count: int = FIRST_FILL

    @property
    def capacity(self) -> int:
        return 2 * SIZE if self.oldest else SIZE

    @property
    def drawn(self) -> int:
        return self.capacity if self.official else FIRST_FILL

    def begin(self, random: Tensor) -> None:
        self.keys = [[-1, 0, vector] for vector in random]

    def seen(self) -> list[list[Any]]:
        keys = self.keys
        if self.official and self.count + FIRST_FILL < self.capacity:
            keys = keys[: self.count + FIRST_FILL]
        return keys[-SIZE:] if self.oldest else keys

    def put(self, rows: list[int], vectors: Tensor) -> None:
        self.keys = [[row, 0, v] for row, v in zip(rows, vectors, strict=True)] + self.keys
        for key in self.keys:
            key[1] += 1
        self.count += len(rows)
        if not self.official or self.count > self.capacity:
            while len(self.keys) > self.capacity:
                self.keys.pop()


class Watched:
    """A run over a tiny encoder that notes what its queue gave, and what each step put in.

    Attributes:
        given: Candidates of each step.
        put: Corpus rows and vectors that each step put in.
        first: Context of the first step.
    """

    def __init__(self, corpus: Corpus, *sets: str, recipe: str | None = "mocose") -> None:
        sizes = [f"negatives.queue.size={SIZE}", f"negatives.queue.first_fill={FIRST_FILL}"]
        self.composition = compose(
            recipe=recipe,
            kinds=None if recipe else {"negatives": ["queue"]},
            sets=[*sizes, *sets],
            corpus=corpus,
        )
        self.rig = Rig(self.composition, corpus, total_steps=20)
        self.store: Any = self.rig.assembly.parts["negatives.queue"]
        self.given: list[Negatives | None] = []
        self.put: list[tuple[list[int], Tensor]] = []
        self.first: StepContext | None = None
        self._candidates, self._after_step = self.store.candidates, self.store.after_step
        self.store.candidates, self.store.after_step = self.candidates, self.after_step

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        self.first = self.first or ctx
        self.found: Negatives | None = self._candidates(batch, ctx)
        return self.found

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        options = self.store.options
        keys = ctx.vectors(options.view, options.branch)[options.level]
        self.given.append(self.found)
        self.put.append((batch.rows[keys.owner].tolist(), keys.vectors.clone()))
        self._after_step(batch, ctx)

    def random(self, count: int) -> Tensor:
        """Return the first fill: normal numbers of the first step's draws, made unit."""
        assert self.first is not None
        size = self.put[0][1].shape[1]
        draws = self.first.generator("queue.first-fill")
        return unit(torch.zeros(count, size).normal_(generator=draws))


@pytest.mark.parametrize("recipe", ["mocose", None])
@pytest.mark.parametrize("growth", ["paper", "official"])
@pytest.mark.parametrize("update", ["normal", "oldest"])
@pytest.mark.parametrize("batches", [[4] * 9, [5] * 7, [12, 3, 1, 12, 4]], ids=str)
def test_three_queue_lengths(
    batches: list[int], update: str, growth: str, recipe: str | None
) -> None:
    """Ages, rows, vectors, order and count of what losses saw.

    The corpus has 26 rows, so batches of 4 and 5 end an epoch with a shorter one; 12 is beyond the
    queue's size.
    """
    run = Watched(
        CORPUS,
        f"negatives.queue.growth={growth}",
        f"negatives.queue.update={update}",
        recipe=recipe,
    )
    for size in batches:
        run.rig.step(1, rows=size)
    slow = SlowQueue(official=growth == "official", oldest=update == "oldest")
    slow.begin(run.random(slow.drawn))
    assert sum(len(rows) for rows, _ in run.put) >= 3 * SIZE
    for number, (found, (rows, vectors)) in enumerate(zip(run.given, run.put, strict=True)):
        wanted = slow.seen()
        assert found is not None
        assert found.row.tolist() == [key[0] for key in wanted], number
        assert found.age.tolist() == [key[1] for key in wanted], number
        assert torch.equal(found.vectors, torch.stack([key[2] for key in wanted])), number
        slow.put(rows, vectors)


@pytest.mark.parametrize("update", ["normal", "oldest"])
@pytest.mark.parametrize("batches", [[2] * 8, [3, 2, 3, 2, 3], [11, 2, 3]], ids=str)
def test_the_official_queue_without_a_first_fill_has_keys_alone(
    batches: list[int], update: str
) -> None:
    """The code's first keys replace the tensor, uncut; later ones go in front of them."""
    store = make_part(
        "negatives", "queue", dimension=1, size=8, first_fill=0, growth="official", update=update
    )
    capacity, held, count, first = (16 if update == "oldest" else 8), [], 0, 1
    shown = []
    for number, size in enumerate(batches):
        keys = torch.arange(first, first + size)
        batch = make_batch(dict.fromkeys(("anchor", "positive"), keys.double().unsqueeze(1)))
        ctx = make_context(batch, step=number)
        found = store.candidates(batch, ctx)
        seen = held[:count] if count < capacity else held
        wanted = seen[-8:] if update == "oldest" else seen
        assert ([] if found is None else found.vectors.squeeze(1).tolist()) == wanted, number
        shown.append((len(wanted), 0))
        store.after_step(batch, ctx)
        held = [*keys.tolist(), *held] if count else keys.tolist()
        if count and count + size > capacity:
            held = held[:capacity]
        count, first = count + size, first + size
    if len({*batches}) == 1:
        trace = store.growth.trace(batches[0])
        assert trace[: len(shown)] == shown[: len(trace)]


@pytest.mark.parametrize("chunk", ["none", "2"])
@pytest.mark.parametrize("branch", ["target", "ema"])
def test_latest_keys_are_encoded_again(branch: str, chunk: str) -> None:
    """Each key is the vector of its text by the branch as it is, in the order of ``normal``.

    Compared without dropout; the first batch has more rows than the queue holds, the third fewer.
    """
    sets = [
        "model.dropout=0",
        "negatives.queue.update=latest",
        f"train.chunk_size={chunk}",
        "train.batch_size=12",
    ]
    if branch == "target":
        heads = ["pool.projector.dropout=0", "pool.predictor.dropout=0", "aug.fgsm.epsilon=1e-30"]
        run = Watched(CORPUS, *sets, *heads)
    else:
        run = Watched(CORPUS, *sets, recipe=None)
    slow = SlowQueue()
    sentence_encoder = run.rig.assembly.encoders[branch]
    texts = CORPUS.column("text")
    for number, size in enumerate([12, 4, 1, 5, 4]):
        current = {}
        for row in range(len(texts)):
            # The shared poolers and heads see one text at a time, in training mode without dropout.
            tokens = sentence_encoder.rows(
                sentence_encoder.tokenizer.content([texts[row]], 32), "anchor"
            )
            with torch.no_grad():
                levels = sentence_encoder.embed(tokens, torch.device("cpu"), 1)
                current[row] = levels["sentence"].vectors[0]
        run.rig.step(1, rows=size)
        if number == 0:
            slow.begin(run.random(slow.drawn))
        found = run.given[-1]
        wanted = slow.seen()
        assert found is not None
        assert found.row.tolist() == [key[0] for key in wanted], number
        assert found.age.tolist() == [key[1] for key in wanted], number
        for vector, (row, _, random) in zip(found.vectors, wanted, strict=True):
            fresh = random if row == -1 else current[row]
            assert torch.allclose(vector, fresh, atol=1e-5), (number, row)
        slow.put(*run.put[-1])


def test_latest_is_encoded_by_the_queues_branch_without_gradient() -> None:
    run = Watched(CORPUS, "negatives.queue.update=latest")
    view = run.composition.view("queued")
    assert view is not None and (view.branch, view.role) == ("target", "aux")
    passes = [each for each in run.composition.passes if "queued" in each.views]
    assert passes and all(each.branch == "target" and not each.gradient for each in passes)


def test_the_first_fill_is_of_length_one_and_no_corpus_row() -> None:
    batch = make_batch(sentences=2)
    with pytest.raises(ValueError, match="first_fill 9 is more than the 4 keys"):
        make_part("negatives", "queue", size=4, first_fill=9)
    store = make_part("negatives", "queue", size=4)
    found = store.candidates(batch, make_context(batch))
    assert len(found) == 4, "never more than the size"
    assert torch.allclose(found.vectors.norm(dim=1), torch.ones(4, dtype=torch.float64))
    assert found.row.tolist() == [-1] * 4 and not found.age.any() and not found.mask.any()
    assert make_part("negatives", "queue", first_fill=0).candidates(batch, make_context()) is None


def test_keys_are_kept_as_they_are_and_follow_the_corpus_row() -> None:
    batch = make_batch(sentences=3, rows=[7, 2, 5])
    store = make_part("negatives", "queue", size=3, first_fill=0)
    store.after_step(batch, make_context(batch))
    found = store.candidates(make_batch(sentences=2), make_context(step=1))
    assert torch.equal(found.vectors, batch.views["positive"]["sentence"].vectors)
    assert found.row.tolist() == [7, 2, 5] and found.age.tolist() == [1, 1, 1]


def test_the_same_sentence_in_the_queue_is_no_negative_unless_it_is_kept() -> None:
    """Rows 3 and 4 of the corpus have one text; with 24 rows and a queue of 48 all are there."""
    sets = ["negatives.queue.size=48", "negatives.queue.first_fill=1", "train.batch_size=24"]
    seen = {
        printed: [
            each["infonce.negatives"]
            for each in run_steps(
                {"negatives": ["queue"]}, [*sets, f"loss.infonce.same_text={printed}"], steps=2
            ).scalars
        ]
        for printed in ("mask", "keep")
    }
    # In the batch 23 others; two anchors find their text once more.
    assert seen["keep"] == [24.0, 23.0 + 25.0]
    assert seen["mask"] == pytest.approx([24.0 - 2 / 24, 48.0 - 2 / 24 - (24 + 2) / 24])


def test_another_dimension_is_refused_in_one_line() -> None:
    with pytest.raises(CseError) as caught:
        Queue(QueueOptions(dimension=5), make_setup("queue", dimension=8))
    line = str(caught.value)
    assert "negatives.queue.dimension" in line and "8 dimensions" in line and "\n" not in line


def test_keys_of_another_dimension_than_the_anchors_are_refused() -> None:
    sets = ["pool.predictor.dimension=16", "branch.ema.decay=0.85"]
    kinds = {"negatives": ["queue"], "pool": ["+predictor"]}
    with pytest.raises(CseError, match="32 dimensions and the anchors 16"):
        run_steps(kinds, sets, steps=1)
    with pytest.raises(CseError, match="64 dimensions and the anchors 32"):
        run_steps(recipe="mocose", sets=["pool.projector.dimension=64"], steps=1)
    with pytest.raises(CseError, match="negatives.queue.dimension: the run's vectors have 64"):
        run_steps(recipe="mocose", sets=["pool.predictor.dimension=64"], steps=1)
