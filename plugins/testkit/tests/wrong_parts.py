"""Wrong parts: each breaks one promise. What the kit says of each is beside it, by ``wrong``.

What the core looks at in every run is in ``tests/reliability/culprits.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from cse_core.builtins import plugin as builtins
from cse_core.functional import row_means
from cse_core.options import LossOptions
from cse_core.parts import Branch, Head, RowPooler
from cse_core.records import (
    AugmenterSpec,
    BranchSpec,
    ComponentSpec,
    HeadSpec,
    LossSpec,
    MetricSpec,
    MinerSpec,
    Record,
    RowPoolerSpec,
    RunInfo,
    SliceSpec,
    StoreSpec,
)
from cse_core.registry.registry import Registered, Registry
from cse_core.types import LossOutput, Positives, Round, View
from plugins.testkit.tests import sound_parts as sound
from plugins.testkit.tests.sound_parts import MadeAugmenter, MadeStore

Class = TypeVar("Class", bound=type)
RUNS = "it_runs_and_pure_methods_change_nothing"
ROWS = "it_keeps_rows_and_their_order"
DRAWS = "it_draws_for_its_own_rows_or_for_all"
OWNERS = "its_views_have_owners"
TRAINS = "trains_with_finite_numbers_and_its_parameters_move"
REACHES = "its_gradient_reaches_the_vectors"
BATCH = "takes_any_batch"
PLANNED = "it_is_planned_for_every_encoder"
DESCRIBED = "its_options_are_described"
FACTORY = "its_factory_makes_a_part_of_its_kind"


@dataclass(frozen=True)
class Wrong:
    """A wrong part: its record, the first promise that it breaks, and what the kit finds."""

    record: ComponentSpec
    promise: str
    found: str


WRONG: list[Wrong] = []


def wrong(
    record: type[ComponentSpec], promise: str, found: str, **fields: Any
) -> Callable[[Class], Class]:
    """Enter a class among the wrong parts; ``fields`` are those of its record."""

    def entered(made: Class) -> Class:
        name = "".join(f"-{c.lower()}" if c.isupper() else c for c in made.__name__).lstrip("-")
        values = {"name": name, "factory": f"{made.__module__}:{made.__qualname__}", **fields}
        WRONG.append(Wrong(record(summary="made up", **values), promise, found))
        return made

    return entered


# -- augmenters -----------------------------------------------------------------------------------


@wrong(AugmenterSpec, ROWS, "row 0 is what row 3 was", point="text")
class TextsTurned(MadeAugmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return list(reversed(x))


@wrong(AugmenterSpec, ROWS, "leaves source and word where they were")
@wrong(AugmenterSpec, ROWS, "changes the special or prompt tokens of row 0", name="special-turned")
@wrong(AugmenterSpec, ROWS, "row 0", name="rows-turned")
class IdsTurned(MadeAugmenter):
    """Puts the ids of a row in another order, or rows under the owners of others."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        if self.name == "rows-turned":
            return replace(x.take_rows(torch.arange(x.rows).flip(0)), owner=x.owner, slot=x.slot)
        ids, edge = x.ids.clone(), int(self.name == "ids-turned")
        for start, stop in zip(x.offsets.tolist(), x.offsets.tolist()[1:], strict=False):
            ids[start + edge : stop - edge] = ids[start + edge : stop - edge].flip(0)
        return replace(x, ids=ids)


