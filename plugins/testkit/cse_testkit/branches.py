"""The suites of branches, adapters and metrics."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import torch

from cse_core.parts import Adapter, Branch, Metric
from cse_core.records import BranchSpec
from cse_core.runtime.loading import load_factory
from cse_testkit.batches import make_setup
from cse_testkit.evaluation_suites import letter_counts
from cse_testkit.part_suite import PartSuite, RecordSuite
from cse_testkit.tiny import tiny_corpus
from cse_testkit.watching import difference, snapshot


class BranchSuite(PartSuite):
    """What a branch promises, beside what every part does."""

    def promise_untrained_branches_get_no_gradient(self) -> None:
        """A branch that is not trained has weights of its own that ask for no gradient."""
        trial, branch = self.trial(), cast(Branch, self.trial().part)
        if cast(BranchSpec, trial.planned.spec).trainable:
            return
        online = {id(each) for each in trial.rig.assembly.online.encoder.parameters()}
        for module in (branch.encoder, *branch.heads.values()):
            asked = [
                name
                for name, each in module.named_parameters()
                if id(each) not in online and (each.requires_grad or each.grad is not None)
            ]
            assert not asked, f"its own weights ask for gradients: {', '.join(asked[:3])}"

    def promise_its_after_step_leaves_the_online_encoder(self) -> None:
        """``after_step`` moves only its own copy of the weights; training moves the online one."""
        rig = self.trial().fresh()
        branch = rig.assembly.parts[self.trial().path]
        online, after_step = rig.assembly.online.encoder, branch.after_step
        first = snapshot(dict(online.state_dict()))

        def watched(batch: Any, ctx: Any) -> None:
            before = snapshot(dict(online.state_dict()))
            after_step(batch, ctx)
            where = difference(before, snapshot(dict(online.state_dict())))
            assert where is None, f"its after_step changes the online encoder: {where}"

        branch.after_step = watched  # type: ignore[method-assign]
        rig.step(2)
        moved = difference(first, snapshot(dict(online.state_dict())))
        assert moved is not None, "two steps left the online encoder as it was"


class AdapterSuite(PartSuite):
    """What an adapter promises, beside what every part does."""

    _may_change = ("requires_grad",)

    def promise_what_it_trains_moves_and_nothing_else(self) -> None:
        """After two steps every weight that requires a gradient moved, and no other did."""
        rig = self.trial().fresh("train.lr=1e-2")
        weights = dict(rig.assembly.online.encoder.named_parameters())
        before = {name: each.detach().clone() for name, each in weights.items()}
        trained = {name for name, each in weights.items() if each.requires_grad}
        assert trained, "no weight of the encoder trains"
        rig.step(2)
        moved = {name for name, each in weights.items() if not torch.equal(each, before[name])}
        still, others = sorted(trained - moved), sorted(moved - trained)
        assert not still, f"require a gradient and do not move: {', '.join(still[:3])}"
        assert not others, f"require no gradient and move: {', '.join(others[:3])}"

    def promise_a_merged_model_gives_the_same_vectors(self) -> None:
        """``merged`` has the weights of a plain encoder, and changes nothing of the adapted one."""
        rig = self.trial().fresh("train.lr=1e-2")
        rig.step(2)
        adapter = cast(Adapter, rig.assembly.parts[self.trial().path])
        encoder = rig.assembly.online.encoder
        texts = list(self.trial().corpus.column("text"))[:6]
        before = snapshot(dict(encoder.model.state_dict()))
        merged = adapter.merged(encoder.model)
        where = difference(before, snapshot(dict(encoder.model.state_dict())))
        assert where is None, f"merged changes {where} of the adapted encoder"
        names = set(merged.state_dict())
        plain = {name for name in type(merged)(merged.config).state_dict() if "pooler" not in name}
        assert names == plain, f"merged has other weights: {sorted(names ^ plain)[:3]}"
        wanted = rig.encode(texts)
        own, encoder.model = encoder.model, merged
        found = rig.encode(texts)
        encoder.model = own
        assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-5), (
            f"merged, vectors differ by up to {float((found - wanted).abs().max()):.2g}"
        )

    def promise_it_saves_the_same_twice(self) -> None:
        """``save`` may write nothing; what it writes is the same again."""
        adapter = cast(Adapter, self.trial().part)
        model = self.trial().rig.assembly.online.encoder.model
        with tempfile.TemporaryDirectory(prefix="cse-adapter-") as folder:
            for name in ("one", "two"):
                adapter.save(model, Path(folder) / name)
            one, two = (
                {path.name: path.read_bytes() for path in written.rglob("*") if path.is_file()}
                for written in (Path(folder) / "one", Path(folder) / "two")
            )
        assert one == two, "saved twice, its files differ"

    def promise_a_copy_of_the_encoder_works_by_itself(self) -> None:
        """A branch's copy gives the same vectors, and shares what does not train alone."""
        rig = self.trial().fresh()
        encoder = rig.assembly.online.encoder
        copied = encoder.copy()
        texts = list(self.trial().corpus.column("text"))[:6]
        wanted = rig.encode(texts)
        rig.assembly.online = replace(rig.assembly.online, encoder=copied)
        assert torch.equal(rig.encode(texts), wanted), "a copy gives other vectors"
        shared = _ids(encoder.parameters()) & _ids(copied.parameters())
        frozen = _ids(each for each in encoder.parameters() if not each.requires_grad)
        assert shared == frozen, "a copy shares other weights than those that do not train"


def _ids(weights: Any) -> set[int]:
    return {id(each) for each in weights}


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

    def promise_its_numbers_are_finite_and_repeat(self) -> None:
        """``compute`` returns named finite numbers, the same twice, and holds nothing back."""
        spec = self.found().spec
        made = load_factory(spec.factory)(self.given_options(), make_setup(spec.name))
        metric = cast(Metric, made)
        metric.name = spec.name
        before = snapshot(metric)
        numbers = metric.compute(self.encode, self.pairs())
        assert numbers, "computes no number"
        for name, value in numbers.items():
            assert isinstance(name, str) and math.isfinite(value), f"{name} is {value}"
        again = metric.compute(self.encode, self.pairs())
        where = difference(snapshot(numbers), snapshot(again))
        assert where is None, f"computed twice, {where} is another number"
        where = difference(before, snapshot(metric))
        assert where is None, f"compute changes {where}"
