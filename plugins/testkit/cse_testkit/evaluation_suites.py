"""The suites of what stands beside training: metrics, evaluation suites and reporters."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError

from cse_core.loading import load_factory
from cse_core.options import Options
from cse_core.parts import Metric
from cse_core.records import ReporterSpec, ScheduleSpec, SuiteSpec
from cse_core.reporter import Reporter
from cse_core.suites import DevSet, NoDevSet, SuiteFiles, SuiteScore
from cse_core.suites import Suite as EvaluationSuite
from cse_testkit.batches import make_setup
from cse_testkit.other_options import asked_of, others
from cse_testkit.promises import NotAsked, Suite
from cse_testkit.record_suite import RecordSuite
from cse_testkit.tiny import tiny_corpus
from cse_testkit.watching import random_state, same, snapshot

PAIRS = "sentence1\tsentence2\tscore\na b\ta c\t3\na\tz\t0\n"
"""A file of graded pairs."""
ROWS = [
    {"sentence1": "a b", "sentence2": "a c", "score": 3.0},
    {"sentence1": "a", "sentence2": "z", "score": 0.0},
]
"""What a data set's ``pairs`` returns."""
SETTINGS: Mapping[str, Any] = {
    "model": {"name": "starter"},
    "data": {"path": ["texts.txt"]},
    "train": {"batch_size": 4, "seed": 42, "max_steps": 3},
}
LINES: tuple[Mapping[str, float], ...] = (
    {"step": 1, "round": 0, "lr": 3e-5, "loss": 2.5},
    {"step": 2, "round": 0, "lr": 2e-5, "loss": 1.5, "tiny.dev.spearman": 61.25},
    {"step": 3, "round": 0, "lr": 1e-5, "loss": 1.0},
)


