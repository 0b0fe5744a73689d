"""The suites by the contract of the core; ``cse eval`` scores them with baselines beside."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from cse_core.evaluation.suites import DevSet, Encode, Progress, Suite, SuiteFiles, SuiteScore
from cse_evaluation.suite import CHINESE_FILES, STS_FILES, locate_files


class _Result(Protocol):
    @property
    def name(self) -> str: ...

    def to_json(self) -> dict[str, Any]: ...


def _score(result: _Result, *scores: str) -> SuiteScore:
    """Return a result with the named numbers as its scores."""
    facts = result.to_json()
    split, setting, seeds = (facts.pop(name) for name in ("split", "setting", "seeds"))
    numbers = {name: facts.pop(name) for name in scores if facts.get(name) is not None}
    return SuiteScore(
        name=result.name, scores=numbers, split=split, setting=setting, seeds=seeds, facts=facts
    )


class _Pairs(Suite):
    """Graded pairs in files of known names, in the folder or one below it."""

    names: ClassVar[tuple[str, ...]]
    below: ClassVar[str]

    def locate(self, folder: Path) -> SuiteFiles:
        """Return where each file is."""
        return SuiteFiles(locate_files(self.names, self.below, folder))

    def read(self, files: Mapping[str, Path]) -> Any:
        """Return the sets of pairs."""
        from cse_evaluation.pairs import read_pairs

        return [read_pairs(path) for path in files.values()]

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return Spearman's correlation of each set, and their mean."""
        from cse_evaluation.sts import evaluate_sts

        return [_score(result, "spearman") for result in evaluate_sts(encode, read, False)]


class Sts(_Pairs):
    """STS12-16, STS-B, SICK-R."""

    names, below = STS_FILES, "sts"

    def read_dev(self, path: str | os.PathLike[str]) -> DevSet:
        """Return a file of graded pairs as a dev set."""
        from cse_evaluation.dev import PairDevSet
        from cse_evaluation.pairs import read_pairs

        return PairDevSet.of(read_pairs(path))

    def dev_of_pairs(self, name: str, rows: Sequence[Mapping[str, Any]]) -> DevSet:
        """Return the graded pairs of a data set as a dev set."""
        from cse_evaluation.dev import PairDevSet
        from cse_evaluation.pairs import pairs_from_rows

        return PairDevSet.of(pairs_from_rows(name, rows))


class Chinese(_Pairs):
    """STS-B translated to Chinese."""

    names, below = CHINESE_FILES, "chinese"


class Classify(Suite):
    """Every table with a label and a text."""

    def locate(self, folder: Path) -> SuiteFiles:
        """Return where the files of labelled texts are."""
        from cse_evaluation.tasks import locate_classification

        found = locate_classification(folder)
        return SuiteFiles(found.files or {"any labelled texts": None}, found.broken)

    def read(self, files: Mapping[str, Path]) -> Any:
        """Return the tasks."""
        from cse_evaluation.tasks import read_tasks

        return read_tasks(list(files.values()))

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return the accuracy of each task, and the mean of transfer tasks."""
        from cse_evaluation.transfer import evaluate_tasks

        results = evaluate_tasks(encode, read, progress=progress)
        return [_score(result, "accuracy", "f1") for result in results]


class Transfer(Classify):
    """The seven transfer tasks."""

    def locate(self, folder: Path) -> SuiteFiles:
        """Return where the files of each task are; a task without any is None by its name."""
        from cse_evaluation.tasks import TRANSFER_TASKS, locate_transfer

        found = locate_transfer(folder)
        files: dict[str, Path | None] = {}
        for task in TRANSFER_TASKS:
            own = [name for name in found if name.split(".")[0] == task]
            files.update({name: found.get(name) for name in own or [task]})
        return SuiteFiles(files)


class Retrieval(Suite):
    """Every file of documents with titles."""

    def locate(self, folder: Path) -> SuiteFiles:
        """Return where the files of documents are."""
        from cse_evaluation.document_suite import locate_documents

        found = locate_documents(folder)
        return SuiteFiles(found.files or {"any documents with titles": None}, found.broken)

    def read(self, files: Mapping[str, Path]) -> Any:
        """Return the sets of documents."""
        from cse_evaluation.documents import read_documents

        return [read_documents(path) for path in files.values()]

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return the recall of titles on each set."""
        from cse_evaluation.retrieval import evaluate_retrieval

        found = [evaluate_retrieval(encode, each, progress=progress) for each in read]
        return [_score(result, *(f"recall@{k}" for k in result.recall)) for result in found]

    def read_dev(self, path: str | os.PathLike[str]) -> DevSet | None:
        """Return a file of documents as a dev set."""
        from cse_evaluation.documents import is_document_file, read_documents
        from cse_evaluation.retrieval import DocumentDevSet

        return DocumentDevSet.of(read_documents(path)) if is_document_file(path) else None
