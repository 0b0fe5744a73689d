"""A part of each shape that keeps every promise, an evaluation suite and a reporter.

``wrong_parts`` changes a line of each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from cse_core.functional import (
    candidate_texts,
    infonce_terms,
    of_texts,
    positive_texts,
    reduce_terms,
    row_means,
)
from cse_core.options import AugmenterOptions, BranchOptions, LossOptions, ModelName
from cse_core.parts import (
    Augmenter,
    Branch,
    Head,
    Loss,
    Metric,
    MultiVectorPooler,
    NegativeStore,
    PositiveMiner,
    RowPooler,
    Sampler,
    SlicePooler,
    Transform,
)
from cse_core.records import (
    AugmenterSpec,
    BranchSpec,
    HeadSpec,
    LossSpec,
    MetricSpec,
    MinerSpec,
    MultiVectorSpec,
    ReporterSpec,
    RowPoolerSpec,
    SamplerSpec,
    SliceSpec,
    StoreSpec,
    SuiteSpec,
    TransformSpec,
)
from cse_core.reporter import Reporter
from cse_core.suites import DevSet, Suite, SuiteFiles, SuiteScore
from cse_core.types import LossOutput, Negatives, Positives, Round, Units, View

Class = TypeVar("Class", bound=type)
RECORDS: dict[str, Any] = {}
"""The record of each class below, by the class's name."""


def part(record: type[Any], **fields: Any) -> Callable[[Class], Class]:
    """Enter a class; ``fields`` are those of its record."""

    def entered(made: Class) -> Class:
        name = made.__name__
        values = {"name": name.lower(), "factory": f"{made.__module__}:{name}", **fields}
        RECORDS[name] = record(summary="made up", **values)
        return made

    return entered


@part(AugmenterSpec)
class Repeat(Augmenter):
    """Doubles a token of each row."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        draws = ctx.generator(self.name, shared=False)
        index, lengths = [], []
        for row in range(x.rows):
            start, stop = int(x.offsets[row]), int(x.offsets[row + 1])
            content = [t for t in range(start, stop) if not bool(x.special[t])]
            place = int(torch.randint(max(len(content), 1), (), generator=draws))
            doubled = content[place : place + 1]
            index += [t for t in range(start, stop) for _ in range(2 if t in doubled else 1)]
            lengths.append(stop - start + len(doubled))
        return x.take_tokens(torch.tensor(index), torch.tensor(lengths))


@part(AugmenterSpec, point="text", provides=("view:aux",))
class Texts(Augmenter):
    """Adds a view, and a word to some texts."""

    def views(self, rows: Any, ctx: Any) -> list[View]:
        return [View("aux", "aux", "online", texts=ctx.texts("text"))]

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        draws = torch.rand(len(x), generator=ctx.generator(self.name, shared=False))
        return [f"{t} indeed" if float(d) < 0.5 else t for t, d in zip(x, draws, strict=True)]


class ScalesOptions(AugmenterOptions):
    by: float = 1.5
    """Factor."""


@part(AugmenterSpec, point="word_embeddings", options=f"{__name__}:ScalesOptions")
class Scales(Augmenter):
    """Scales embeddings."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x * self.options.by


@part(StoreSpec)
class Kept(NegativeStore):
    """The last eight positives, and less weight for every negative."""

    remembers = ("kept", "rows")

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.kept = torch.zeros(0, setup.dimension, device=setup.device)
        self.rows = torch.zeros(0, dtype=torch.long, device=setup.device)

    def candidates(self, batch: Any, ctx: Any) -> Any:
        if not len(self.kept):
            return None
        age = torch.ones_like(self.rows)
        mask = batch.row.unsqueeze(1) == self.rows.unsqueeze(0)
        anchors = len(batch.anchors)
        return Negatives.of(self.kept, anchors, name=self.name, mask=mask, row=self.rows, age=age)

    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Any:
        return replace(negatives, log_weights=negatives.log_weights - 0.5)

    def after_step(self, batch: Any, ctx: Any) -> None:
        new = batch.targets["positive"].vectors[:, 0]
        self.kept = torch.cat([self.kept, new])[-8:]
        self.rows = torch.cat([self.rows, batch.row])[-8:]


class Cosines(LossOptions):
    similarity: Literal["cosine"] = "cosine"
    """Cosines alone."""
    directions: Literal["one"] = "one"
    """Anchors to targets alone."""


class GradedOptions(Cosines):
    teacher: ModelName = "a-teacher"
    """The wider encoder."""


GRADED = f"{__name__}:GradedOptions"


