"""What ``cse eval`` and ``cse.evaluate`` do: read what was asked for, score every model on it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse import Difference, Model, TextEncoder, load
from cse_cli.api import Installed, echo_err, progress, warn
from cse_core.suites import Encode, Progress
from cse_evaluation import ranking, retrieval, sts, transfer
from cse_evaluation.cli.differences import differences, to_json
from cse_evaluation.cli.outputs import keep, write_items_out, write_pairs_out
from cse_evaluation.cli.sources import Request, Sources, read_sources
from cse_evaluation.labelled import LongTexts
from cse_evaluation.results import Baseline, Scores, check_names
from cse_evaluation.vectors import EncodedTexts

CUT_AT = 512
"""Tokens that texts which are cut may have, where the encoder takes so many and none is named."""
_BLOCK = 256
"""Texts between two looks at the clock."""


@dataclass
class Evaluation:
    """The scores of every model, in the order of the request."""

    sources: Sources
    models: list[Scores] = field(default_factory=list)
    differences: list[dict[str, Difference]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Build the output of ``cse eval --json``: flat for one model."""
        scored: list[dict[str, Any]] = []
        for entry in self.models:
            results = {score.name: score.to_json() for score in entry.all}
            for name in self.sources.synthetic:
                results[name]["synthetic"] = True
            scored.append({"model": entry.model, "encoder": entry.encoder, "results": results})
        rest: dict[str, Any] = {"missing": self.sources.missing}
        if self.sources.folder is not None:
            rest["folder"] = str(self.sources.folder)
        if len(scored) == 1:
            return {**scored[0], **rest}
        for other, found in zip(scored[1:], self.differences, strict=True):
            shown = {name: to_json(difference) for name, difference in found.items()}
            other["differences"] = {"from": scored[0]["model"], "sets": shown}
        return {"models": scored, **rest}


def evaluate(plugins: Installed, models: Sequence[str], **options: Any) -> dict[str, Any]:
    """Score models from Python: ``cse.evaluate`` calls it."""
    quiet = options.pop("quiet", False)
    request = Request.of(models, options)
    with progress(json=quiet) as reporter:
        return score_models(request, plugins, reporter.progress).to_dict()


def score_models(request: Request, plugins: Installed, progress: Progress) -> Evaluation:
    """Score models on everything that is asked for; what is not there is reported on stderr."""
    sources = read_sources(request, plugins)
    result = Evaluation(sources)
    lengths: dict[str, int] = {}
    cuts: list[str] = []
    words: dict[str, Baseline] = {}
    asking = _asking(request, plugins)
    for name in request.models:
        model = load(
            name,
            pooling=request.pooling,
            max_length=request.max_length,
            prompt=request.prompt,
            truncate_dim=request.truncate_dim,
            device=request.device,
            precision=request.precision,
            plugins=plugins,
        )
        lengths[name] = model.max_length
        if not words and not request.no_baselines:  # now that the model is known to load
            words = _score_words(sources, request, progress)
        scores, cut = _score(model, sources, words, request, progress, asking)
        result.models.append(scores)
        cuts += [f"{name}: {cut}"] if cut else []
    check_names([score.name for score in result.models[0].all])
    result.differences = differences(sources, result.models)
    for note in sources.notes:
        echo_err(note)
    for cut in cuts:
        warn(cut)
    if asking is not None and asking.note:
        warn(f"{request.queries_model}: {asking.note}")
    cut_here = sources.pairs or sources.documents or sources.collections
    if cut_here and len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} at {_shown(length)}" for name, length in lengths.items())
        warn(f"the models cut texts at different lengths ({shown} tokens); "
             "--max-length N is for all")  # fmt: skip
    if request.pairs_out is not None:
        write_pairs_out(request.pairs_out, sources.pairs, result.models[0].pairs)
        echo_err(f"pairs with their cosines are in {request.pairs_out}")
    if request.items_out is not None:
        first = result.models[0]
        judged = list(zip(sources.collections, first.collections, strict=True))
        write_items_out(request.items_out, first.tasks, first.documents, judged)
        what = "ranks of documents' titles, measures of judged queries and labels that were right"
        echo_err(f"{what} are in {request.items_out}")
    keep(request.models, request.changed(), result.to_dict())
    return result


