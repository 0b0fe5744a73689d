"""The suite of branches."""

from __future__ import annotations

from typing import cast

import pytest
import torch

from cse_core.parts import Branch
from cse_core.records import BranchSpec
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import after, promise
from cse_testkit.snapshots import difference


class BranchSuite(PartSuite):
    """What a branch promises, beside what every part does."""

    def branch(self) -> Branch:
        """Return the branch of the suite's run."""
        trial = self.trial()
        return cast(Branch, trial.part)

    @after("test_it_runs")
    def test_untrained_branches_get_no_gradient(self) -> None:
        """Vectors of a branch that is not trained carry no graph, its own weights no gradient."""
        branch, trial = self.branch(), self.trial()
        if cast(BranchSpec, trial.choice.spec).trainable:
            pytest.skip("it is trained")
        online = {id(each) for each in trial.rig.assembly.online.encoder.parameters()}
        for module in (branch.encoder, *branch.heads.values()):
            asked = [
                name
                for name, each in module.named_parameters()
                if id(each) not in online and (each.requires_grad or each.grad is not None)
            ]
            promise(not asked, f"its own weights ask for gradients: {', '.join(asked[:3])}")

    @after("test_it_runs")
    def test_it_shares_the_encoder_only_if_trained(self) -> None:
        """A branch with ``after_step`` of its own moves only its own copy of the weights."""
        rig = self.trial().fresh()
        branch = cast(Branch, rig.assembly.parts[self.trial().path])
        before = {n: v.clone() for n, v in rig.assembly.online.encoder.state_dict().items()}
        after_step = branch.after_step
        moved: list[str] = []

        def watched(batch: object, ctx: object) -> None:
            start = {n: v.clone() for n, v in rig.assembly.online.encoder.state_dict().items()}
            after_step(batch, ctx)  # type: ignore[arg-type]
            end = dict(rig.assembly.online.encoder.state_dict())
            where = difference(start, end)
            if where is not None:
                moved.append(where)

        branch.after_step = watched  # type: ignore[method-assign]
        rig.step(2)
        promise(not moved, f"its after_step changes the online encoder: {moved[:1]}")
        after = dict(rig.assembly.online.encoder.state_dict())
        promise(
            difference(before, after) is not None, "two steps left the online encoder as it was"
        )

    @after("test_it_runs")
    def test_its_vectors_are_finite(self) -> None:
        """Encoding with it gives finite vectors of the run's dimension, the same twice."""
        rig = self.trial().rig
        sentence_encoder = rig.assembly.encoders[self.trial().path.partition(".")[2]]
        texts = list(self.trial().corpus.column("text"))[:6]
        one, other = (sentence_encoder.encode(texts, torch.device("cpu")) for _ in range(2))
        promise(bool(one.isfinite().all()), "vectors are not finite")
        promise(torch.equal(one, other), "encodes a text in two ways without dropout")
