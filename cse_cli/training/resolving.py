"""From the command line to a checked composition; imports no torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cse_cli.options.flags import Choice
from cse_core.errors import CseError, collect_errors, raise_all
from cse_core.options import Options, is_location

if TYPE_CHECKING:
    from cse_cli.options.paths import OptionPath
    from cse_cli.plugins.installed import Installed
    from cse_core.records import Kind
    from cse_core.registry.registry import Registry
    from cse_defaults.texts import Corpus
    from cse_engine.compose.composition import Composition, PlannedPart

OptionsT = TypeVar("OptionsT", bound=Options)
_WORDS = (None, "auto", "none", "self")
"""Values that name no file, whatever lies in the working folder."""


def composition_of(choice: Choice, plugins: Installed, *, look: bool = True) -> Composition:
    """Compose and check the flags of :func:`choice_flags`.

    Args:
        choice: The command line's choice.
        plugins: The installed plugins.
        look: Whether to read the data.

    Raises:
        CseError: If it cannot be composed; ``CseErrors`` with several mistakes.
    """
    from cse_cli.plugins.folders import known_set
    from cse_engine.compose.compose import resolve
    from cse_engine.compose.models import Models

    dev = [known_set(name, plugins, "--dev") for name in choice.dev]
    data = [_with_weight(name, plugins.registry) for name in choice.data]
    weights = [weight for _, weight in data] if any(weight != 1 for _, weight in data) else []
    # Of a recipe they are about its own data.
    about_data = [f"data.weights={weights}", "data.prompts=[]"] if data else []
    errors: list[CseError] = []
    with collect_errors(errors):
        composition = resolve(
            plugins.registry,
            recipe=choice.recipe,
            kinds=cast("dict[Kind, list[str]]", choice.kinds),
            sets=[*about_data, *choice.sets],
            model=choice.model,
            data=[name for name, _ in data],
            dev=dev,
            lookup=plugins.read if look else None,
        )
    if errors and dev and look:  # dev sets that cannot be read are reported beside other mistakes
        from cse_engine.compose.settings import TrainOptions
        from cse_engine.run.dev_sets import dev_sets

        with collect_errors(errors):
            dev_sets(TrainOptions(dev=tuple(dev)), (), plugins.registry, lambda _: None)
    raise_all(errors)
    for name in (composition.model.name, *composition.named):
        Models(plugins.registry).check(name)
    read = composition.read
    corpus = None if read is None else read.corpus(composition.needed_columns)
    lines = list(advice(composition, plugins.registry, corpus))
    return replace(composition, warnings=(*composition.warnings, *lines))


def _with_weight(data: str, registry: Registry) -> tuple[str, float]:
    """Return name and weight of ``FILE:2``, where ``FILE`` ends as a file of texts does."""
    from cse_core.registry.names import ending_of

    match = re.fullmatch(r"(.+):(\d+\.?\d*|\.\d+)", data)
    if match is None or not ending_of(match[1], registry) or os.path.exists(data):
        return data, 1.0
    return match[1], float(match[2])


def help_options(choice: Choice, installed: Installed) -> list[OptionPath]:
    """Return the options that help shows: those of the run, or as far as the choice makes sense."""
    from cse_cli.options.paths import option_paths

    for attempt in (choice, replace(choice, sets=[])):
        try:
            return option_paths(composition_of(attempt, installed, look=False))
        except CseError:
            continue
    return option_paths(_parts_alone(choice, installed))


def _parts_alone(choice: Choice, installed: Installed) -> list[PlannedPart]:
    """Return the named parts that there are, with their default options."""
    from cse_engine.compose.composition import PlannedPart

    parts = []
    for kind, names in choice.kinds.items():
        for text in names:
            owner, slash, rest = text.lstrip("+~").rpartition("/")
            bare, _, name = rest.partition(":")
            try:
                record = installed.registry.find(cast("Kind", kind), f"{owner}{slash}{bare}")
                options = record.spec.default_options()
            except CseError:
                continue
            if options is not None and not text.startswith("~"):
                parts.append(PlannedPart.of(record, options, name or bare))
    return parts


def absolute_path(value: Any, registry: Registry) -> Any:
    """Return the absolute path of a file or folder that is there; any other value as it is.

    Names of installed encoders and data sets go before files. ``?options`` of a file stay.
    """
    path, mark, how = os.path.expanduser(value or ""), "", ""
    if not os.path.exists(path):
        path, mark, how = path.partition("?")
    name = value in _WORDS or registry.has("encoder", value) or value in registry.datasets()
    return value if name or not os.path.exists(path) else os.path.abspath(path) + mark + how


def with_absolute_paths(composition: Composition, registry: Registry) -> Composition:
    """Return a composition whose files and folders are found again from anywhere."""

    def absolute(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(absolute, value))
        return absolute_path(value, registry)

    def located(options: OptionsT) -> OptionsT:
        fields = type(options).model_fields.items()
        names = [name for name, info in fields if is_location(info)]
        return options.model_copy(update={n: absolute(getattr(options, n)) for n in names})

    from cse_engine.compose.reading import CORE_TABLES

    core: Any = {name: located(getattr(composition, name)) for name in CORE_TABLES}
    parts = tuple(replace(part, options=located(part.options)) for part in composition.parts)
    named = {absolute(name): other for name, other in composition.named.items()}
    return replace(composition, parts=parts, named=named, **core)


def advice(run: Composition, registry: Registry, corpus: Corpus | None = None) -> Iterator[str]:
    """Yield a line for each setting of a composition that may be a mistake; also on its rows."""
    yield from _of_sizes(run)
    yield from _of_negatives(run, corpus)
    yield from _of_weights(run)
    yield from _of_patience(run, registry)


def _of_sizes(run: Composition) -> Iterator[str]:
    """Yield warnings of sizes that do not fit each other."""
    train, facts = run.train, run.facts
    typed = {path for path, origin in run.origins.items() if origin == "the command line"}
    if "train.epochs" in typed and "train.max_steps" not in typed and train.max_steps is not None:
        yield f"train.epochs is not used: train.max_steps = {train.max_steps} ends the run"
    if "data.shuffle" in typed and run.of("sampler"):
        yield f"data.shuffle is not used: {run.of('sampler')[0].path} orders the rows"
    if train.chunk_size is not None and train.chunk_size > train.batch_size:
        yield (
            f"train.chunk_size {train.chunk_size} is larger than train.batch_size "
            f"{train.batch_size}: nothing is chunked"
        )
    if facts.steps is not None and train.warmup > facts.steps:
        yield f"train.warmup {train.warmup:g} is longer than the run ({facts.steps} steps)"
    if facts.rows is not None and facts.rows < train.batch_size:
        yield (
            f"train.batch_size {train.batch_size} is larger than the data ({facts.rows} rows): "
            "each epoch is one short batch"
        )


def _of_negatives(run: Composition, corpus: Corpus | None) -> Iterator[str]:
    """Yield warnings of batches whose rows are no negatives of each other, or should be none.

    Raises:
        CseError: If each negative of the data is the text of its anchor or of its positive.
    """
    from cse_cli.texts.corpus_facts import most_anchors, same_texts

    size, rows = run.train.batch_size, run.facts.rows or 0
    given = run.of("negatives") or any(view.role == "negative" for view in run.views)
    if rows > size > 1 == rows % size and not given:
        yield (
            f"the last batch of each epoch is a single row, which has no negative: {rows:,} rows "
            f"in batches of {size:,}; change train.batch_size or data.limit"
        )
    if corpus is None:
        return
    columns = [name for name in corpus.names if name not in ("text", *run.mined_columns)]
    columns = [name for name in columns if corpus.offsets(name) is None]
    positives = [name for name in columns if name in run.read_columns("positive")]
    for column in positives:
        most, pairs = most_anchors(corpus, column)
        if most > 1 and most * size >= 2 * pairs:
            yield (
                f"{most:,} of {pairs:,} pairs have the same text in column {column!r}: in a "
                "batch each is a negative of the others, because same_text compares only anchors"
            )
    for column in (name for name in columns if name in run.read_columns("negative")):
        same = same_texts(
            corpus, column, ["text", *(other for other in positives if other != column)]
        )
        if sum(same.values()) >= len(corpus):
            what = f"every text of column {column} is that of its row's {' or '.join(same)}"
            hint = "write or mine other negatives, or remove the column"
            raise CseError(what, where=", ".join(corpus.report.names), hint=hint)
        for other, count in same.items():
            yield (
                f"{count:,} of {len(corpus):,} negatives are the same text as their {other}: "
                "training takes them as negatives all the same, and pushes that text away"
            )


def _of_weights(run: Composition) -> Iterator[str]:
    """Yield warnings of negative weights of losses, such as ``1 - alpha`` of an alpha above 1."""
    for loss, weight in run.weights():
        least = weight.bounds[0]
        if least < 0:
            yield (f"{loss.path}.weight is below zero ({least:g}): training increases that loss")


def _of_patience(run: Composition, registry: Registry) -> Iterator[str]:
    """Yield warnings of a patience that nothing can try: scores are what it waits for.

    Where a recipe counts on it, such as one whose steps at most are many more than it takes, the
    run would be as much longer, and nothing else would say so.
    """
    train, installed = run.train, registry.datasets()
    has_pairs = any(path in installed for path in run.data.path)  # what auto finds pairs of
    named = (has_pairs if name == "auto" else name != "none" for name in train.dev)
    has_dev = run.data.held_out or any(named)
    if has_dev and train.eval_steps != 0:
        return
    lack, hint = "a dev set", "add a dev set with --dev FILE"
    if has_dev:
        lack, hint = "evaluations", "set train.eval_steps"
    if train.select_start:
        yield f"train.select_start has no effect without {lack}: the last weights are kept; {hint}"
    steps = "all its epochs" if train.max_steps is None else f"all its {train.max_steps} steps"
    waits = [("train.patience", train.patience, steps)]
    for part in run.round_miners:
        bound = "all its epochs" if hasattr(part.options, "epochs") else steps
        waits.append((f"{part.path}.patience", getattr(part.options, "patience", None), bound))
    for path, patience, bound in waits:
        if patience is not None:
            yield (
                f"{path} = {patience} has no effect without {lack}: a round takes {bound}; {hint}"
            )
