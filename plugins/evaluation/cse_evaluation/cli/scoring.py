"""What ``cse eval`` and ``cse.evaluate`` do: read what was asked for, score every model on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cse_cli.machine.out_files import check_out_file
from cse_cli.models.approximate import chosen_index
from cse_cli.models.loading import TextEncoder, check_model, load_model
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.console import tell, warn
from cse_core.errors import CseError, did_you_mean
from cse_core.evaluation.suites import Progress, SuiteScore
from cse_evaluation.cli.changes import Changes
from cse_evaluation.cli.graded import Sets, find_sets, read_texts
from cse_evaluation.cli.kept import keep
from cse_evaluation.cli.probes import (
    Groups,
    find_tasks,
    score_tasks,
    score_words_of,
    shown_progress,
    warn_of_lengths,
)
from cse_evaluation.cli.retrieval import (
    Words,
    find_document_sets,
    score_document_words,
    score_documents,
)
from cse_evaluation.cli.scores import scores_json
from cse_evaluation.cli.suites import Wanted, add_suites, check_sets, read_suites, score_suites
from cse_evaluation.plugin import cse_suites

if TYPE_CHECKING:
    from cse_cli.models.saved_model import SentenceModel
    from cse_core.evaluation.suites import Encode
    from cse_evaluation.retrieval import RetrievalResult
    from cse_evaluation.sts import Result
    from cse_evaluation.task_result import TaskResult, WordScore


@dataclass(frozen=True)
class Request:
    """What to score, on what, how; each field is the option of ``cse eval`` of its name.

    Attributes:
        settings: ``aug.NAME.OPTION=VALUE``, the values of ``--set``.
    """

    models: tuple[str, ...]
    suite: tuple[str, ...] = ()
    data_dir: Path | None = None
    pairs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    similarity: str = "cosine"
    index: str = "auto"
    long_texts: str | None = None
    classifier: str = "exact"
    seed: int = 1111
    idf: str | None = None
    pooling: str | None = None
    max_length: int | None = None
    device: str = "auto"
    precision: str = "fp32"
    batch_tokens: int | None = None
    pairs_out: Path | None = None
    items_out: Path | None = None
    metric: tuple[str, ...] = ()
    aug: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    dropout: bool = False
    no_baselines: bool = False

    @classmethod
    def of(cls, models: Sequence[str], options: dict[str, Any]) -> Request:
        """Return a request whose options come from Python: one name stands for a list of one.

        Raises:
            CseError: If an option is unknown, or no model is named.
        """
        known = {each.name: each for each in fields(cls) if each.name != "models"}
        values: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise CseError("unknown option", where=name, value=value, hint=hint)
            if known[name].default == () and value is not None:
                one = isinstance(value, str | Path)
                value = tuple(map(str, [value] if one else value))
            elif name in ("data_dir", "pairs_out", "items_out") and value is not None:
                value = Path(value)
            values[name] = () if value is None and known[name].default == () else value
        if not models:
            raise CseError("no model is named", hint="name a run, a model folder or starter")
        return cls(tuple(models), **values)

    def changed(self) -> dict[str, Any]:
        """Return the options that are not the defaults, files by their whole paths."""
        found: dict[str, Any] = {}
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if value != each.default:
                several = isinstance(value, tuple)
                texts = [_whole(one) for one in (value if several else [value])]
                found[each.name] = texts if several else texts[0]
        return found


def _whole(value: Any) -> Any:
    there = isinstance(value, Path) or (isinstance(value, str) and os.path.isfile(value))
    return os.path.abspath(value) if there else value


@dataclass
class Evaluation:
    """The scores of every model, in the order of the request.

    Attributes:
        described: Each model's pooling and length in words.
        results: On graded pairs.
        classified: On labelled texts.
        retrieved: On documents with titles.
        scores: On suites of other distributions, which are ``others``.
    """

    request: Request
    sets: Sets
    tasks: Groups
    others: list[Wanted]
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
            self.sets,
            self.classified,
            self.tasks,
            self.retrieved,
        )
        return add_suites(shown, self.others, self.scores)


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
    specs = {name: plugins.registry.suite(name).spec for name in request.suite}.values()
    own = [spec.name for spec in specs if spec in cse_suites()]
    pairs_out, items_out = request.pairs_out, request.items_out
    baselines = not request.no_baselines
    for flag, file in (("--pairs-out", pairs_out), ("--items-out", items_out)):
        if file is not None and len(request.models) > 1:
            raise CseError("is for one model", where=flag, hint="evaluate them one by one")
    for name in request.models:
        check_model(name, plugins.registry, pooling=request.pooling, max_length=request.max_length)
    tasks = find_tasks(
        own, request.data_dir, request.labelled, request.long_texts, request.classifier
    )
    held = find_document_sets(
        own, request.data_dir, request.documents, request.candidates, request.similarity
    )
    chosen_index(request.index, 0, 0)
    others = read_suites([spec for spec in specs if spec not in cse_suites()], request.data_dir)
    other = bool(tasks.groups or held or others)
    pairs, data = list(request.pairs), list(request.data)
    sets = find_sets(plugins, own, request.data_dir, pairs, data, other)
    _check_names(sets, tasks)
    if pairs_out is not None and not sets.sets:
        raise CseError("there are no graded pairs to write", where="--pairs-out",
                       hint="name some with --pairs FILE or --suite sts")  # fmt: skip
    if items_out is not None and not tasks.groups and not held:
        raise CseError("there are no documents and no labelled texts to write",
                       where="--items-out",
                       hint="name some with --documents FILE or --labelled FILE")  # fmt: skip
    changes = Changes(request.aug, request.settings, request.dropout, request.seed)
    _check_changes(changes, request.models, sets, plugins)
    for wanted in request.metric:
        plugins.registry.find("metric", wanted, where="--metric")
    from cse_evaluation.item_files import write_items_out, write_pairs_out
    from cse_evaluation.sts import evaluate_sts
    from cse_evaluation.vectors import EncodedTexts

    for flag, file in {"--pairs-out": pairs_out, "--items-out": items_out}.items():
        if file is not None:
            check_out_file(file, flag)
    words = read_texts(request.idf, plugins) if request.idf is not None else None
    found = Evaluation(request, sets, tasks, others)
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
            scored = evaluate_sts(encode, sets.sets, baselines and not changes, words)
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
        if held:
            titles = titles or (score_document_words(held) if baselines else {})
            found.retrieved.append(
                score_documents(encode, held, titles, progress, request.similarity, request.index)
            )
        found.scores.append(score_suites(others, encode, progress))
        if encoder.note:
            cuts.append(f"{name}: {encoder.note}")
    kinds = (found.results, found.classified, found.retrieved)
    names = [each.name for kind in kinds for each in chain(*kind[:1])]
    check_sets([*names, *(score.name for score in chain(*found.scores[0]))])
    for note in (*sets.notes, *tasks.notes):
        tell(note)
    for each in others:
        if each.missing:
            tell(f"not there, looked for in {each.folder}: {', '.join(each.missing)}")
    for cut in cuts:
        warn(cut)
    if found.results:
        warn_of_lengths(request.models, lengths)
    if pairs_out is not None:
        write_pairs_out(pairs_out, sets.sets, [r.cosines for r in found.results[0] if not r.sets])
        tell(f"pairs with their cosines are in {pairs_out}")
    if items_out is not None:
        write_items_out(items_out, chain(*found.classified[:1]), chain(*found.retrieved[:1]))
        tell(f"ranks of documents' titles and labels that were right are in {items_out}")
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


def _check_changes(changes: Changes, models: Sequence[str], sets: Sets, plugins: Installed) -> None:
    """Refuse changes of nothing, and those that no model can have."""
    if changes and not sets.sets:
        raise CseError("there are no graded pairs to change", where="--aug",
                       hint="name some with --pairs FILE or --suite sts")  # fmt: skip
    for name in models:
        changes.planned(name, plugins)


def _check_names(sets: Sets, tasks: Groups) -> None:
    both = {each.name for each in sets.sets} & {task.name for task in tasks.tasks}
    if both:
        raise CseError(
            f"graded pairs and labelled texts are both called {min(both)!r}",
            hint="rename one of the files, or evaluate them one by one",
        )