def _score_words(sources: Sources, request: Request, progress: Progress) -> dict[str, Baseline]:
    """Return the scores of words alone on each set: they are the same for every model."""
    # Words trained by another classifier than the vectors would not be comparable.
    tasks = chain.from_iterable(t for _, t in sources.tasks if request.classifier == "exact")
    seed = request.seed
    return {
        **{part.name: sts.score_words(part) for part in sources.pairs},
        **{part.name: transfer.score_words(part, seed=seed, progress=progress) for part in tasks},
        **{part.name: retrieval.score_words(part) for part in sources.documents},
        **{part.name: ranking.score_words(part) for part in sources.collections},
    }


def _asking(request: Request, plugins: Installed) -> TextEncoder | None:
    """Load another model of queries, if one is named."""
    if request.queries_model is None:
        return None
    model = load(
        request.queries_model,
        pooling=request.pooling,
        max_length=request.max_length,
        prompt=request.prompt,
        truncate_dim=request.truncate_dim,
        device=request.device,
        precision=request.precision,
        plugins=plugins,
    )
    return TextEncoder(model.loaded, request.batch_tokens)


def _score(
    model: Model,
    sources: Sources,
    words: dict[str, Baseline],
    request: Request,
    progress: Progress,
    asking: Encode | None,
) -> tuple[Scores, str | None]:
    """Return the scores of a model, and what to say of texts that were cut."""
    length = (
        f"at most {model.max_length}" if model.max_length < sys.maxsize else _shown(sys.maxsize)
    )
    scores = Scores(model.name, f"{model.description}, {length} tokens")
    encoder = TextEncoder(model.loaded, request.batch_tokens)
    encode = EncodedTexts(encoder, chain(*(part.texts for part in sources.pairs)))
    metrics = {name: model.metric(name) for name in request.metric}
    scores.pairs = sts.score_pairs(encode, sources.pairs, words, metrics)
    for long_texts, tasks in sources.tasks:
        reads, treatment = _task_encoder(model, long_texts, request, progress)
        scores.tasks += transfer.score_tasks(
            reads,
            tasks,
            texts=treatment,
            words=words,
            classifier=request.classifier,
            seed=request.seed,
            progress=progress,
        )
    for part in sources.documents:
        result = retrieval.score_documents(encode, part, words.get(part.name), progress)
        scores.documents.append(result)
    for judged in sources.collections:
        by_words = words.get(judged.name)
        result = ranking.score_collection(
            encoder, judged, by_words, progress, asking=asking, level=request.level
        )
        scores.collections.append(result)
    scores.others = [
        list(other.suite.score(encoder, other.read, progress)) for other in sources.others
    ]
    return scores, encoder.note


def _shown(length: int) -> str:
    return f"{length:,}" if length < sys.maxsize else "any number of"


def _task_encoder(
    model: Model, long_texts: LongTexts, request: Request, progress: Progress
) -> tuple[Encode, str]:
    """Build the encoder for the texts of tasks, and describe its handling of long ones."""
    longest = None  # a model that slices takes texts of any length
    if long_texts == "cut" and request.max_length is None:
        # Where the encoder ends, whatever length it was trained with: models are compared on the
        # same texts.
        longest = min(CUT_AT, model.max_positions or CUT_AT)
    encoder = TextEncoder(
        model.loaded, request.batch_tokens, max_length=longest, long_texts=long_texts
    )
    words = f"cut at {encoder.max_length} tokens"
    if long_texts == "slice":
        length = _shown(encoder.max_length)
        words = f"mean over slices of {length} tokens, weighted by their length"

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        blocks: list[NDArray[np.float32]] = []
        done = 0
        for block, vectors in encoder.blocks(texts, _BLOCK):
            blocks.append(vectors)
            done += len(block)
            progress(done, len(texts), f"texts of {model.name}")
        return np.concatenate(blocks)

    return encode, words
