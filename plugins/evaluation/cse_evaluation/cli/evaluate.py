"""``cse eval``: score models on graded pairs and labelled texts, words alone beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cse_cli.api import (
    Loading,
    complete_data,
    complete_model,
    complete_suite,
    installed,
    model_flags,
    progress,
    say_json,
    shared,
)
from cse_evaluation.cli.report import show
from cse_evaluation.cli.scoring import score_models
from cse_evaluation.cli.sources import Request, read_sources, show_sources


@shared
@model_flags
def evaluate(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="A run, a model folder, an installed encoder such as starter, or a hub name; two "
            "are compared side by side.",
            autocompletion=complete_model,
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Suites, where available: sts (STS12-16, STS-B, SICK-R), chinese (C-STS-B), "
            "transfer (MR, CR, SUBJ, MPQA, SST2, TREC, MRPC), classify (every labelled file of "
            "the folder), retrieval (every file of documents with titles), or collections (every "
            "test collection of the folder: judged queries); may be repeated.",
            autocompletion=complete_suite,
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the suite's files; by default CSE_DATA_DIR."),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Graded pairs: tsv, csv, jsonl or parquet with sentence1, sentence2, score (and "
            "subset), or labelled 0 and 1; or owner/name@split of the hub; may be repeated.",
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
            "sections or paras, rows with text, document and title, or an installed data set; may "
            "be repeated.",
        ),
    ] = None,
    collections: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER",
            help="A test collection, documents with judged queries: corpus.jsonl, queries.jsonl "
            "and qrels/test.tsv (BEIR), or a table of documents, topics and qrels (TREC); or one "
            "of its files of judgements; may be repeated.",
        ),
    ] = None,
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
    pairs_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each pair with gold score and cosine (tsv)."),
    ] = None,
    items_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write each document's rank, each judged query's measures, and whether each "
            "text's label was right (tsv).",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An installed metric to compute too; may be repeated."),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Order the first 50 documents of judged queries by late interaction of the "
            "model's vectors of a level, such as token.",
        ),
    ] = None,
    queries_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Encode judged queries with another model of the same space.",
            autocompletion=complete_model,
        ),
    ] = None,
    no_baselines: Annotated[
        bool, typer.Option("--no-baselines", help="Leave TF-IDF, Jaccard and BM25 out.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read all of it, list it, and score nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    loading: Loading,
) -> None:
    """Score models on graded pairs, labelled texts, titles and judged queries."""
    shown = ("dry_run", "json")
    options = {name: value for name, value in context.params.items() if name not in shown}
    request = Request.of(options.pop("models"), options)
    if dry_run:
        show_sources(read_sources(request, installed(context)), json=json)
        return
    with progress(json=json) as reporter:
        result = score_models(request, installed(context), reporter.progress)
    if json:
        say_json(result.to_dict())
    else:
        show(result)
