"""What models are scored on: read, and refused, before any model is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cse_cli.machine.out_files import check_out_file
from cse_cli.models.approximate import chosen_index
from cse_cli.models.loading import check_model
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.console import echo_err, plain_table, say_json, say_table
from cse_core.errors import CseError
from cse_evaluation.cli.changes import Changes
from cse_evaluation.cli.graded import Sets, find_sets, read_texts
from cse_evaluation.cli.probes import Groups, find_tasks
from cse_evaluation.cli.request import Request
from cse_evaluation.cli.retrieval import find_document_sets
from cse_evaluation.cli.suites import Wanted, check_sets, read_suites
from cse_evaluation.plugin import cse_suites

if TYPE_CHECKING:
    from cse_evaluation.documents import DocumentSet
    from cse_evaluation.lexical import TextCollection


@dataclass(frozen=True)
class Sources:
    """What a request is scored on.

    Attributes:
        sets: Graded pairs.
        tasks: Labelled texts.
        documents: Documents with titles.
        others: Suites of other distributions.
        changes: What changes the second sentences of pairs.
        words: Texts whose document frequencies TF-IDF uses, None for each set's own.
    """

    sets: Sets
    tasks: Groups
    documents: list[DocumentSet]
    others: list[Wanted]
    changes: Changes
    words: TextCollection | None

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each set: its name, kind and size; a suite's sets are its own matter."""
        kinds: dict[str, dict[str, int | None]] = {
            "graded pairs": {each.name: len(each.pairs) for each in self.sets.sets},
            "labelled texts": {each.name: len(each.texts) for each in self.tasks.tasks},
            "documents": {each.name: len(each) for each in self.documents},
            "suite": dict.fromkeys(each.spec.name for each in self.others),
        }
        return [
            {"name": name, "kind": kind, "size": size}
            for kind, sizes in kinds.items()
            for name, size in sizes.items()
        ]

    @property
    def missing(self) -> list[str]:
        """Return the names of the suites' sets that are not there."""
        others = (name for each in self.others for name in each.missing)
        return [*self.sets.missing, *self.tasks.missing, *others]


def read_sources(request: Request, plugins: Installed) -> Sources:
    """Read what a request is scored on, and check the rest of it.

    Raises:
        CseError: If a model, a file or an option is missing or wrong.
    """
    specs = {name: plugins.registry.suite(name).spec for name in request.suite}.values()
    own = [spec.name for spec in specs if spec in cse_suites()]
    outs = {"--pairs-out": request.pairs_out, "--items-out": request.items_out}
    for flag, file in outs.items():
        if file is not None and len(request.models) > 1:
            raise CseError("is for one model", where=flag, hint="evaluate them one by one")
    for name in request.models:
        check_model(name, plugins.registry, pooling=request.pooling, max_length=request.max_length)
    tasks = find_tasks(
        own, request.data_dir, request.labelled, request.long_texts, request.classifier
    )
    documents = find_document_sets(
        own, request.data_dir, request.documents, request.candidates, request.similarity
    )
    chosen_index(request.index, 0, 0)
    others = read_suites([spec for spec in specs if spec not in cse_suites()], request.data_dir)
    other = bool(tasks.groups or documents or others)
    pairs, data = list(request.pairs), list(request.data)
    sets = find_sets(plugins, own, request.data_dir, pairs, data, other)
    names = [task.name for task in tasks.tasks]
    check_sets([each.name for each in sets.sets] + names + [each.name for each in documents])
    if request.pairs_out is not None and not sets.sets:
        raise CseError("there are no graded pairs to write", where="--pairs-out",
                       hint="name some with --pairs FILE or --suite sts")  # fmt: skip
    if request.items_out is not None and not tasks.groups and not documents:
        raise CseError("there are no documents and no labelled texts to write",
                       where="--items-out",
                       hint="name some with --documents FILE or --labelled FILE")  # fmt: skip
    changes = Changes(request.aug, request.settings, request.dropout, request.seed)
    if changes and not sets.sets:
        raise CseError("there are no graded pairs to change", where="--aug",
                       hint="name some with --pairs FILE or --suite sts")  # fmt: skip
    for name in request.models:
        changes.planned(name, plugins)
    for metric in request.metric:
        plugins.registry.find("metric", metric, where="--metric")
    for flag, file in outs.items():
        if file is not None:
            check_out_file(file, flag)
    words = read_texts(request.idf, plugins) if request.idf is not None else None
    return Sources(sets, tasks, documents, others, changes, words)


def show_sources(sources: Sources, *, json: bool) -> None:
    """Print what models would be scored on."""
    rows = sources.rows()
    if json:
        say_json({"sets": rows, "missing": sources.missing})
        return
    table = plain_table("scored on", ("set", "of", "number"))
    for row in rows:
        table.add_row(row["name"], row["kind"], "" if row["size"] is None else f"{row['size']:,}")
    say_table(table)
    if sources.missing:
        echo_err(f"not there: {', '.join(sources.missing)}")
