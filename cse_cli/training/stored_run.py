"""A run's folder, read: what was trained, on which rows, and what came of it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.machine.json_files import check_shape, read_json
from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError, did_you_mean
from cse_core.files import EVALUATIONS, RESULT

if TYPE_CHECKING:
    from cse_core.protocols import Corpus
    from cse_core.types import Round
    from cse_engine.compose.composition import Composition
    from cse_engine.run.run_folder import RunFolder


_NUMBER = (int, float, type(None))
_LINE = {...: _NUMBER, "step": (int, type(None))}
RESULT_SHAPE = {"steps": int, "step": int, "chosen_by": (str, type(None)), "score": _NUMBER,
           "start": _NUMBER, "scores": {...: _NUMBER}, "seconds": _NUMBER}  # fmt: skip
EVALUATION_SHAPE = {"encoder": str,
               "results": {...: {"setting": str, "fingerprint": str, "sets": [str],
                                 "tasks": [str]}}}  # fmt: skip
_SETTINGS = {"name": str, "model": {"name": str}, "data": {"path": [str]}, "train": dict,
             "run": {"data": {"fingerprint": str, "dev": [str]}}}  # fmt: skip
"""What is read of the files of a run; anything else that they hold is left as it is."""


class StoredRun:
    """A run that was begun, finished or not; nothing in its folder is changed.

    Args:
        folder: The run's folder.
        plugins: The installed plugins; by default they are loaded.

    Raises:
        CseError: If it is not a run.
    """

    def __init__(self, folder: str | os.PathLike[str], plugins: Installed | None = None) -> None:
        from cse_engine.run.run_folder import RunFolder

        self.path, self.plugins = Path(folder), plugins or Installed()
        self._folder: RunFolder = RunFolder.open(self.path, "RUN")

    @cached_property
    def composition(self) -> Composition:
        """The parts, their options and the settings of the core.

        Raises:
            CseError: If a part is not installed.
        """
        from cse_engine.run.run import recorded_composition

        return recorded_composition(self._folder, self.plugins.registry)

    @cached_property
    def corpus(self) -> Corpus:
        """The rows that it was trained on, numbered as its parts saw them.

        Raises:
            CseError: If a file is missing, or the rows are others than they were then.
        """
        from cse_engine.run.prepare import training_corpus

        corpus = training_corpus(self.composition, self.plugins.registry, self.plugins.read)
        self.check_rows(corpus)
        return corpus

    def check_rows(self, corpus: Corpus) -> None:
        """Refuse rows that are others than those that it was trained on."""
        if self.settings.get("run", {}).get("data", {}).get("fingerprint") != corpus.fingerprint:
            raise CseError(
                "the data has changed since this run",
                where="data.path",
                value=", ".join(self.composition.data.path),
                hint="restore the old files",
            )

    @cached_property
    def rounds(self) -> dict[int, Round]:
        """The rounds that its miners asked for, by number from 1; none in a run without rounds."""
        from cse_engine.run.rounds import read_round

        numbers = sorted(int(path.name) for path in (self.path / "rounds").glob("[0-9]*"))
        return {number: read_round(self._folder.round(number), number) for number in numbers}

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """What each step logged, as ``metrics.jsonl`` has it; none before the first line.

        Raises:
            CseError: If the file is damaged; so it is with the others below.
        """
        hint = f"if the run is unfinished, this writes it again: cse train --resume {self.path}"
        lines: list[dict[str, Any]] = read_json(self._folder.metrics, _LINE, hint, lines=True)
        return lines

    @cached_property
    def result(self) -> dict[str, Any] | None:
        """What came of it, as ``result.json`` has it: the chosen step and its scores."""
        hint = f"this writes it again: cse train --resume {self.path}"
        result: dict[str, Any] | None = read_json(self.path / RESULT, RESULT_SHAPE, hint)
        return result

    @cached_property
    def evaluations(self) -> list[dict[str, Any]]:
        """What ``cse eval`` kept of it, the newest last; none before the first evaluation."""
        hint = "remove this line, or the file: cse eval scores the run again"
        path = self.path / EVALUATIONS
        lines: list[dict[str, Any]] = read_json(path, EVALUATION_SHAPE, hint, lines=True)
        return [line for line in lines if "results" in line]

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What ``run.toml`` holds: every setting, and what it was run with."""
        from cse_engine.compose.reading import read_toml

        values = read_toml(self._folder.recipe, str(self._folder.recipe))
        check_shape(values, _SETTINGS, self._folder.recipe, "`cse train` did not write it so")
        return values

    @property
    def checkpoints(self) -> list[tuple[int, int]]:
        """Round and step of each checkpoint that is there, the newest last."""
        from cse_engine.run.run_folder import place_of

        places = (place_of(path) for path in self._folder.checkpoints())
        return [(number, step) for number, step in places]

    def state(self, part: str, step: int | None = None) -> dict[str, Any]:
        """Return the ``state_dict`` of a part at a checkpoint.

        Args:
            part: Its path, such as ``negatives.queue``.
            step: Of the checkpoint, in the last round that has it; by default the newest.

        Raises:
            CseError: If that checkpoint is missing or damaged, or has nothing of the part.
        """
        from cse_engine.run.checkpoint import Checkpoint

        places = [place for place in self.checkpoints if step in (None, place[1])]
        if not places:
            steps = ", ".join(str(at) for _, at in self.checkpoints)
            hint = f"there are those of steps {steps}" if steps else "train first"
            raise CseError("no checkpoint of this step", where="step", value=step, hint=hint)
        saved = Checkpoint.read(self._folder.checkpoint(*places[-1]))
        values = saved.values.get("parts", {}).get(part, {})
        state = {**saved.part(f"part.{part}"), **values}
        if not state:
            what = "has no state in this checkpoint"
            raise CseError(what, where=part, value=str(self.path), hint="name another part or step")
        return state

    def clusters(self, number: int, document: str) -> dict[str, Any]:
        """Return the sentences of a document that pairs of a round connect, and those in no pair.

        Args:
            number: Of the round.
            document: Its name in column ``document``.

        Returns:
            ``pairs``, how many; ``clusters`` and ``unpaired``, texts.

        Raises:
            CseError: If the data has no such document, or the round pairs texts that are no rows.
        """
        import numpy as np
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        corpus, pairs = self.corpus, self.rounds[number].pairs
        names = corpus.column("document")
        rows = [row for row, name in enumerate(names) if name == document]
        if not rows:
            hint = did_you_mean(document, list(dict.fromkeys(names))[:1000])
            raise CseError("the data has no such document", where="--document", value=document,
                           hint=hint)  # fmt: skip
        first, second = pairs["text"], pairs.get("positive")
        if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
            what = "this run pairs texts that its miner made, not sentences of a document"
            raise CseError(what, where="--document", hint="leave it out to see the first pairs")
        inside = np.isin(first, rows) & np.isin(second, rows)
        # A capped document lacks pairs that would connect its clusters: the round names them.
        marks = np.asarray(pairs.get("cluster", first))
        ends = np.concatenate(
            [[first[inside], second[inside]], [first[inside], marks[inside]]], axis=1
        )
        graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(len(corpus), len(corpus)))
        _, label = connected_components(graph, directed=False)
        groups: dict[int, list[str]] = {}
        for row, text in zip(rows, corpus.column("text").take(rows), strict=True):
            groups.setdefault(int(label[row]), []).append(text)
        return {
            "pairs": int(inside.sum()),
            "clusters": [group for group in groups.values() if len(group) > 1],
            "unpaired": [group[0] for group in groups.values() if len(group) == 1],
        }
