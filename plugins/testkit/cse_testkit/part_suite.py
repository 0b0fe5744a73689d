"""What every part promises that runs in a training step."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from cse_core.capabilities import flatten
from cse_core.errors import CseError
from cse_core.parts import Augmenter, Branch
from cse_core.records import Kind
from cse_core.training.checkpoint import Checkpoint
from cse_core.types import TokenBatch
from cse_testkit.promises import BrokenPromise, after, promise
from cse_testkit.record_suite import RecordSuite
from cse_testkit.rigs import Rig, compose
from cse_testkit.run_modules import online_state, without_dropout
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
            if cls.found().spec.default_options() is None and not cls.options:
                pytest.skip(
                    f"{cls.part[1]} has an option without a default: give the suite options"
                )
            try:
                cls._trial = Trial(
                    cls.part,
                    options=cls.options,
                    kinds=cls.kinds,
                    sets=cls.sets,
                    columns=cls.columns,
                    steps=cls.steps,
                    registry=cls.registry,
                )
            except CseError as error:
                own = f"{cls.part[0]}.{cls.part[1].rpartition('/')[2]}"
                if cls.options or not str(error.where).startswith(own):
                    raise
                pytest.skip(f"its defaults are refused, give the suite options: {error.line()}")
        return cls._trial

    _trial: ClassVar[Trial]
    _may_change: ClassVar[tuple[str, ...]] = ()

    @after(
        "test_its_factory_makes_a_part_of_its_kind",
        "test_its_default_options_are_valid",
        "test_its_tokens_are_in_the_vocabulary",
        "test_its_notes_are_lines",
    )
    def test_it_is_made(self) -> None:
        """The least run that has it is composed, and its class is made."""
        try:
            self.trial()
        except Exception as error:
            raise BrokenPromise(f"making it raised {type(error).__name__}: {error}") from error

    @after(
        "test_it_is_made",
        "test_its_views_are_announced_and_have_owners",
        "test_what_it_keeps_is_detached",
    )
    def test_it_runs(self) -> None:
        """Some steps of the least run that has it end without an exception."""
        error = self.trial().error
        if error is not None:
            raise BrokenPromise(f"a step raised {type(error).__name__}: {error}") from error

    # -- purity and state -----------------------------------------------------------------------

    @after("test_it_is_made")
    def test_pure_methods_change_nothing_and_repeat(self) -> None:
        """What must be pure is called twice: equal results, nothing held or given has changed."""
        broken = self.trial().watch.broken
        promise(not broken, "; ".join(broken))

    @after("test_it_is_made")
    def test_what_it_keeps_is_detached(self) -> None:
        """After some steps no tensor that it holds has a graph behind it."""
        trial = self.trial()
        found = attached(trial.part)
        promise(not found, f"keeps tensors with a graph: {', '.join(found)}")

    @after("test_it_runs")
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

    @after(
        "test_it_runs",
        "test_pure_methods_change_nothing_and_repeat",
        "test_its_state_is_tensors_and_json",
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

    @after("test_it_runs", "test_pure_methods_change_nothing_and_repeat")
    def test_same_seed_same_result(self) -> None:
        """Two runs of one seed have equal losses and weights, bit for bit."""
        trial = self.trial()
        one, other = trial.fresh(), trial.fresh()
        losses = [torch.stack([each.loss for each in rig.step(3)]) for rig in (one, other)]
        promise(torch.equal(*losses), f"one seed, two losses: {losses[0]} and {losses[1]}")
        where = difference(one.weights(), other.weights())
        promise(where is None, f"one seed, two weights: {where}")

    @after("test_it_is_made")
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

    @after("test_it_is_made")
    def test_its_views_are_announced_and_have_owners(self) -> None:
        """Each view that it adds is in ``provides``, with a batch row for each of its texts."""
        trial = self.trial()
        provided = set(flatten(trial.choice.spec.provided(trial.choice.options)))
        for call in trial.watch.of("views"):
            count = len(call.arguments[0])
            for view in call.result:
                promise(
                    f"view:{view.name}" in provided,
                    f"adds the view {view.name}; provides has no 'view:{view.name}'",
                )
                content = view.tokens if view.texts is None else view.texts
                rows = content.rows if isinstance(content, TokenBatch) else len(content)
                if view.owner is None:
                    text = f"view {view.name} has {rows} rows for {count} sentences and no owner"
                    promise(rows == count, text)
                    continue
                promise(len(view.owner) == rows, f"view {view.name}: {rows} rows, "
                        f"{len(view.owner)} owners")  # fmt: skip
                inside = (view.owner >= 0) & (view.owner < count)
                promise(
                    bool(inside.all()),
                    f"the owner of view {view.name} is {view.owner.tolist()}: not batch rows, "
                    f"0 to {count - 1}, but perhaps corpus rows",
                )

    @after("test_it_is_made")
    def test_it_draws_for_its_own_rows_or_for_all(self) -> None:
        """An augmenter draws with ``shared=False``; what sees the whole batch with True.

        Several processes else draw the same for different texts, or compute different losses. What
        ``views`` draws is not looked at: it may draw for the whole batch and take its own share.
        """
        own = isinstance(self.trial().part, Augmenter)
        for call in self.trial().watch.calls:
            wrong = call.shared if own else call.apart
            whose = "the rows of its own process" if own else "the rows of all processes"
            promise(
                call.method == "views" or not wrong,
                f"{call.method} sees {whose} and draws {', '.join(sorted(wrong))} by "
                f"ctx.generator(..., shared={own}): write shared={not own}",
            )

    @pytest.mark.parametrize("precision", ["fp32", "bf16"])
    @after("test_it_runs", "test_pure_methods_change_nothing_and_repeat")
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

    @after("test_trains_with_finite_loss_and_gradients")
    def test_its_parameters_move(self) -> None:
        """Each parameter of it that is to be trained gets a gradient, and three steps move it."""
        rig = self.trial().fresh()
        part = rig.assembly.parts[self.trial().path]
        modules: dict[str, nn.Module] = {"": part} if isinstance(part, nn.Module) else {}
        trained = isinstance(part, Branch) and getattr(self.found().spec, "trainable", False)
        if isinstance(part, Branch) and trained:
            modules |= {"encoder.": part.encoder}
            modules |= {f"heads.{name}.": head for name, head in part.heads.items()}
        before = {
            f"{start}{name}": (each, each.detach().clone())
            for start, module in modules.items()
            for name, each in module.named_parameters()
            if each.requires_grad
        }
        if not before:
            pytest.skip("it has no parameters to train")
        rig.step(3)
        known = {id(each) for each in rig.optimizer.named.values()}
        lost = [name for name, (each, _) in before.items() if id(each) not in known]
        promise(
            not lost,
            f"{len(lost)} parameters are not with the optimiser ({', '.join(lost[:3])}): make the "
            "part an nn.Module that holds them",
        )
        still = [name for name, (each, was) in before.items() if torch.equal(each.detach(), was)]
        promise(
            not still,
            f"three steps leave {', '.join(still[:3])} as they were: no gradient reaches them",
        )

    @after("test_it_runs")
    def test_it_leaves_the_online_encoder_as_it_is(self) -> None:
        """Its dropout, mode and ``requires_grad`` are those of a run without the part."""
        trial = self.trial()
        given = online_state(trial.rig.assembly.online.encoder)
        plain = Rig(
            compose(
                sets=[each for each in self.sets if each.startswith("model.")],
                registry=self.registry,
                encoder=trial.encoder,
                corpus=trial.corpus,
            ),
            trial.corpus,
            registry=self.registry,
        )
        plain.step(1)
        wanted = online_state(plain.assembly.online.encoder)
        seen = (name for name in wanted if not name.startswith(self._may_change))
        other = [name for name in seen if given.get(name) != wanted[name]]
        shown = "; ".join(f"{n} is {given.get(n)}, not {wanted[n]}" for n in other[:3])
        promise(not other, f"changes the online encoder: {shown}")

    @after("test_same_seed_same_result")
    def test_chunks_give_the_same_loss(self) -> None:
        """Encoded in chunks (``train.chunk_size``) its run has the loss of one call.

        Compared with all dropout off, also that of a branch with an encoder of its own. A part that
        draws for tokens draws again for each chunk; it only has to train.
        """
        trial = self.trial()
        whole, chunked = (
            without_dropout(trial.fresh("model.dropout=0", *sets))
            for sets in ((), ("train.chunk_size=2",))
        )
        once, parts = (torch.stack([each.loss for each in rig.step(3)]) for rig in (whole, chunked))
        promise(bool(parts.isfinite().all()), f"in chunks the losses are {parts.tolist()}")
        if not any(call.drew for call in trial.watch.calls):
            promise(
                torch.allclose(once, parts, rtol=1e-3, atol=1e-4),
                f"losses {once.tolist()} at once, {parts.tolist()} in chunks",
            )