def letter_counts(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return ``[N, 8]`` vectors of texts: letter counts, mixed by a fixed random matrix."""
    mixed = np.random.default_rng(0).normal(size=(26, 8))
    counts = np.array(
        [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts],
        dtype=np.float32,
    )
    return (counts @ mixed).astype(np.float32)


class MetricSuite(RecordSuite):
    """What a metric promises: finite numbers by name, the same twice, nothing changed."""

    base = (Metric,)

    def pairs(self) -> Any:
        """Return the pairs for ``compute``: like a ``PairSet`` of cse-evaluation.

        It has ``pairs`` with ``sentence1``, ``sentence2`` and ``score``, the ``scale`` of these,
        and the distinct ``texts``. A suite may return another.
        """
        corpus = tiny_corpus(columns=("positive", "negative"))
        texts = list(corpus.column("text"))
        scored = [
            SimpleNamespace(sentence1=text, sentence2=other, score=score, subset="")
            for column, score in (("positive", 4.0), ("negative", 1.0))
            for text, other in zip(texts, corpus.column(column), strict=True)
        ]
        both = (text for pair in scored for text in (pair.sentence1, pair.sentence2))
        return SimpleNamespace(
            name="tiny", pairs=tuple(scored), scale=(0.0, 5.0), texts=tuple(dict.fromkeys(both))
        )

    def encode(self, texts: Sequence[str]) -> Any:
        """Return ``[N, 8]`` vectors of texts."""
        return letter_counts(texts)

    def promise_its_numbers_are_finite_and_repeat(self) -> None:
        """``compute`` returns named finite numbers, the same twice, and holds nothing back."""
        metric = self.made(self.given_options())
        before, state = snapshot(metric), random_state()
        numbers = metric.compute(self.encode, self.pairs())
        assert state == random_state(), "compute draws from a global generator"
        assert numbers, "computes no number"
        for name, value in numbers.items():
            assert isinstance(name, str) and math.isfinite(value), f"{name} is {value}"
        again = metric.compute(self.encode, self.pairs())
        same("computed twice, another number", snapshot(numbers), snapshot(again))
        same("compute changes", before, snapshot(metric))

    def promise_each_option_changes_something(self) -> None:
        """Some other value of each option changes a number."""
        options = self.given_options()
        numbers = snapshot(self.made(options).compute(self.encode, self.pairs()))
        for name in {*asked_of("metric", options, Options)} - {*self.unchecked()}:
            changed = (options.model_copy(update={name: value}) for value in others(options, name))
            assert any(
                snapshot(self.made(other).compute(self.encode, self.pairs())) != numbers
                for other in changed
            ), f"other values of {name} change no number: honour it"

    def made(self, options: Options) -> Metric:
        """Return the metric with some options."""
        spec = self.found().spec
        metric = cast(Metric, load_factory(spec.factory)(options, make_setup(spec.name)))
        metric.name = spec.name
        return metric


class SuiteSuite(Suite):
    """What an evaluation suite promises: files found, finite scores, the same twice.

    Of one whose record says ``dev=True`` its files are dev sets too, and graded pairs are none; of
    one that says ``dev="pairs"`` these are, from a file and from a data set.

    Attributes:
        suite: Its name.
        folder: A data folder that holds a file of it, a small one; None where none is at hand.
    """

    suite: ClassVar[str]
    folder: ClassVar[Path | None] = None

    def spec(self) -> SuiteSpec:
        """Return its record."""
        return self.installed().one(SuiteSpec, self.suite).spec

    def made(self) -> EvaluationSuite:
        """Return the suite."""
        factory = self.spec().factory
        suite = load_factory(factory)()
        name = type(suite).__name__
        assert isinstance(suite, EvaluationSuite), f"{factory} makes a {name}, no Suite"
        return suite

    def promise_it_finds_its_files(self) -> None:
        """The folder has one at least; of an empty one, or one not there, each name is missing."""
        paths = {} if self.folder is None else self.located(self.folder).there
        assert paths or self.folder is None, f"no file of {self.suite} is found in {self.folder}"
        for name, path in paths.items():
            assert path.is_file(), f"{name} is said to be {path}, which is not a file"
        with tempfile.TemporaryDirectory(prefix="cse-suite-") as folder:
            for empty in (Path(folder), Path(folder) / "nowhere"):
                files = self.located(empty)
                assert not files.there, f"finds {', '.join(files.there)} in an empty folder"
                assert files.missing, "names no file that is missing from an empty folder"

    def located(self, folder: Path) -> SuiteFiles:
        """Return its files in a folder."""
        files: Any = self.made().locate(folder)
        assert isinstance(files, SuiteFiles), f"locate returned {files!r}, not SuiteFiles"
        return files

    def small_files(self) -> Mapping[str, Path]:
        """Return its files in the folder of the suite; not asked without one."""
        if self.folder is None:
            raise NotAsked("it has no small files: subclass SuiteSuite with a folder in a test")
        return self.located(self.folder).there

    def promise_its_scores_are_finite_and_repeat(self) -> None:
        """Each set has a name of its own, a setting and finite scores, the same by another suite.

        ``to_json`` is JSON.
        """
        first, again = self._scores(), self._scores()
        assert first, "scores nothing"
        names = [score.name for score in first]
        assert len(set(names)) == len(names), f"two sets have one name: {', '.join(names)}"
        for score in first:
            assert score.scores and score.setting, f"{score.name} has no score, or says no setting"
            for name, value in score.scores.items():
                assert math.isfinite(value), f"{name} of {score.name} is {value}"
        try:
            one, other = (
                [json.dumps(score.to_json(), allow_nan=False) for score in scores]
                for scores in (first, again)
            )
        except (TypeError, ValueError) as error:
            raise AssertionError(f"its scores are not valid JSON: {error}") from None
        assert one == other, f"scored twice, {one} is another: {other}"

    def promise_it_reads_dev_sets_as_its_record_says(self) -> None:
        """Each of its files is a dev set where ``dev`` is set; graded pairs where it is "pairs".

        A dev set has a name, texts, and finite scores, the same twice, by which it may choose.
        """
        suite, dev, files = self.made(), self.spec().dev, self.small_files()
        reads = type(suite).read_dev is not EvaluationSuite.read_dev
        assert reads == bool(dev), f"read_dev is {'' if reads else 'not '}its own: dev={reads}"
        pairs = type(suite).dev_of_pairs is not EvaluationSuite.dev_of_pairs
        assert pairs == (dev == "pairs"), f"dev_of_pairs is {'' if pairs else 'not '}its own"
        for name, path in files.items() if reads else ():
            dev_set = suite.read_dev(path)
            assert isinstance(dev_set, DevSet), (
                f"{name} is a file of it, and read_dev returns {dev_set}"
            )
            _check_scores(dev_set)
        with tempfile.TemporaryDirectory(prefix="cse-suite-") as folder:
            path = Path(folder) / "pairs.tsv"
            path.write_text(PAIRS, encoding="utf-8")
            try:
                read = suite.read_dev(path) if reads else None
            except NoDevSet:
                read = None
        takes = f"{'takes' if read else 'does not take'} a file of graded pairs"
        assert (read is not None) == pairs, takes
        if pairs:
            made = suite.dev_of_pairs("own.dev", ROWS)
            assert made.name == "own.dev", f"the pairs of a data set are called {made.name}"

    def _scores(self) -> list[SuiteScore]:
        files, suite = self.small_files(), self.made()
        scores: Any = suite.score(letter_counts, suite.read(files), lambda done, total, what: None)
        fine = isinstance(scores, Sequence) and all(isinstance(s, SuiteScore) for s in scores)
        assert fine, f"score returned {scores!r}, not SuiteScores"
        return list(scores)


def _check_scores(dev: DevSet) -> None:
    assert dev.name and dev.choices and dev.size > 0, f"{dev.name!r} has no name, choices or texts"
    first, again = dev.score(letter_counts), dev.score(letter_counts)
    lacking = sorted(set(dev.choices) - first.keys())
    assert not lacking, f"{dev.name} may choose by {', '.join(lacking)} and has none"
    assert all(map(math.isfinite, first.values())), f"scores of {dev.name} are {first}"
    assert first == again, f"{dev.name}, scored twice, gives other scores"


class ReporterSuite(Suite):
    """What a reporter promises: it lives through a run, from the start or from a checkpoint.

    Attributes:
        reporter: Its name.
        options: Options that differ from the defaults.
    """

    reporter: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    def promise_it_hears_a_run(self) -> None:
        """Every call of a run ends without an exception, from the start and from a checkpoint.

        What it is given stays as it was, and random numbers are drawn by others alone. The second
        run goes on from step 2, with lines of later steps in the file.
        """
        settings, lines = deepcopy(SETTINGS), deepcopy(LINES)
        state = random_state()
        with tempfile.TemporaryDirectory(prefix="cse-reporter-") as made:
            folder = Path(made)
            (folder / "run.toml").write_text("[train]\nseed = 42\n", encoding="utf-8")
            self._run(folder, settings, lines)
            text = "".join(f"{json.dumps(line)}\n" for line in LINES)
            (folder / "metrics.jsonl").write_text(text, encoding="utf-8")
            self._run(folder, settings, lines, done=2)
        assert (settings, lines) == (SETTINGS, LINES), "changes the settings or lines it is given"
        assert state == random_state(), "draws from a global generator"

    def _run(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        lines: Sequence[Mapping[str, float]],
        done: int = 0,
    ) -> None:
        """Call a new reporter as a run of three steps does."""
        spec = self.installed().one(ReporterSpec, self.reporter).spec
        try:
            options = spec.options_class(**self.options)
        except ValidationError as error:
            if self.options:
                raise
            why = f"its options have no defaults: add [tool.cse.options.reporter.{spec.name}]"
            raise NotAsked(why) from error
        reporter = load_factory(spec.factory)(options)
        name = type(reporter).__name__
        assert isinstance(reporter, Reporter), f"its factory makes a {name}, not a Reporter"

        def call(method: str, *values: Any) -> Any:
            try:
                return getattr(reporter, method)(*values)
            except Exception as error:
                again = " of a run that goes on" if done else ""
                what = f"{method}{again} raised {type(error).__name__}: {error}"
                raise AssertionError(what) from error

        call("start", folder, settings)
        call("message", "24 rows of texts.txt, [2] blank ones dropped")
        call("progress", 12, 24, "sentences encoded")
        call("begin", 0, len(lines), done)
        for line in lines[done:]:
            call("step", int(line["step"]))
            measured = call("measure", torch.eye(4, 8))
            numbers = isinstance(measured, Mapping) and set(map(type, measured.values()))
            assert numbers is not False and numbers <= {int, float}, f"measure gave {measured!r}"
            call("line", line)
            noted = call("check", line, {"batch": 4})
            assert not isinstance(noted, str), f"check returned one text, {noted!r}, not some"
            assert all(isinstance(text, str) for text in noted), f"check returned {noted!r}"
            if "tiny.dev.spearman" in line:
                call("scoring", ["tiny.dev"])
                call("scores", int(line["step"]), {"tiny.dev.spearman": 61.25}, True)
        call("warning", "vectors begin to collapse")
        call("end")
        call("finish", folder, {"steps": len(lines), "score": 61.25})


class ScheduleSuite(Suite):
    """What a schedule promises: a number between its bounds, wherever a round stands.

    Attributes:
        schedule: Its name.
    """

    schedule: ClassVar[str]

    def promise_it_stays_between_its_bounds(self) -> None:
        """A function of both bounds and the finished share gives a finite number between them.

        It may refuse bounds by a ``ValueError``.
        """
        curve = load_factory(self.installed().one(ScheduleSpec, self.schedule).spec.factory)
        taken = 0
        for start, end in ((0.1, 1.0), (1.0, 0.1), (0.0, 2.0), (3.0, 3.0)):
            try:
                values = [curve(start, end, done / 8) for done in range(9)]
            except ValueError:
                continue
            taken += 1
            for value in values:
                number = isinstance(value, int | float) and math.isfinite(value)
                assert number, f"of {start:g} and {end:g} it returned {value!r}, not a number"
                slack = 1e-6 * (start + end)
                inside = min(start, end) - slack <= value <= max(start, end) + slack
                assert inside, (
                    f"of {start:g} and {end:g} it returned {value}, not between its bounds"
                )
        assert taken, "refuses every pair of bounds"
