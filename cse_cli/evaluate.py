"""``cse eval``: score models on graded pairs, words alone beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.completion import complete_data, complete_model
from cse_cli.console import say_json, say_table, tell, warn
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
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_core.evaluation.lexical import TextCollection
    from cse_core.evaluation.pairs import PairSet
    from cse_core.evaluation.sts import Result
    from cse_core.evaluation.vectors import Encode
    from cse_core.inference import SentenceModel

SUITES = ("sts",)


@dataclass
class Sets:
    """The sets that models are scored on.

    Attributes:
        synthetic: Names of those made up.
        missing: Test sets of the suite that are not there.
        folder: Where the suite is.
        notes: What to tell about the choice.
    """

    sets: list[PairSet]
    synthetic: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    folder: Path | None = None
    notes: list[str] = field(default_factory=list)


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
        typer.Option(metavar="sts", help="STS12-16, STS-B and SICK-R, as far as they are there."),
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
            "subset); may be repeated.",
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
    batch_tokens: BatchTokensOption = 8192,
    pairs_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each pair with gold score and cosine (tsv)."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An installed metric to compute too; may be repeated."),
    ] = None,
    subsets: Annotated[bool, typer.Option("--subsets", help="Show each subset's score.")] = False,
    no_baselines: Annotated[
        bool, typer.Option("--no-baselines", help="Leave TF-IDF and Jaccard out.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score models on graded pairs: Spearman of cosines, TF-IDF and Jaccard beside."""
    plugins = installed(context)
    _check_suites(suite or ())
    if pairs_out is not None and len(models) > 1:
        raise CseError("is for one model", where="--pairs-out", hint="evaluate them one by one")
    for name in models:
        check_model(name, plugins.registry, pooling=pooling, max_length=max_length)
    sets = _find_sets(plugins, suite or (), data_dir, pairs or (), data or ())
    for wanted in metric or ():
        plugins.registry.find("metric", wanted, where="--metric")
    from cse_core.evaluation.pairs_out import check_pairs_out, write_pairs_out
    from cse_core.evaluation.sts import evaluate_sts
    from cse_core.evaluation.vectors import Known

    if pairs_out is not None:
        check_pairs_out(pairs_out)
    words = _texts(idf, plugins) if idf is not None else None
    results: list[list[Result]] = []
    described: list[str] = []
    for name in models:
        model = load_model(
            name,
            plugins.registry,
            pooling=pooling,
            max_length=max_length,
            device=device,
            precision=precision,
        )
        encode = Known(encoder(model, batch_tokens), chain(*(each.texts for each in sets.sets)))
        scored = evaluate_sts(encode, sets.sets, not no_baselines, words)
        results.append(_with_metrics(scored, metric or (), model, encode, sets, plugins))
        described.append(f"{model.description}, at most {model.stack.max_length} tokens")
    for note in sets.notes:
        tell(note)
    if pairs_out is not None:
        write_pairs_out(pairs_out, sets.sets, [r.cosines for r in results[0] if not r.sets])
        tell(f"pairs with their cosines are in {pairs_out}")
    if json:
        say_json(_as_json(models, described, results, sets))
    else:
        _show(models, described, results, sets, subsets)


def _with_metrics(
    results: list[Result],
    names: Sequence[str],
    model: SentenceModel,
    encode: Encode,
    sets: Sets,
    plugins: Installed,
) -> list[Result]:
    """Return the results with the numbers of installed metrics on each set."""
    from cse_core.inference import make_metric

    by_name = {each.name: each for each in sets.sets}
    found = []
    for result in results:
        numbers = {
            f"{name}.{key}": value
            for name in names
            if result.name in by_name
            for key, value in make_metric(name, model, plugins.registry)
            .compute(encode, by_name[result.name])
            .items()
        }
        found.append(replace(result, metrics=numbers))
    return found


