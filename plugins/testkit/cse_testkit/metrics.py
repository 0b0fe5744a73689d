"""The suite of metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from cse_core.parts import Metric
from cse_core.runtime.loading import load_factory
from cse_testkit.batches import make_setup
from cse_testkit.corpora import tiny_corpus
from cse_testkit.promises import after, promise
from cse_testkit.record_suite import RecordSuite
from cse_testkit.snapshots import difference, snapshot
from cse_testkit.suites import letter_counts


class MetricSuite(RecordSuite):
    """What a metric promises: finite numbers by name, the same twice, nothing changed."""

    def pairs(self) -> Any:
        """Return what ``compute`` gets as pairs: like a ``PairSet`` of cse-evaluation.

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

    @after("test_its_default_options_are_valid")
    def test_its_numbers_are_finite_and_repeat(self) -> None:
        """``compute`` returns named finite numbers, the same twice, and holds nothing back."""
        spec = self.found().spec
        metric = cast(
            Metric, load_factory(spec.factory)(spec.options(**self.options), make_setup(spec.name))
        )
        metric.name = spec.name
        before = snapshot(metric)
        numbers = metric.compute(self.encode, self.pairs())
        promise(bool(numbers), "computes no number")
        for name, value in numbers.items():
            promise(isinstance(name, str) and math.isfinite(value), f"{name} is {value}")
        again = metric.compute(self.encode, self.pairs())
        where = difference(snapshot(numbers), snapshot(again))
        promise(where is None, f"computed twice, {where} is another number")
        where = difference(before, snapshot(metric))
        promise(where is None, f"compute changes {where}")
