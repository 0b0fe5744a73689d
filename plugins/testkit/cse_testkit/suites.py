"""The suite of evaluation suites."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.evaluation.suites import DevSet, NoDevSet, Suite, SuiteScore
from cse_core.records import SuiteSpec
from cse_core.registry.registry import Registry
from cse_core.runtime.loading import load_factory
from cse_testkit.installed import installed_registry
from cse_testkit.promises import BrokenPromise, promise
from cse_testkit.snapshots import difference, snapshot

PAIRS = "sentence1\tsentence2\tscore\na b\ta c\t3\na\tz\t0\n"
"""A file of graded pairs."""
ROWS = [
    {"sentence1": "a b", "sentence2": "a c", "score": 3.0},
    {"sentence1": "a", "sentence2": "z", "score": 0.0},
]
"""What a data set's ``pairs`` returns."""


def letter_counts(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return ``[N, 8]`` vectors of texts: letter counts, mixed by a fixed random matrix."""
    mixed = np.random.default_rng(0).normal(size=(26, 8))
    counts = np.array(
        [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts],
        dtype=np.float32,
    )
    return (counts @ mixed).astype(np.float32)


class SuiteSuite:
    """What an evaluation suite promises: files found, finite scores, the same twice.

    Of one whose record says ``dev=True`` its files are dev sets too, and graded pairs are none; of
    one that says ``dev="pairs"`` these are, from a file and from a data set.

    ::

        class TestTriplets(SuiteSuite):
            suite = "triplets"
            folder = Path(__file__).parent / "data"

    Attributes:
        suite: Its name.
        folder: A data folder that holds a file of it, a small one.
        registry: Where it is found; None is what is installed.
    """

    suite: ClassVar[str]
    folder: ClassVar[Path]
    registry: ClassVar[Registry | None] = None

    def spec(self) -> SuiteSpec:
        """Return its record."""
        return (self.registry or installed_registry()).suite(self.suite).spec

    def made(self) -> Suite:
        """Return the suite."""
        spec = self.spec()
        try:
            suite = load_factory(spec.factory)()
        except CseError as error:
            raise BrokenPromise(str(error)) from None
        promise(
            isinstance(suite, Suite), f"{spec.factory} makes a {type(suite).__name__}, no Suite"
        )
        assert isinstance(suite, Suite)
        return suite

    def scores(self, suite: Suite) -> list[SuiteScore]:
        """Return its scores of an encoder that counts letters."""
        read = suite.read(suite.locate(self.folder).there)
        return list(suite.score(letter_counts, read, lambda done, total, what: None))

    def test_it_finds_its_files(self) -> None:
        """The folder has one at least; each path is a file, or None for one that is not there."""
        found = self.made().locate(self.folder)
        promise(bool(found.there), f"no file of {self.suite} is found in {self.folder}")
        for name, path in found.there.items():
            promise(path.is_file(), f"{name} is said to be {path}, which is not a file")

    def test_it_finds_nothing_where_nothing_is(self) -> None:
        """An empty folder, and one that is not there, hold no file, and each name is missing."""
        with tempfile.TemporaryDirectory(prefix="cse-suite-") as folder:
            for empty in (Path(folder), Path(folder) / "nowhere"):
                found = self.made().locate(empty)
                promise(not found.there, f"finds {', '.join(found.there)} in an empty folder")
                promise(bool(found.missing), "names no file that is missing from an empty folder")

    def test_its_scores_are_finite_numbers(self) -> None:
        """Each set has a name of its own, a split, a setting and finite scores."""
        scores = self.scores(self.made())
        promise(bool(scores), "scores nothing")
        names = [score.name for score in scores]
        promise(len(set(names)) == len(names), f"two sets have one name: {', '.join(names)}")
        for score in scores:
            promise(bool(score.scores), f"{score.name} has no score")
            promise(bool(score.setting), f"{score.name} says no setting")
            for name, value in score.scores.items():
                promise(math.isfinite(value), f"{name} of {score.name} is {value}")

    def test_its_scores_are_json(self) -> None:
        """``to_json`` is JSON without an infinite number."""
        for score in self.scores(self.made()):
            try:
                json.dumps(score.to_json(), allow_nan=False)
            except (TypeError, ValueError) as error:
                raise BrokenPromise(f"{score.name} is not valid JSON: {error}") from None

    def test_it_scores_the_same_twice(self) -> None:
        """Read and scored again, by the same suite and by another, the numbers are equal."""
        suite = self.made()
        first: list[Any] = [score.to_json() for score in self.scores(suite)]
        for again in (suite, self.made()):
            found = [score.to_json() for score in self.scores(again)]
            where = difference(snapshot(first), snapshot(found))
            promise(where is None, f"scored twice, {where} is another")

    def test_it_reads_dev_sets_as_its_record_says(self) -> None:
        """Each of its files is a dev set where ``dev`` is set; graded pairs where it is "pairs"."""
        suite, dev = self.made(), self.spec().dev
        own = type(suite).read_dev is not Suite.read_dev
        promise(own == bool(dev), f"read_dev is {'' if own else 'not '}its own: dev={own}")
        pairs = type(suite).dev_of_pairs is not Suite.dev_of_pairs
        promise(pairs == (dev == "pairs"), f"dev_of_pairs is {'' if pairs else 'not '}its own")
        if not own:
            return
        for name, path in suite.locate(self.folder).there.items():
            read = suite.read_dev(path)
            promise(
                isinstance(read, DevSet), f"{name} is a file of it, and read_dev returns {read}"
            )
        with tempfile.TemporaryDirectory(prefix="cse-suite-") as folder:
            path = Path(folder) / "pairs.tsv"
            path.write_text(PAIRS, encoding="utf-8")
            try:
                read = suite.read_dev(path)
            except NoDevSet:
                read = None
        promise(read is None or pairs, "takes a file of graded pairs")
        promise(read is not None or not pairs, "does not take a file of graded pairs")
        if pairs:
            made = suite.dev_of_pairs("own.dev", ROWS)
            promise(made.name == "own.dev", f"the pairs of a data set are called {made.name}")

    def test_its_dev_sets_are_scored(self) -> None:
        """A name, texts, scores that may choose among those there are, finite, the same twice."""
        suite = self.made()
        for path in suite.locate(self.folder).there.values() if self.spec().dev else ():
            dev = suite.read_dev(path)
            assert dev is not None
            promise(bool(dev.name and dev.choices), f"{path.name} has no name or no choices")
            promise(dev.size > 0, f"{dev.name} has no texts")
            first, again = dev.score(letter_counts), dev.score(letter_counts)
            lacking = sorted(set(dev.choices) - first.keys())
            promise(not lacking, f"{dev.name} may choose by {', '.join(lacking)} and has none")
            for name, value in first.items():
                promise(math.isfinite(value), f"{name} of {dev.name} is {value}")
            promise(first == again, f"{dev.name}, scored twice, gives other scores")
