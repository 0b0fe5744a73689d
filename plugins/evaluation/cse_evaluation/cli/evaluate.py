"""``cse eval``: score models on graded pairs and labelled texts, words alone beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cse_cli.completion import complete_data, complete_model, complete_suite
from cse_cli.console import say_json, tell
from cse_cli.installed import Installed, installed
from cse_cli.models import (
    BatchTokensOption,
    DeviceOption,
    MaxLengthOption,
    PoolingOption,
    PrecisionOption,
    check_model,
    encoder,
    load_model,
)
from cse_core.errors import CseError
from cse_core.evaluation.suites import SuiteScore
from cse_evaluation.cli.changes import Changes
from cse_evaluation.cli.graded import Sets, find_sets, read_texts
from cse_evaluation.cli.probes import (
    Groups,
    find_tasks,
    score_tasks,
    score_words_of,
    show_tasks,
    shown_progress,
    warn_of_lengths,
)
from cse_evaluation.cli.retrieval import (
    Words,
    find_document_sets,
    score_document_words,
    score_documents,
    show_retrieval,
)
from cse_evaluation.cli.scores import scores_json, show_scores
from cse_evaluation.cli.suites import (
    add_suites,
    check_sets,
    read_suites,
    score_suites,
    show_suites,
)
from cse_evaluation.plugin import cse_suites

if TYPE_CHECKING:
    from cse_core.evaluation.suites import Encode
    from cse_core.models.saved_model import SentenceModel
    from cse_evaluation.retrieval import RetrievalResult
    from cse_evaluation.sts import Result
    from cse_evaluation.task_result import TaskResult, WordScore


def evaluate(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="A run, a model folder, an installed encoder such as starter, or a hub name; two "
            "are compared side by side.",
            autocompletion=complete_model,
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="As far as they are there: sts (STS12-16, STS-B, SICK-R), chinese (C-STS-B), "
            "transfer (MR, CR, SUBJ, MPQA, SST2, TREC, MRPC), classify (every labelled file of "
            "the folder), or retrieval (every file of documents with titles); may be repeated.",
            autocompletion=complete_suite,
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the suite's files are; else CSE_DATA_DIR says it."),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Graded pairs: tsv, csv, jsonl or parquet with sentence1, sentence2, score (and "
            "subset), or labelled 0 and 1; may be repeated.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="NAME",
            help="The test pairs of an installed data set, such as starter; may be repeated.",
            autocompletion=complete_data,
        ),
    ] = None,
    labelled: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Labelled texts to classify: tsv, csv, jsonl or parquet with label and text; "
            "NAME.train and NAME.test belong together, one file is cross-validated; may be "
            "repeated.",
        ),
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Documents with titles, each to find its own title among all: articles with "
            "sections or paras, or rows with text, document and title; may be repeated.",
        ),
    ] = None,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="More texts among which documents look for their titles: the titles of a file "
            "that has them, else its texts; may be repeated.",
        ),
    ] = None,
    similarity: Annotated[
        str,
        typer.Option(metavar="cosine|dot", help="What ranks titles; dot is the inner product."),
    ] = "cosine",
    long_texts: Annotated[
        str | None,
        typer.Option(
            metavar="cut|slice",
            help="Labelled texts longer than the model takes: cut them, or average the vectors of "
            "slices; by default transfer is cut, other labelled texts are sliced.",
        ),
    ] = None,
    classifier: Annotated[
        str,
        typer.Option(
            metavar="exact|senteval",
            help="What classifies labelled texts: logistic regression, or SentEval's own layer "
            "trained by Adam, as in the tables of papers.",
        ),
    ] = "exact",
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of labelled texts' folds.")
    ] = 1111,
    idf: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Texts whose document frequencies TF-IDF uses; by default each set's own.",
        ),
    ] = None,
    pooling: PoolingOption = None,
    max_length: MaxLengthOption = None,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "fp32",
    batch_tokens: BatchTokensOption = None,
    pairs_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each pair with gold score and cosine (tsv)."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An installed metric to compute too; may be repeated."),
    ] = None,
    aug: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An installed augmenter that changes the second sentence of each pair before it "
            "is encoded; of a run it has the run's options; may be repeated.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="aug.NAME.OPTION=VALUE", help="An option of an augmenter of --aug."
        ),
    ] = None,
    dropout: Annotated[
        bool, typer.Option("--dropout", help="Encode second sentences with dropout on.")
    ] = False,
    subsets: Annotated[bool, typer.Option("--subsets", help="Show each subset's score.")] = False,
    no_baselines: Annotated[
        bool, typer.Option("--no-baselines", help="Leave TF-IDF and Jaccard out.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score models: Spearman on graded pairs, a classifier on labelled texts, titles retrieved."""
    plugins = installed(context)
    specs = {name: plugins.registry.suite(name).spec for name in suite or ()}.values()
    own = [spec.name for spec in specs if spec in cse_suites()]
    if pairs_out is not None and len(models) > 1:
        raise CseError("is for one model", where="--pairs-out", hint="evaluate them one by one")
    for name in models:
        check_model(name, plugins.registry, pooling=pooling, max_length=max_length)
    tasks = find_tasks(own, data_dir, labelled or (), long_texts, classifier)
    held = find_document_sets(own, data_dir, documents or (), candidates or (), similarity)
    others = read_suites([spec for spec in specs if spec not in cse_suites()], data_dir)
    other = bool(tasks.groups or held or others)
    sets = find_sets(plugins, own, data_dir, pairs or (), data or (), other)
    _check_names(sets, tasks)
    if pairs_out is not None and not sets.sets:
        raise CseError("there are no graded pairs to write", where="--pairs-out",
                       hint="name some with --pairs FILE or --suite sts")  # fmt: skip
    changes = Changes(tuple(aug or ()), tuple(settings or ()), dropout, seed)
    _check_changes(changes, models, sets, plugins)
    for wanted in metric or ():
        plugins.registry.find("metric", wanted, where="--metric")
    from cse_evaluation.pairs_out import check_pairs_out, write_pairs_out
    from cse_evaluation.sts import evaluate_sts
    from cse_evaluation.vectors import EncodedTexts

    if pairs_out is not None:
        check_pairs_out(pairs_out)
    words = read_texts(idf, plugins) if idf is not None else None
    results: list[list[Result]] = []
    classified: list[list[TaskResult]] = []
    retrieved: list[list[RetrievalResult]] = []
    scores: list[list[list[SuiteScore]]] = []
    described: list[str] = []
    lengths: list[int] = []
    with shown_progress(json) as progress:
        known: dict[str, WordScore] = {}
        titles: Words = {}
        for name in models:
            model = load_model(
                name,
                plugins.registry,
                pooling=pooling,
                max_length=max_length,
                device=device,
                precision=precision,
            )
            described.append(
                f"{model.description}, at most {model.sentence_encoder.max_length} tokens"
            )
            lengths.append(model.sentence_encoder.max_length)
            texts = chain(*(each.texts for each in sets.sets))
            encode = EncodedTexts(encoder(model, batch_tokens), texts)
            if sets.sets:
                if changes:
                    encode = changes.encoder(model, encode, sets.sets, plugins)
                scored = evaluate_sts(encode, sets.sets, not (no_baselines or changes), words)
                if changes:
                    scored = [replace(each, setting=changes.setting) for each in scored]
                results.append(_with_metrics(scored, metric or (), model, encode, sets, plugins))
            if tasks.groups:
                if not (known or no_baselines):  # now that the model is known to load
                    known = score_words_of(tasks, seed, progress)
                classified.append(
                    score_tasks(
                        model,
                        tasks,
                        known,
                        batch_tokens=batch_tokens,
                        classifier=classifier,
                        seed=seed,
                        progress=progress,
                        max_length=max_length,
                    )
                )
            if held:
                titles = titles or ({} if no_baselines else score_document_words(held))
                retrieved.append(score_documents(encode, held, titles, progress, similarity))
            scores.append(score_suites(others, encode, progress))
    names = [each.name for kind in (results, classified, retrieved) for each in chain(*kind[:1])]
    check_sets([*names, *(score.name for score in chain(*scores[0]))])
    for note in (*sets.notes, *tasks.notes):
        tell(note)
    for each in others:
        if each.missing:
            tell(f"not there, looked for in {each.folder}: {', '.join(each.missing)}")
    if results:
        warn_of_lengths(models, lengths)
    if pairs_out is not None:
        write_pairs_out(pairs_out, sets.sets, [r.cosines for r in results[0] if not r.sets])
        tell(f"pairs with their cosines are in {pairs_out}")
    if json:
        told = scores_json(models, described, results, sets, classified, tasks, retrieved)
        say_json(add_suites(told, others, scores))
        return
    for name, description in zip(models, described, strict=True):
        tell(f"{name}: {description}")
    if results:
        show_scores(models, results, sets, subsets)
    if classified:
        show_tasks(models, classified)
    if retrieved:
        show_retrieval(models, retrieved)
    show_suites(others, models, scores)


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