@part(LossSpec, reads={"score": "float"}, requires=("column:topic",), options=GRADED)
class Graded(Loss):
    """Teaches the similarities of a wider encoder, by a grade of each text."""

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.teach = setup.load_model(options.teacher, option="teacher").encode

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        topics = {"sport": 0.5, "music": 1.0}
        grades = ctx.values("score") * torch.tensor([topics[t] for t in ctx.texts("topic")])
        grades = grades[batch.owner]
        wide = functional.normalize(self.teach(ctx.texts("text")), dim=1)[batch.owner]
        close = functional.normalize(batch.anchors, dim=1) @ functional.normalize(batch.anchors).T
        apart = (wide @ wide.T).to(close.dtype) - close
        value = (grades.to(close.dtype) * apart.square().sum(dim=1)).sum()
        return LossOutput(value / (len(grades) if self.options.reduction == "mean" else 1))


@part(LossSpec, options=f"{__name__}:Cosines")
class Plain(nn.Module, Loss):
    """InfoNCE in its plain form, with everything that the options ask for, and a learned scale."""

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        value = self.value(batch, targets, negatives)
        return LossOutput(value)

    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        anchors, positives, candidates = (
            functional.normalize(each, dim=-1)
            for each in (batch.anchors, targets.vectors, negatives.vectors)
        )
        close = (anchors.unsqueeze(1) * positives).sum(-1)
        far = anchors @ candidates.T
        there = ~negatives.mask * negatives.log_weights.exp()
        mass = (far.exp() * there).sum(dim=1, keepdim=True)
        losses = self.scale * ((close.exp() + mass).log() - close)
        weights = torch.ones_like(close) if targets.weights is None else targets.weights
        terms = (losses * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1e-9)
        return terms.sum() if self.options.reduction == "sum" else terms.mean()


class LookedOptions(Cosines):
    negatives: Literal["in-batch"] = "in-batch"
    """Texts of the batch alone."""


@part(LossSpec, options=f"{__name__}:LookedOptions")
class Looked(Loss):
    """InfoNCE of vectors that it looks up in the views."""

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        view, keys = positive_texts(batch, targets, self.options.target)
        blocks = candidate_texts(batch, negatives, view)
        others = [of_texts(batch.views[name][batch.level], of) for name, of in blocks]
        seen = replace(negatives, vectors=torch.cat([batch.anchors[:0], *others]))
        pulled = replace(targets, vectors=of_texts(batch.views[view][batch.level], keys))
        terms = infonce_terms(batch.anchors, pulled, seen, temperature=1.0)
        return LossOutput(reduce_terms(terms, targets, self.options.reduction))


class WeightedOptions(Cosines):
    negatives: Literal["none"] = "none"
    """None."""


@part(LossSpec, options=f"{__name__}:WeightedOptions", contrastive=False)
class Weighted(Loss):
    """Distances of cosines; in sum and mean every second row of the corpus counts twice."""

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        near = functional.cosine_similarity(batch.anchors.unsqueeze(1), targets.vectors, dim=-1)
        weights = torch.ones_like(near) if targets.weights is None else targets.weights
        terms = ((1 - near) * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1e-9)
        share = 1 + batch.row % 2
        value = (share * terms).sum()
        return LossOutput(value if self.options.reduction == "sum" else value / share.sum())


@part(RowPoolerSpec)
class Means(RowPooler):
    """The mean of a row's states, as wide as these: it says no dimension."""

    def __init__(self, options: Any, setup: Any) -> None:
        pass

    def pool(self, hidden: Any, tokens: Any) -> Tensor:
        return row_means(hidden.last, tokens)


@part(MultiVectorSpec, provides=("level:short",))
class Short(MultiVectorPooler):
    """The first half of each token's state: another dimension than that of the rows."""

    level = "short"

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.dimension = setup.hidden_size // 2

    def units(self, tokens: Any, view: str) -> Units:
        return Units.of_tokens(tokens, torch.ones_like(tokens.special))

    def pool(self, hidden: Any, units: Any) -> Tensor:
        means: Tensor = units.means(hidden.last)[:, : self.dimension]
        return means


@part(HeadSpec)
class Dense(nn.Module, Head):
    """A layer."""

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.dimension = setup.dimension
        self.layer: nn.Module = nn.Linear(setup.dimension, setup.dimension)
        for each in self.parameters():
            nn.init.normal_(each, std=0.1, generator=setup.generator("layer"))

    def forward(self, vectors: Tensor) -> Tensor:
        mapped: Tensor = self.layer(vectors)
        return mapped


