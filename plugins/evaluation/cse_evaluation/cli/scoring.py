"""What ``cse eval`` and ``cse.evaluate`` do: read what was asked for, score every model on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from cse_cli.models.loading import TextEncoder, load_model
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.console import echo_err, warn
from cse_core.evaluation.suites import Progress, SuiteScore
from cse_evaluation.cli.graded import Sets
from cse_evaluation.cli.kept import keep
from cse_evaluation.cli.probes import (
    score_tasks,
    score_words_of,
    shown_progress,
    warn_of_lengths,
)
from cse_evaluation.cli.request import Request
from cse_evaluation.cli.retrieval import (
    Words,
    score_document_words,
    score_documents,
)
from cse_evaluation.cli.scores import scores_json
from cse_evaluation.cli.sources import Sources, read_sources
from cse_evaluation.cli.suites import add_suites, check_sets, score_suites

if TYPE_CHECKING:
    from cse_cli.models.saved_model import SentenceModel
    from cse_core.evaluation.suites import Encode
    from cse_evaluation.retrieval import RetrievalResult
    from cse_evaluation.sts import Result
    from cse_evaluation.task_result import TaskResult, WordScore


@dataclass
class Evaluation:
    """The scores of every model, in the order of the request.

    Attributes:
        described: Each model's pooling and length in words.
        results: On graded pairs.
        classified: On labelled texts.
        retrieved: On documents with titles.
        scores: On suites of other distributions.
    """

    request: Request
    sources: Sources
    described: list[str] = field(default_factory=list)
    results: list[list[Result]] = field(default_factory=list)
    classified: list[list[TaskResult]] = field(default_factory=list)
    retrieved: list[list[RetrievalResult]] = field(default_factory=list)
    scores: list[list[list[SuiteScore]]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cse eval --json`` prints."""
        shown = scores_json(
            list(self.request.models),
            self.described,
            self.results,
            self.sources.sets,
            self.classified,
            self.sources.tasks,
            self.retrieved,
        )
        return add_suites(shown, self.sources.others, self.scores)


def evaluate(plugins: Installed, models: Sequence[str], **options: Any) -> dict[str, Any]:
    """Score models from Python: ``cse.evaluate`` calls it.

    Raises:
        CseError: As :func:`score_models` does, and if an option is unknown.
    """
    quiet = options.pop("quiet", False)
    request = Request.of(models, options)
    with shown_progress(quiet) as progress:
        return score_models(request, plugins, progress).to_dict()


def score_models(request: Request, plugins: Installed, progress: Progress) -> Evaluation:
    """Score models on everything that is asked for; what is not there is reported on stderr.

    Raises:
        CseError: If a model, a file or an option is missing or wrong.
    """
    from cse_evaluation.item_files import write_items_out, write_pairs_out
    from cse_evaluation.sts import evaluate_sts
    from cse_evaluation.vectors import EncodedTexts

    sources = read_sources(request, plugins)
    sets, tasks, changes = sources.sets, sources.tasks, sources.changes
    found = Evaluation(request, sources)
    pairs_out, items_out = request.pairs_out, request.items_out
    baselines = not request.no_baselines
    lengths: list[int] = []
    cuts: list[str] = []
    known: dict[str, WordScore] = {}
    titles: Words = {}
    for name in request.models:
        model = load_model(
            name,
            plugins.registry,
            pooling=request.pooling,
            max_length=request.max_length,
            device=request.device,
            precision=request.precision,
        )
        lengths.append(model.sentence_encoder.max_length)
        found.described.append(f"{model.description}, at most {lengths[-1]} tokens")
        texts = chain(*(each.texts for each in sets.sets))
        encoder = TextEncoder(model, request.batch_tokens)
        encode = EncodedTexts(encoder, texts)
        if sets.sets:
            if changes:
                encode = changes.encoder(model, encode, sets.sets, plugins)
            scored = evaluate_sts(encode, sets.sets, baselines and not changes, sources.words)
            if changes:
                scored = [replace(each, setting=changes.setting) for each in scored]
            found.results.append(
                _with_metrics(scored, request.metric, model, encode, sets, plugins)
            )
        if tasks.groups:
            if baselines and not known:  # now that the model is known to load
                known = score_words_of(tasks, request.seed, progress)
            found.classified.append(
                score_tasks(
                    model,
                    tasks,
                    known,
                    batch_tokens=request.batch_tokens,
                    classifier=request.classifier,
                    seed=request.seed,
                    progress=progress,
                    max_length=request.max_length,
                )
            )
        if sources.documents:
            titles = titles or (score_document_words(sources.documents) if baselines else {})
            found.retrieved.append(
                score_documents(
                    encode, sources.documents, titles, progress, request.similarity, request.index
                )
            )
        found.scores.append(score_suites(sources.others, encode, progress))
        if encoder.note:
            cuts.append(f"{name}: {encoder.note}")
    kinds = (found.results, found.classified, found.retrieved)
    names = [each.name for kind in kinds for each in chain(*kind[:1])]
    check_sets([*names, *(score.name for score in chain(*found.scores[0]))])
    for note in (*sets.notes, *tasks.notes):
        echo_err(note)
    for each in sources.others:
        if each.missing:
            echo_err(f"not there, looked for in {each.folder}: {', '.join(each.missing)}")
    for cut in cuts:
        warn(cut)
    if found.results:
        warn_of_lengths(request.models, lengths)
    if pairs_out is not None:
        write_pairs_out(pairs_out, sets.sets, [r.cosines for r in found.results[0] if not r.sets])
        echo_err(f"pairs with their cosines are in {pairs_out}")
    if items_out is not None:
        write_items_out(items_out, chain(*found.classified[:1]), chain(*found.retrieved[:1]))
        echo_err(f"ranks of documents' titles and labels that were right are in {items_out}")
    keep(request.models, request.changed(), found.to_dict())
    return found


def _with_metrics(
    results: list[Result],
    names: Sequence[str],
    model: SentenceModel,
    encode: Encode,
    sets: Sets,
    plugins: Installed,
) -> list[Result]:
    """Return the results with the numbers of installed metrics on each set."""
    from cse_core.models.part_factory import PartFactory
    from cse_core.parts import Metric
    from cse_core.recipes.composition import PlannedPart

    online = model.sentence_encoder
    make = PartFactory(online.encoder, online.tokenizer, model.device)
    metrics = {
        name: cast(
            Metric,
            make(PlannedPart.of(plugins.registry.find("metric", name)), online.encoder.hidden_size),
        )
        for name in names
    }
    by_name = {each.name: each for each in sets.sets}
    found = []
    for result in results:
        numbers = {
            f"{name}.{key}": value
            for name, metric in metrics.items()
            if result.name in by_name
            for key, value in metric.compute(encode, by_name[result.name]).items()
        }
        found.append(replace(result, metrics=numbers))
    return found