def _check_suites(names: list[str] | tuple[()]) -> None:
    for name in names:
        if name not in SUITES:
            raise CseError(
                "there is no suite of this name",
                where="--suite",
                value=name,
                hint=did_you_mean(name, SUITES),
            )


def _find_sets(
    plugins: Installed,
    suites: list[str] | tuple[()],
    data_dir: Path | None,
    files: list[str] | tuple[()],
    names: list[str] | tuple[()],
) -> Sets:
    from cse_core.evaluation.pairs import read_pairs
    from cse_core.evaluation.suite import find_suite, locate_suite

    found = Sets([])
    wanted = list(names)
    use_suite = bool(suites) or data_dir is not None
    if not (use_suite or files or names):
        use_suite = any(locate_suite().values())
        wanted = [] if use_suite else list(plugins.datasets)
        if not use_suite and not wanted:
            raise CseError(
                "nothing to score on: no data set is installed and no STS file is found",
                hint="name pairs with --pairs FILE, or --suite sts --data-dir DIR",
            )
        what = "the STS suite" if use_suite else f"the test pairs of {', '.join(wanted)}"
        found.notes.append(f"no --suite, --pairs or --data: scored on {what}")
    if use_suite:
        suite = find_suite(data_dir)
        found.sets += suite.sets
        found.missing, found.folder = suite.missing, suite.folder
        if suite.missing:
            missing = ", ".join(suite.missing)
            found.notes.append(f"not there, looked for in {suite.folder}: {missing}")
    found.sets += [read_pairs(file) for file in files]
    made_up = set()
    for name in wanted:
        pairs = _installed_pairs(name, plugins)
        found.sets.append(pairs)
        if plugins.datasets[name].synthetic:
            made_up.add(pairs.name)
    found.synthetic = frozenset(made_up)
    return found


def _installed_pairs(name: str, plugins: Installed) -> PairSet:
    from cse_core.evaluation.pairs import pairs_from_rows
    from cse_core.loading import load_factory

    spec = plugins.registry.dataset(name, where="--data").spec
    return pairs_from_rows(f"{name}.test", load_factory(spec.factory)().pairs("test"))


def _texts(file: str, plugins: Installed) -> TextCollection:
    from cse_core.data import load_corpus
    from cse_core.evaluation.lexical import TextCollection
    from cse_core.settings import DataOptions

    corpus = load_corpus(DataOptions(path=(file,)), datasets=plugins.datasets)
    return TextCollection(Path(file).name, list(corpus.column("text")))


def _as_json(
    models: list[str], described: list[str], results: list[list[Result]], sets: Sets
) -> dict[str, Any]:
    from cse_core.evaluation.report import results_json

    scored = []
    for name, description, own in zip(models, described, results, strict=True):
        told: dict[str, Any] = {"model": name, "encoder": description, **results_json(own)}
        for each in sets.synthetic:
            told["results"][each]["synthetic"] = True
        scored.append(told)
    rest: dict[str, Any] = {"missing": list(sets.missing)}
    if sets.folder is not None:
        rest["folder"] = str(sets.folder)
    return {**scored[0], **rest} if len(scored) == 1 else {"models": scored, **rest}


def _show(
    models: list[str],
    described: list[str],
    results: list[list[Result]],
    sets: Sets,
    subsets: bool,
) -> None:
    from cse_core.evaluation.report import comparison_table, results_table

    for name, description in zip(models, described, strict=True):
        tell(f"{name}: {description}")
    if len(models) == 2:
        say_table(comparison_table(results[0], results[1], (models[0], models[1])))
    else:
        for name, own in zip(models, results, strict=True):
            say_table(results_table(own, name, subsets))
    for name, own in zip(models, results, strict=True):
        for result in own:
            for key, value in result.metrics.items():
                tell(f"{name}, {result.name}: {key} {value:.4f} over {result.pairs} pairs")
    if sets.synthetic:
        warn(
            f"{', '.join(sorted(sets.synthetic))}: synthetic sentences, made by a grammar for "
            "trying things; no benchmark"
        )