@wrong(AugmenterSpec, ROWS, "special or prompt tokens of row 0")
class DropsSpecial(MadeAugmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.keep_tokens(~x.special | (x.positions == 0))


@wrong(AugmenterSpec, ROWS, "(source, word)")
class WordsCounted(MadeAugmenter):
    """Drops the first content token and counts the words that are left from 0 again."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        kept = x.keep_tokens((x.positions != 1) | (x.lengths[x.row_of_token()] < 4))
        return replace(kept, word=torch.where(kept.special, kept.word, kept.word - 1))


@wrong(AugmenterSpec, RUNS, "draws from a global generator")
class GlobalRandom(MadeAugmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.keep_tokens(x.special | (torch.rand(len(x.ids)) > 0.3) | (x.positions == 1))


@wrong(AugmenterSpec, RUNS, "call, called again, returns another: ids", name="own-random")
class OwnRandom(MadeAugmenter):
    """Draws from a generator that nothing it holds shows."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        chance = torch.rand(len(x.ids), generator=_HIDDEN)
        return x.keep_tokens(x.special | (chance > 0.3) | (x.positions == 1))


_HIDDEN = torch.Generator().manual_seed(0)


@wrong(AugmenterSpec, RUNS, "call changes what the part holds: calls")
class Counts(MadeAugmenter):
    calls = 0

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        self.calls += 1
        return x


@wrong(AugmenterSpec, "another_seed_draws_otherwise", "the same for another seed", point="text")
class IgnoresDraws(MadeAugmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        ctx.generator(self.name)
        return [f"{text} ." for text in x]


@wrong(AugmenterSpec, DRAWS, "write shared=False", point="text")
class SharedDraws(MadeAugmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        draws = torch.rand(len(x), generator=ctx.generator("words"))
        return [t.upper() if float(d) < 0.5 else t for t, d in zip(x, draws, strict=True)]


@wrong(AugmenterSpec, "gradients_pass_through_it", "cuts the gradient", point="word_embeddings")
class CutsGradient(MadeAugmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.detach() * 1.5


@wrong(
    AugmenterSpec,
    "a_row_does_not_depend_on_the_others",
    "row 0 of 4",
    point="word_embeddings",
)
class NormOfBatch(MadeAugmenter):
    """Scales by a norm over all rows of a call."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x / x.detach().norm().clamp_min(1e-6) * x.shape[0] ** 0.5


@wrong(
    AugmenterSpec,
    OWNERS,
    "not batch rows, 0 to 3",
    point="text",
    provides=("view:aux",),
)
class OwnersOfCorpus(MadeAugmenter):
    def views(self, rows: Any, ctx: Any) -> list[View]:
        return [View("aux", "aux", "online", texts=ctx.texts("text"), owner=rows + 4)]

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return [f"{text} indeed" for text in x]


# -- stores ---------------------------------------------------------------------------------------


@wrong(StoreSpec, RUNS, "candidates changes what the part holds: kept")
class StoresInCandidates(sound.Kept):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        found = super().candidates(batch, ctx)
        self.kept = torch.cat([self.kept, batch.anchors.detach()])[-8:]
        self.rows = torch.cat([self.rows, batch.row])[-8:]
        return found


@wrong(StoreSpec, RUNS, "kept")
class KeepsGraph(sound.Kept):
    def after_step(self, batch: Any, ctx: Any) -> None:
        super().after_step(batch, ctx)
        self.kept = nn.Linear(self.kept.shape[1], self.kept.shape[1])(self.kept)


@wrong(StoreSpec, "what_it_keeps_is_detached", "held.0")
class KeepsGraphInside(sound.Kept):
    """Keeps a graph in a list, where a run does not look."""

    held: Any = ()

    def after_step(self, batch: Any, ctx: Any) -> None:
        super().after_step(batch, ctx)
        self.held = [self.kept.clone().requires_grad_(True) * 2]


@wrong(StoreSpec, "its_state_round_trips", "resumed after step 2: that of step 3")
class ForgetsState(sound.Kept):
    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any, *args: Any, **kwargs: Any) -> None:
        pass


@wrong(StoreSpec, "its_state_round_trips", "promised tensors and JSON values, but of 'seen'")
class StrangeState(sound.Kept):
    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super().state_dict(), "seen": {1, 2}}


@wrong(StoreSpec, "its_candidates_can_be_used", "a log-weight is NaN")
class FloatMask(sound.Kept):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        found = super().candidates(batch, ctx)
        return None if found is None else replace(found, log_weights=found.log_weights / 0)


@wrong(StoreSpec, "its_rows_are_those_of_its_vectors", "batch.row, not batch.owner")
class OwnerForRow(sound.Kept):
    def of(self, batch: Any) -> Tensor:
        return batch.owner


@wrong(StoreSpec, "anchors_see_candidates_of_others", "are masked")
class InvertedMask(sound.Kept):
    def masked(self, batch: Any) -> Tensor:
        return ~super().masked(batch)


@wrong(StoreSpec, "weigh_only_weighs", "changes the vectors")
class WeighsVectors(MadeStore):
    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Any:
        return replace(negatives, vectors=negatives.vectors * 2)


@wrong(StoreSpec, "weigh_takes_any_candidates", "")
class WeighNeedsCandidates(MadeStore):
    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Any:
        top = negatives.log_weights.max(dim=1, keepdim=True).values
        return replace(negatives, log_weights=negatives.log_weights - top)


@wrong(StoreSpec, "weigh_only_weighs", "negatives again")
class OpensPositives(MadeStore):
    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Any:
        return replace(negatives, mask=torch.zeros_like(negatives.mask))


@wrong(StoreSpec, DRAWS, "write shared=True")
class DrawsApart(MadeStore):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        draws = ctx.generator("noise", shared=False)
        noise = torch.randn(3, batch.anchors.shape[1], generator=draws)
        return sound.Negatives.of(noise, len(batch.anchors), name=self.name)


# -- losses ---------------------------------------------------------------------------------------


@wrong(LossSpec, BATCH, ": the value is nan")
class MeanOfNothing(sound.Plain):
    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        there = (~negatives.mask & negatives.log_weights.isfinite()).to(negatives.vectors.dtype)
        return (sound.cosines(batch.anchors, negatives.vectors) * there).sum() / there.sum()


@wrong(LossSpec, "a_masked_candidate_does_not_count", "that are masked")
class IgnoresMask(sound.Plain):
    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        seen = replace(negatives, mask=torch.zeros_like(negatives.mask))
        return super().value(batch, targets, seen)


@wrong(LossSpec, "a_masked_candidate_does_not_count", "that are weightless")
class IgnoresWeights(sound.Plain):
    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        flat = replace(negatives, log_weights=torch.zeros_like(negatives.log_weights))
        return super().value(batch, targets, flat)


@wrong(LossSpec, BATCH, "the gradient of the")
class NanGradient(sound.Plain):
    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        logits = sound.cosines(batch.anchors, negatives.vectors) + negatives.log_weights
        mass = logits.masked_fill(negatives.mask, -torch.inf).logsumexp(dim=1).clamp_min(-10)
        return mass.mean() - super().value(batch, targets, negatives)


@wrong(LossSpec, BATCH, "IndexError")
class WantsFour(sound.Plain):
    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        return super().value(batch, targets, negatives) + batch.anchors[[0, 1, 2, 3]].sum() * 0


@wrong(LossSpec, BATCH, "three positives")
class OnePositive(sound.Plain):
    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        value = super().value(batch, targets, negatives)
        return value / (targets.vectors.shape[1] == 1) if targets.weights is not None else value


@wrong(LossSpec, REACHES, "the value is nan")
class NanLoss(sound.Plain):
    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        return super().value(batch, targets, negatives) * torch.nan


@wrong(LossSpec, "a_positive_of_weight_zero_does_not_count", "weight 0")
class IgnoresTargetWeights(sound.Plain):
    def weights(self, close: Tensor, targets: Any) -> Tensor:
        return torch.ones_like(close)


@wrong(LossSpec, "its_reduction_is_that_of_its_options", "for 4 anchors")
class IgnoresReduction(sound.Plain):
    def reduced(self, terms: Tensor) -> Tensor:
        return terms.mean()


@wrong(LossSpec, REACHES, "leave no gradient")
class NoGradient(sound.Plain):
    """Its value has a graph, through which nothing comes back."""

    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        return super().value(batch, targets, negatives).detach() + 0.0 * batch.anchors.sum()


@wrong(LossSpec, RUNS, "call changes its arguments: 0.targets.positive.vectors")
class ScalesViews(sound.Plain):
    """Writes into the batch that it is given."""

    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        views = batch.views["positive"]["sentence"].vectors
        with torch.no_grad():
            views.detach().data.mul_(0.9)
        return super().value(batch, targets, negatives)


@wrong(LossSpec, "it_joins_rows_by_key", "by owner and slot")
class ByPosition(sound.Plain):
    """Takes the rows of a view for those of the anchors."""

    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        rows = batch.views["positive"][batch.level].vectors[: len(batch.anchors)]
        close = functional.cosine_similarity(batch.anchors[: len(rows)], rows)
        return super().value(batch, targets, negatives) - self.reduced(close)


@wrong(LossSpec, TRAINS, "leave scale as they were")
class Unmoved(nn.Module, sound.Loss):
    """Has a scale that its value does not depend on."""

    def __init__(self, options: LossOptions, setup: Any) -> None:
        super().__init__()
        self.base = sound.Plain(options, setup)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        value = self.base(batch, targets, negatives, ctx).value
        return LossOutput(value * self.scale.detach())


# -- poolers --------------------------------------------------------------------------------------


@wrong(RowPoolerSpec, "a_row_becomes_a_vector_of_its_tokens_alone", "pooled alone")
class ReadsOthers(RowPooler):
    def __init__(self, options: Any, setup: Any) -> None:
        self.dimension = setup.dimension

    def pool(self, hidden: Any, tokens: Any) -> Tensor:
        return row_means(hidden.last, tokens) - hidden.last.mean(dim=0)


@wrong(HeadSpec, "a_head_maps_any_number_of_vectors", "ValueError")
class BatchNormHead(nn.Module, Head):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.dimension = setup.dimension
        self.norm = nn.BatchNorm1d(setup.dimension)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.norm(vectors)


@wrong(HeadSpec, RUNS, "forward changes its arguments")
class InPlaceHead(nn.Module, Head):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.dimension = setup.dimension
        self.dense = nn.Linear(setup.dimension, setup.dimension)

    def forward(self, vectors: Tensor) -> Tensor:
        with torch.no_grad():
            vectors.mul_(0.5)
        return self.dense(vectors)


@wrong(
    SliceSpec,
    "slices_keep_owners_and_count_slots",
    "the slots of sentence",
    provides=("level:segment",),
)
class SlotsFromOne(sound.Halves):
    def slices(self, tokens: Any) -> Any:
        cut = super().slices(tokens)
        return replace(cut, slot=cut.slot + 1)


@wrong(
    SliceSpec,
    "join_makes_one_vector_a_sentence",
    "owners are [2, 5, 9]",
    provides=("level:segment",),
)
class JoinsSorted(sound.Halves):
    def join(self, rows: Any) -> Any:
        joined = super().join(rows)
        return joined.take(torch.argsort(joined.owner))


# -- miners, branches, metrics --------------------------------------------------------------------


@wrong(MinerSpec, "its_groups_can_be_used", "positives:friends", provides=("positives:neighbours",))
class OtherGroup(sound.Neighbour):
    group = "friends"


@wrong(
    MinerSpec,
    "its_groups_can_be_used",
    "weights below zero",
    provides=("positives:neighbours",),
)
class NegativeWeights(sound.Neighbour):
    def mine(self, batch: Any, ctx: Any) -> Any:
        weights = torch.full((len(batch.anchors), 1), -1.0)
        return {self.group: Positives(batch.anchors.detach().unsqueeze(1), weights)}


@wrong(
    MinerSpec,
    "rounds_are_well_formed_and_repeat",
    "has a blank text",
    rounds=True,
    provides=("pairs",),
)
class BlankPairs(sound.Pairs):
    def next_round(self, ctx: Any) -> Round | None:
        texts = list(ctx.corpus.column("text"))
        pairs = {"text": texts, "positive": [" ", *texts[1:]]}
        return Round(pairs) if ctx.round == 1 else None


@wrong(
    BranchSpec,
    "its_after_step_leaves_the_online_encoder",
    "its after_step changes the online encoder",
    provides=("branch:moves-online",),
)
class MovesOnline(Branch):
    def __init__(self, options: Any, setup: Any) -> None:
        self.encoder, self.heads = setup.online_encoder(), {}

    @torch.no_grad()
    def after_step(self, batch: Any, ctx: Any) -> None:
        for parameter in self.encoder.parameters():
            parameter.mul_(0.99)


@wrong(
    BranchSpec,
    TRAINS,
    "are not with the optimiser",
    provides=("branch:own-copy",),
    trainable=True,
)
class OwnCopy(Branch):
    """A trained branch that is not a module: the optimiser never sees its copy."""

    def __init__(self, options: Any, setup: Any) -> None:
        self.encoder = setup.online_encoder().copy()
        self.heads = setup.heads


@wrong(
    BranchSpec,
    "leaves_the_online_encoder_as_it_is",
    "is 0.0, not 0.1",
    provides=("branch:no-dropout",),
)
class NoDropout(Branch):
    """Switches the dropout of the online encoder off, meaning its own."""

    def __init__(self, options: Any, setup: Any) -> None:
        online = setup.online_encoder()
        self.encoder, self.heads = online.copy(), {}
        self.encoder.requires_grad_(False)
        for module in online.modules():
            if hasattr(module, "p"):
                module.p = 0.0


@wrong(MetricSpec, "its_numbers_are_finite_and_repeat", "spread is nan")
class NanMetric(sound.Metric):
    def __init__(self, options: Any, setup: Any) -> None:
        pass

    def compute(self, encode: Any, pairs: Any) -> dict[str, float]:
        return {"spread": float("nan")}


# -- records --------------------------------------------------------------------------------------


class SilentOptions(LossOptions):
    rate: float = 0.1


def _knows_one(options: LossOptions, facts: RunInfo) -> LossOptions:
    """Look up what only the tiny encoder's size has."""
    return {32: options}[facts.hidden or 0]


class WrongDefault(LossOptions):
    mode: Literal["a", "b"] = "c"  # type: ignore[assignment]
    """Which."""


for _promise, _found, _fields in (
    (DESCRIBED, "rate", {"name": "silent", "options": SilentOptions}),
    ("its_default_options_are_valid", "mode", {"name": "default", "options": WrongDefault}),
    (FACTORY, "has no Nobody", {"name": "no-class", "factory": f"{__name__}:Nobody"}),
    (FACTORY, "not a subclass", {"name": "other-kind", "factory": f"{__name__}:Counts"}),
    (PLANNED, "resolve_options raised KeyError", {"name": "knows", "resolve_options": _knows_one}),
):
    wrong(LossSpec, _promise, _found, **_fields)(sound.Plain)


def made_registry() -> Registry:
    """Return the built-in parts, the wrong ones and the sound ones."""
    own: list[Record] = [
        *builtins.cse_poolers(), *builtins.cse_losses(), *builtins.cse_branches()
    ]  # fmt: skip
    brought = {
        "cse-toolkit": own,
        "cse-wrong": [each.record for each in WRONG],
        "cse-sound": sound.RECORDS,
    }
    return Registry(
        Registered(record, distribution, "0.1.0", f"{distribution}:it")
        for distribution, records in brought.items()
        for record in records
    )