@part(SliceSpec, provides=("level:segment",))
class Halves(SlicePooler):
    """Cuts content into rows of four tokens, joined by their mean."""

    def slices(self, tokens: Any) -> Any:
        rows, slots, lengths = [], [], []
        for row, length in enumerate(tokens.lengths.tolist()):
            parts = max(1, -(-length // 4))
            rows += [row] * parts
            slots += list(range(parts))
            lengths += [min(4, length - 4 * part) for part in range(parts)]
        whole = tokens.take_tokens(torch.arange(len(tokens.ids)), torch.tensor(lengths))
        return replace(whole, owner=tokens.owner[torch.tensor(rows)], slot=torch.tensor(slots))

    def join(self, rows: Any) -> Any:
        owners = list(dict.fromkeys(rows.owner.tolist()))
        device = rows.owner.device
        places = [owners.index(owner) for owner in rows.owner.tolist()]
        place = torch.tensor(places, dtype=torch.long, device=device)
        sums = rows.vectors.new_zeros(len(owners), rows.vectors.shape[1])
        sums = sums.index_add(0, place, rows.vectors)
        counts = torch.bincount(place, minlength=len(owners)).clamp_min(1).unsqueeze(1)
        length = rows.length.new_zeros(len(owners)).index_add(0, place, rows.length)
        owner = torch.tensor(owners, dtype=torch.long, device=device)
        return replace(
            rows, vectors=sums / counts, owner=owner, slot=torch.zeros_like(owner), length=length
        )


@part(MinerSpec, provides=("positives:neighbours",))
class Neighbour(PositiveMiner):
    """The next sentence of the batch."""

    def mine(self, batch: Any, ctx: Any) -> Any:
        weights = batch.anchors.new_ones(len(batch.anchors), 1)
        return {"neighbours": Positives(batch.anchors.roll(1, 0).detach().unsqueeze(1), weights)}


@part(MinerSpec, rounds=True, provides=("pairs",), columns=("text",))
class Pairs(PositiveMiner):
    """Each row with the next."""

    def next_round(self, ctx: Any) -> Round | None:
        texts = list(ctx.corpus.column("text"))
        return Round({"text": texts[:-1], "positive": texts[1:]}) if ctx.round == 1 else None


@part(TransformSpec)
class Centre(Transform):
    """Vectors less their mean over all views."""

    def __call__(self, views: Any, ctx: Any) -> Any:
        mean = torch.cat([view.vectors for view in views.values()]).mean(dim=0)
        return {name: replace(view, vectors=view.vectors - mean) for name, view in views.items()}


@part(SamplerSpec)
class Turned(Sampler):
    """All rows at random."""

    def order(self, rows: Any, size: int, draws: Any) -> Tensor:
        return torch.randperm(len(rows), generator=draws("rows"))


class CopyOptions(BranchOptions):
    embeddings: Literal["copied"] = "copied"
    """Never shared."""


@part(BranchSpec, options=f"{__name__}:CopyOptions", provides=("branch:copy",))
class Copy(Branch):
    """The online encoder as it was."""

    def __init__(self, options: Any, setup: Any) -> None:
        online = setup.online_encoder()
        self.encoder, self.heads = online.copy(), {}
        self.training = options.mode == "train"
        self.encoder.requires_grad_(False)


@part(MetricSpec)
class Spread(Metric):
    """The deviation of all numbers."""

    def __init__(self, options: Any, setup: Any) -> None:
        pass

    def compute(self, encode: Any, pairs: Any) -> dict[str, float]:
        return {"spread": float(encode(pairs.texts).std())}


class Deviation(DevSet):
    """The deviation of all numbers of two texts."""

    def score(self, encode: Any) -> dict[str, float]:
        return {"spread": float(encode(["a", "b"]).std())}


@part(SuiteSpec, dev=True)
class Words(Suite):
    """The deviation of all numbers of a file's words."""

    def locate(self, folder: Path) -> SuiteFiles:
        path = folder / "words.txt"
        return SuiteFiles({"words": path if path.is_file() else None})

    def read(self, files: Mapping[str, Path]) -> Any:
        return files["words"].read_text().split()

    def score(self, encode: Any, read: Any, progress: Any) -> Sequence[SuiteScore]:
        score = {"spread": float(encode(read).std())}
        return [SuiteScore(name="words", scores=score, split="all", setting="raw")]

    def read_dev(self, path: Any) -> DevSet | None:
        return Deviation(path.stem, ("spread",), 2) if path.suffix == ".txt" else None


@part(ReporterSpec)
class Quiet(Reporter):
    """Keeps what it was given last."""

    def __init__(self, options: Any) -> None:
        self.last: Any = None

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.last = folder

    def line(self, line: Mapping[str, float]) -> None:
        self.last = len(line)
