"""What every part promises that runs in a training step."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from cse_core.encoders.dropout import Dropout
from cse_core.records import Kind
from cse_core.registry.record_checks import default_options
from cse_core.training.checkpoint import Checkpoint
from cse_testkit.promises import BrokenPromise, promise
from cse_testkit.record_suite import RecordSuite
from cse_testkit.rigs import Rig
from cse_testkit.snapshots import attached, difference, snapshot
from cse_testkit.trials import Trial


class PartSuite(RecordSuite):
    """What every part promises. Subclass the suite of its kind, not this one.

    A suite needs nothing but the part's kind and name::

        class TestFgsm(AugmenterSuite):
            part = ("aug", "fgsm")

    What the part requires is added by itself: columns of the made-up corpus, other installed
    parts, a cased vocabulary. Where that is not the run you want, say so by the attributes.

    Attributes:
        part: Kind and name.
        options: Options that differ from the defaults.
        kinds: Kind flags instead of those found.
        sets: Further settings.
        columns: Further columns of the corpus.
        registry: Where parts are found; None is what is installed.
        steps: Steps of the runs.
    """

    kinds: ClassVar[Mapping[Kind, Sequence[str]] | None] = None
    sets: ClassVar[Sequence[str]] = ()
    columns: ClassVar[Sequence[str]] = ()
    steps: ClassVar[int] = 4

    @classmethod
    def trial(cls) -> Trial:
        """Return the part's run, made once for all tests of the suite."""
        if "_trial" not in cls.__dict__:
            if default_options(cls.found().spec) is None and not cls.options:
                pytest.skip(
                    f"{cls.part[1]} has an option without a default: give the suite options"
                )
            cls._trial = Trial(
                cls.part,
                options=cls.options,
                kinds=cls.kinds,
                sets=cls.sets,
                columns=cls.columns,
                steps=cls.steps,
                registry=cls.registry,
            )
        return cls._trial

    _trial: ClassVar[Trial]

    def test_it_runs(self) -> None:
        """Some steps of the least run that has it end without an exception."""
        error = self.trial().error
        if error is not None:
            raise BrokenPromise(f"a step raised {type(error).__name__}: {error}") from error

    # -- purity and state -----------------------------------------------------------------------

    def test_pure_methods_change_nothing_and_repeat(self) -> None:
        """What must be pure is called twice: equal results, nothing held or given has changed."""
        broken = self.trial().watch.broken
        promise(not broken, "; ".join(broken))

    def test_what_it_keeps_is_detached(self) -> None:
        """After some steps no tensor that it holds has a graph behind it."""
        trial = self.trial()
        found = attached(trial.part)
        promise(not found, f"keeps tensors with a graph: {', '.join(found)}")

    def test_its_state_is_tensors_and_json(self) -> None:
        """``state_dict`` holds tensors and JSON values only, by names."""
        trial = self.trial()
        state = trial.part.state_dict()
        for name, value in state.items():
            promise(isinstance(name, str), f"state has a name that is not text: {name!r}")
            if isinstance(value, Tensor):
                continue
            try:
                back = json.loads(json.dumps(value, allow_nan=False))
            except (TypeError, ValueError) as error:
                raise BrokenPromise(f"state {name!r} is neither tensor nor JSON: {error}") from None
            promise(
                difference(snapshot(value), snapshot(back)) is None,
                f"state {name!r} is another after JSON: {value!r} became {back!r}",
            )

    def test_its_state_round_trips(self) -> None:
        """A run that is saved, restored into new parts and continued equals one that never was."""
        trial = self.trial()
        whole, first, second = trial.fresh(), trial.fresh(), trial.fresh()
        wanted = whole.step(4)
        first.step(2)
        with tempfile.TemporaryDirectory(prefix="cse-state-") as folder:
            first.save(Path(folder) / "step-2")
            second.restore(Path(folder) / "step-2")
            saved = Checkpoint.read(Path(folder) / "step-2")
        one, other = first.assembly.parts[trial.path], second.assembly.parts[trial.path]
        where = difference(snapshot(dict(one.state_dict())), snapshot(dict(other.state_dict())))
        promise(where is None, f"state {where} is another after a checkpoint")
        promise(saved.values["step"] == 2, "the checkpoint is not of step 2")
        for number, (one_step, other_step) in enumerate(
            zip(wanted[2:], second.step(2), strict=True)
        ):
            promise(
                torch.equal(one_step.loss, other_step.loss),
                f"resumed after step 2, the loss of step {number + 3} is {float(other_step.loss)}, "
                f"and {float(one_step.loss)} without the break",
            )
        where = difference(whole.weights(), second.weights())
        promise(where is None, f"resumed after step 2, the weights {where} are others")

    # -- training -------------------------------------------------------------------------------

    def test_same_seed_same_result(self) -> None:
        """Two runs of one seed have equal losses and weights, bit for bit."""
        trial = self.trial()
        one, other = trial.fresh(), trial.fresh()
        losses = [torch.stack([each.loss for each in rig.step(3)]) for rig in (one, other)]
        promise(torch.equal(*losses), f"one seed, two losses: {losses[0]} and {losses[1]}")
        where = difference(one.weights(), other.weights())
        promise(where is None, f"one seed, two weights: {where}")

    def test_another_seed_draws_otherwise(self) -> None:
        """A part that asks for random numbers returns something else for others."""
        calls = [call for call in self.trial().watch.calls if call.drew]
        if not calls:
            pytest.skip("it draws nothing")
        same = [
            call
            for call in calls
            if difference(snapshot(call.result), snapshot(call.other)) is None
        ]
        promise(
            len(same) < len(calls),
            f"it draws random numbers, yet {len(calls)} calls returned the same for another seed",
        )

    @pytest.mark.parametrize("precision", ["fp32", "bf16"])
    def test_trains_with_finite_loss_and_gradients(self, precision: str) -> None:
        """Some steps, the last on one row alone, leave finite losses, gradients and weights."""
        rig = self.trial().fresh(precision=precision)
        results = [*rig.step(2), *rig.step(1, rows=1)]
        for number, result in enumerate(results):
            promise(bool(torch.isfinite(result.loss)), f"loss of step {number + 1}: {result.loss}")
        bad = sorted(rig.bad_gradients)
        promise(not bad, f"gradients that are not finite: {', '.join(bad[:5])}")
        wrong = [name for name, value in rig.weights().items() if not bool(value.isfinite().all())]
        promise(not wrong, f"weights that are not finite: {', '.join(wrong[:5])}")

    def test_chunks_give_the_same_loss(self) -> None:
        """Encoded in chunks (``train.chunk_size``) its run has the loss of one call.

        Compared with dropout off. A part that draws for tokens draws again for each chunk; it only
        has to train.
        """
        trial = self.trial()
        whole, chunked = (
            _without_dropout(trial.fresh("model.dropout=0", *sets))
            for sets in ((), ("train.chunk_size=2",))
        )
        once, parts = (torch.stack([each.loss for each in rig.step(3)]) for rig in (whole, chunked))
        promise(bool(parts.isfinite().all()), f"in chunks the losses are {parts.tolist()}")
        if not any(call.drew for call in trial.watch.calls):
            promise(
                torch.allclose(once, parts, rtol=1e-3, atol=1e-4),
                f"losses {once.tolist()} at once, {parts.tolist()} in chunks",
            )


def _without_dropout(rig: Rig) -> Rig:
    """Switch off the dropout of heads too, which has a probability of its own."""
    for sentence_encoder in rig.assembly.encoders.values():
        for head in sentence_encoder.heads.values():
            for module in head.modules():
                if isinstance(module, Dropout):
                    module.p = 0.0
    return rig
