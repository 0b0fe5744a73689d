"""The classification tasks of ``cse eval``: finding them, scoring models on them, showing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cse_cli.models.processes import by_all, helpers
from cse_cli.terminal.console import say_table, warn
from cse_cli.terminal.progress import reporter_for
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_cli.models.saved_model import SentenceModel
    from cse_core.models.sentence_encoder import SentenceEncoder
    from cse_evaluation.probe import Progress
    from cse_evaluation.task_result import TaskResult, TextLengths, WordScore
    from cse_evaluation.tasks import Task, Tasks

LongTexts = Literal["cut", "slice"]
LONG_TEXTS = ("cut", "slice")
CLASSIFIERS = ("exact", "senteval")
CUT_AT = 512
"""Tokens that texts which are cut may have, where the encoder takes so many and none is named."""
BLOCK = 256
"""Texts between two looks at the clock."""


@dataclass
class Group:
    """Tasks whose long texts are treated in the same way.

    Attributes:
        tasks: The tasks.
        long_texts: Whether a long text is cut, or sliced and the slices averaged.
    """

    tasks: list[Task]
    long_texts: LongTexts


@dataclass
class Groups:
    """All tasks of a call.

    Attributes:
        groups: They, by what becomes of long texts.
        missing: Names of transfer tasks that are not there.
        folder: Where the first suite's files are, None without a suite.
        notes: What to tell about the choice.
    """

    groups: list[Group] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    folder: Path | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def tasks(self) -> list[Task]:
        """Return all tasks."""
        return [task for group in self.groups for task in group.tasks]


def find_tasks(
    suites: Sequence[str],
    data_dir: Path | None,
    files: Sequence[str],
    long_texts: str | None,
    classifier: str,
) -> Groups:
    """Read the tasks that were asked for.

    Args:
        suites: Names of suites; ``transfer`` and ``classify`` are looked at here.
        data_dir: Where the suites' files are; without it, files that are named are ``classify``.
        files: Files of labelled texts.
        long_texts: ``cut`` or ``slice``; by default transfer tasks are cut, others sliced.
        classifier: ``exact`` or ``senteval``, which is checked here.

    Raises:
        CseError: If there is nothing of a suite, or a file is broken.
    """
    for where, noun, value, known in (
        ("--long-texts", "way with long texts", long_texts, LONG_TEXTS),
        ("--classifier", "classifier", classifier, CLASSIFIERS),
    ):
        if value is not None and value not in known:
            raise CseError(
                f"unknown {noun}",
                where=where,
                value=value,
                hint=did_you_mean(value, known),
            )
    if not (files or {"transfer", "classify"} & set(suites)):
        return Groups()
    from cse_evaluation.tasks import find_classification, find_transfer, read_tasks

    found = Groups()
    if "transfer" in suites:
        suite = find_transfer(data_dir)
        found.groups.append(Group(list(suite.tasks), _chosen(long_texts, "cut")))
        found.missing, found.folder = suite.missing, suite.folder
        if suite.missing:
            missing = ", ".join(suite.missing)
            found.notes.append(f"not there, looked for in {suite.folder}: {missing}")
    own: list[Task] = []
    if "classify" in suites and not (files and data_dir is None):
        classified: Tasks = find_classification(data_dir)
        own += classified.tasks
        found.folder = found.folder or classified.folder
        if classified.left_out:
            others = ", ".join(classified.left_out)
            found.notes.append(f"left out of classify, without label and text: {others}")
    own += read_tasks(files)
    if own:
        found.groups.append(Group(own, _chosen(long_texts, "slice")))
    names = [task.name for task in found.tasks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CseError(f"two tasks are called {twice!r}", hint="rename the files of one")
    return found


def _chosen(long_texts: str | None, default: LongTexts) -> LongTexts:
    if long_texts is None:
        return default
    return "cut" if long_texts == "cut" else "slice"


@contextmanager
def shown_progress(json: bool) -> Iterator[Progress]:
    """Give the function that shows how far the work is: a bar, lines, or nothing for JSON."""
    with reporter_for(quiet=False, json=json, opening=lambda: None) as reporter:
        yield reporter.progress


def score_words_of(found: Groups, seed: int, progress: Progress) -> dict[str, WordScore]:
    """Return the scores of words alone on each task: they are the same for every model."""
    from cse_evaluation.transfer import score_words

    return {task.name: score_words(task, seed=seed, progress=progress) for task in found.tasks}


def score_tasks(
    model: SentenceModel,
    found: Groups,
    words: dict[str, WordScore],
    *,
    batch_tokens: int | None,
    classifier: str,
    seed: int,
    progress: Progress,
    max_length: int | None = None,
) -> list[TaskResult]:
    """Score a model on all tasks.

    Texts that are cut are cut where the encoder ends, whatever length it was trained with, so that
    models are compared on the same texts.

    Args:
        model: The model.
        found: The tasks.
        words: Scores of words alone.
        batch_tokens: Tokens that the encoder is given at once; by default what the device likes.
        classifier: ``exact`` or ``senteval``.
        seed: Of the folds.
        progress: Hears how far it is.
        max_length: Longest text in tokens that the user named, with which the model was loaded.
    """
    from cse_evaluation.transfer import evaluate_tasks

    results: list[TaskResult] = []
    for group in found.groups:
        reads = model
        if group.long_texts == "cut" and max_length is None:
            reads = replace(
                model,
                sentence_encoder=replace(
                    model.sentence_encoder, max_length=cut_length(model.sentence_encoder)
                ),
            )
        encode, texts = _encoder(reads, group.long_texts, batch_tokens)
        results += evaluate_tasks(
            _in_blocks(encode, progress, f"texts of {model.name}"),
            group.tasks,
            texts=texts,
            measure=partial(measure, reads.sentence_encoder, group.long_texts),
            words=words,
            classifier=classifier,
            seed=seed,
            progress=progress,
        )
    return results


def _encoder(
    model: SentenceModel, long_texts: LongTexts, batch_tokens: int | None
) -> tuple[Callable[..., NDArray[np.float32]], str]:
    from cse_cli.models.loading import TextEncoder
    from cse_evaluation.long_texts import sliced

    length = model.sentence_encoder.max_length
    cut = TextEncoder(model, batch_tokens)
    if long_texts == "cut":
        return cut, f"cut at {length} tokens"

    def encode(texts: Sequence[str], block: int | None = None) -> NDArray[np.float32]:
        return by_all(model, sliced, list(texts), batch_tokens, block).numpy()

    return encode, f"mean over slices of {length} tokens, weighted by their length"


def cut_length(sentence_encoder: SentenceEncoder) -> int:
    """Return at how many tokens texts are cut: where the encoder ends, at most ``CUT_AT``."""
    # A model that slices takes texts of any length.
    return (
        CUT_AT
        if sentence_encoder.slicer is not None
        else min(CUT_AT, sentence_encoder.encoder.max_positions)
    )


def warn_of_lengths(models: Sequence[str], lengths: Sequence[int]) -> None:
    """Warn where graded pairs of models are compared that cut their texts at other lengths."""
    if len(set(lengths)) > 1:
        shown = ", ".join(f"{n} at {length}" for n, length in zip(models, lengths, strict=True))
        warn(f"the models cut the texts of pairs at different lengths ({shown} tokens); "
             "--max-length N is for all")  # fmt: skip


def measure(
    sentence_encoder: SentenceEncoder, long_texts: LongTexts, texts: Sequence[str]
) -> TextLengths:
    """Return how long texts are, and how many of them the model takes cut or in slices."""
    from cse_evaluation.long_texts import slice_length
    from cse_evaluation.task_result import TextLengths

    content = sentence_encoder.tokenizer.table(texts).offsets.diff()
    longest = slice_length(sentence_encoder)
    if (
        long_texts == "cut"
        and sentence_encoder.slicer is not None
        and not sentence_encoder.slicer.slices_wrapped
    ):
        longest = sentence_encoder.max_length  # content is cut there, before anything wraps it
    mean = float(content.double().mean()) + sentence_encoder.tokenizer.special_count
    return TextLengths(mean, 100 * float((content > longest).double().mean()))


def _in_blocks(
    encode: Callable[..., NDArray[np.float32]], progress: Progress, what: str
) -> Callable[[Sequence[str]], NDArray[np.float32]]:
    def encode_blocks(texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        blocks, count = [], BLOCK * (1 + helpers())
        for start in range(0, len(texts), count):
            blocks.append(encode(texts[start : start + count], BLOCK))
            progress(min(start + count, len(texts)), len(texts), what)
        return np.concatenate(blocks)

    return encode_blocks


def show_tasks(models: Sequence[str], results: Sequence[Sequence[TaskResult]]) -> None:
    """Print the table of all models."""
    from cse_evaluation.task_report import tasks_table

    say_table(tasks_table(models, results))
