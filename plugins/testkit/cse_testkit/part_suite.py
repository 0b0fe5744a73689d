"""What the record of every part promises, and what every part that runs in a training step does."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, ClassVar

import torch
from torch import nn

from cse import open_run
from cse_cli.api import resolve
from cse_core import parts
from cse_core.errors import CseError, PartError
from cse_core.records import MultiVectorSpec
from cse_core.types import Batch, StepContext
from cse_testkit.batches import make_batch, make_context
from cse_testkit.completion import complete
from cse_testkit.promises import NotAsked, NotMeant, failures, plugins_of
from cse_testkit.recipes import ENCODERS
from cse_testkit.record_suite import RecordSuite
from cse_testkit.runs import Rig, compose
from cse_testkit.thorough import fault_elsewhere, forgotten_later, refused_run, silent_options
from cse_testkit.tiny import Columns, shared_encoder
from cse_testkit.watching import Call, attached, same, snapshot

STEPS = 3
"""Steps of a watched run."""
THOROUGH = (
    "it_computes_on_the_device_of_the_run",
    "it_holds_for_hundreds_of_steps",
    "each_option_changes_something",
    "a_real_run_takes_it",
)


class Trial:
    """The least run that a suite's part can stand in, and some watched steps of it.

    Attributes:
        path: The part's path in the recipe.
        rig: The run.
        planned: The part's place in the composition: record, options, name.
        error: What a step raised, None where none did.

    Raises:
        CseError: If the composer refuses the run.
    """

    def __init__(self, suite: type[PartSuite]) -> None:
        self.suite, self.plugins = suite, plugins_of(suite.registry)
        kind, name = suite.part
        options = {(kind, name.rpartition("/")[2]): suite.options}
        self.needed = complete(self.plugins.registry, [suite.part], options)
        self.corpus = self.needed.corpus(columns=suite.columns)
        self.composition = self.needed.compose(self.corpus, *suite.sets)
        self.path = f"{kind}.{name.rpartition('/')[2]}"
        self.planned = next(part for part in self.composition.parts if part.path == self.path)
        self.rig = self.fresh(watch=self.path)
        self.error: Exception | None = None
        try:
            self.rig.step(STEPS)
        except Exception as error:  # the calls until then still say what the part did
            self.error = error

    @property
    def part(self) -> Any:
        """Return the part of the watched run."""
        return self.rig.session.parts[self.path]

    @cached_property
    def second(self) -> Rig:
        """A run of the same composition, after two steps; ``made`` is what its part held first."""
        rig = self.fresh()
        self.made = self.suite.held(rig.session.parts[self.path])
        rig.step(2)
        return rig

    def unwatched(self, dtype: torch.dtype = torch.float32) -> Any:
        """Return the part of a new run; a module in a number format and evaluation."""
        part = self.fresh().session.prepare().parts[self.path]
        return part.to(dtype).eval() if isinstance(part, nn.Module) else part

    def calls(self, method: str | None = None) -> list[Call]:
        """Return the part's calls in the watched run, of one method where it is named."""
        return self.rig.watch.of(self.path, method)

    def fresh(self, *sets: str, watch: str = "", compare: bool = True) -> Rig:
        """Return a new run of the same composition, with other settings where given.

        ``watch`` and ``compare`` are those of a ``Rig`` and its ``Watch``.

        Raises:
            CseError: If the composer refuses the settings.
        """
        composition = self.composition
        if sets:
            composition = self.needed.compose(self.corpus, *self.suite.sets, *sets)
        return Rig(composition, self.plugins, watch=watch, compare=compare)


class PartSuite(RecordSuite):
    """What every part promises. Subclass the suite of its kind, not this one.

    What the part requires is added by itself: columns of the made-up corpus, other installed
    parts, a cased vocabulary. Where that is not the run you want, say so by the attributes.

    Attributes:
        variants: Further options, of which a run, its state and its chunks are asked.
        sets: Further settings.
        columns: Further columns of the corpus, with types or sample values as in
            ``[tool.cse.columns]`` of ``pyproject.toml``, whose columns are there by themselves.
    """

    variants: ClassVar[Sequence[Mapping[str, Any]]] = ()
    sets: ClassVar[Sequence[str]] = ()
    columns: ClassVar[Columns] = ()
    last: ClassVar[tuple[str, ...]] = (
        "its_state_round_trips",
        "trains_with_finite_numbers_and_its_parameters_move",
        "leaves_the_online_encoder_as_it_is",
        "chunks_give_the_same_loss",
        "its_variants_keep_them_too",
        *THOROUGH,
    )
    thorough: ClassVar[tuple[str, ...]] = THOROUGH
    _may_change: ClassVar[tuple[str, ...]] = ()
    _trial: ClassVar[Trial]

    @classmethod
    def trial(cls) -> Trial:
        """Return the part's watched run, made once for all promises of the suite."""
        if "_trial" not in cls.__dict__:
            cls.given_options()
            try:
                cls._trial = Trial(cls)
            except CseError as error:
                path = f"{cls.part[0]}.{cls.part[1].rpartition('/')[2]}"
                if cls.options or not str(error.where).startswith(path):
                    raise
                why = f"its defaults are refused, give the suite options: {error.line()}"
                raise NotAsked(why) from None
        return cls._trial

    def batch(self, sentences: int = 4, dtype: torch.dtype = torch.float32) -> Batch:
        """Return a made-up batch at the part's level, with the views and groups of its run.

        Its corpus rows are no batch rows, so that nobody takes the one for the other.
        """
        trial, run = self.trial(), self.trial().composition
        level = getattr(trial.planned.options, "level", "sentence")
        return make_batch(
            sentences=sentences,
            rows=[(17 + 5 * number) % len(trial.corpus) for number in range(sentences)],
            segments=1 if level in ("sentence", "input") else 2,
            dimension=trial.rig.session.encoder().hidden_size,
            views={view.name: view.role for view in run.views if view.name != "anchor"},
            groups=dict.fromkeys(run.groups, 2),
            level=level,
            levels=("sentence", "input"),
            several=self.several(),
            dtype=dtype,
        )

    @classmethod
    def several(cls) -> list[str]:
        """List the levels that it asks for of which a text has several vectors."""
        trial = cls.trial()
        made = trial.composition.made("level")
        asked = trial.planned.needs("level")
        return [n for n in asked if n in made and isinstance(made[n].spec, MultiVectorSpec)]

    def context(self, batch: Batch) -> StepContext:
        """Return a context for a made-up batch; its texts are those of the corpus."""
        corpus, rows = self.trial().rig.session.corpus, batch.rows.tolist()
        types = self.trial().composition.needed_columns.types
        return make_context(
            batch,
            texts={name: corpus.column(name).take(rows) for name in corpus.names},
            values={
                name: corpus.values(name, kind)[rows].tolist()
                for name, kind in types.items()
                if kind != "text"
            },
        )

    def promise_it_runs_and_pure_methods_change_nothing(self) -> None:
        """The least run that has it is composed and makes some steps without an exception.

        What must be pure is called twice: it changes nothing that the part holds or was given,
        draws from no global generator, and returns the same again.
        """
        error = self.trial().error
        if isinstance(error, AssertionError | CseError | PartError):
            raise error
        if error is not None:
            raise AssertionError(f"a step raised {type(error).__name__}: {error}") from error

    def promise_its_views_have_owners(self) -> None:
        """The owners of each view that it adds are batch rows."""
        for call in self.trial().calls("views"):
            count = len(call.arguments[0])
            for view in call.result:
                owners = [] if view.owner is None else view.owner.tolist()
                assert {*owners} <= {*range(count)}, (
                    f"the owner of view {view.name} is {owners}: not batch rows, 0 to "
                    f"{count - 1}, but perhaps corpus rows"
                )

    def promise_what_it_keeps_is_detached(self) -> None:
        """After some steps no tensor that it holds has a graph behind it."""
        names = attached(self.trial().part)
        assert not names, f"keeps tensors with a graph: {', '.join(names)}"

    def promise_another_seed_draws_otherwise(self) -> None:
        """A part that asks for random numbers returns something else for others."""
        calls = [call for call in self.trial().calls() if call.drawn]
        same = [call for call in calls if snapshot(call.result) == snapshot(call.other)]
        assert not calls or len(same) < len(calls), (
            f"it draws random numbers, yet {len(calls)} calls returned the same for another seed"
        )

    def promise_its_own_generators_follow_the_run(self) -> None:
        """A generator that it makes or seeds itself draws otherwise for another seed and step."""
        trial = self.trial()
        calls = [call for call in trial.calls() if call.own and not call.drawn]
        calls = [call for call in calls if isinstance(call.arguments[-1], StepContext)]
        if not calls:
            return
        rig = trial.fresh("train.seed=7", watch=trial.path, compare=False)
        rig.step(STEPS)
        others = rig.watch.of(trial.path, calls[0].method)
        later = [
            getattr(trial.part, f"__{call.method}__" if call.method == "call" else call.method)(
                *call.arguments[:-1], call.arguments[-1].replace(step=call.arguments[-1].step + 1)
            )
            for call in calls
        ]
        for what, results in (("seed", [call.result for call in others]), ("step", later)):
            pairs = zip(calls, results, strict=False)
            assert any(snapshot(call.result) != snapshot(result) for call, result in pairs), (
                f"{calls[0].method} makes or seeds a generator of its own ({calls[0].own[0]}), "
                f"which draws the same for another {what} of the run: draw from ctx.generator"
            )

    def promise_it_draws_for_its_own_rows_or_for_all(self) -> None:
        """An augmenter draws with ``shared=False``; what sees the whole batch with True.

        Several processes else draw the same for different texts, or compute different losses. What
        ``views`` draws is not looked at: it may draw for the whole batch and take its own share.
        """
        augments = isinstance(self.trial().part, parts.Augmenter)
        whose = "the rows of its own process" if augments else "the rows of all processes"
        for call in self.trial().calls():
            wrong = [name for name, shared in call.drawn if shared == augments]
            assert call.method == "views" or not wrong, (
                f"{call.method} sees {whose} and draws {', '.join(wrong)} by "
                f"ctx.generator(..., shared={augments}): write shared={not augments}"
            )

    def promise_it_is_planned_for_every_encoder(self) -> None:
        """Its run resolves for each of ``ENCODERS``, or is refused in one line."""
        needed, registry = self.trial().needed, self.installed()
        sets = [*needed.sets, *self.sets]
        for facts in ENCODERS.values():
            with suppress(CseError):
                resolve(registry, kinds=needed.kinds, sets=sets, model=facts.model, facts=facts)

    def promise_its_state_round_trips(self) -> None:
        """One seed gives one result, bit for bit, also where a run is saved and restored.

        ``state_dict`` holds tensors and JSON values by names. The watched run is compared with one
        that stops after two steps, and with new parts that go on from its checkpoint. They
        then hold what steps change in the part, too.
        """
        trial, first = self.trial(), self.trial().second
        with tempfile.TemporaryDirectory(prefix="cse-state-") as folder:
            first.session.checkpoint(folder)
            second = Rig(open_run(folder, plugins=trial.plugins))
            second.session.prepare()
        one, other = (rig.session.parts[trial.path].state_dict() for rig in (first, second))
        same("state_dict does not restore", snapshot(dict(one)), snapshot(dict(other)))
        second.step(STEPS - 2)
        again = [*first.losses[:2], *second.losses]
        for number, (wanted, value) in enumerate(zip(trial.rig.losses, again, strict=True)):
            why = "a resume after step 2 changes the loss: return in state_dict what it needs"
            if number < 2:
                why = "one seed, two losses: make layers of torch inside `with setup.seeded(...)`"
            assert wanted == value, (
                f"{why} (step {number + 1}: {value}, and {wanted} in the first run)"
            )
        before, after = (
            snapshot({**rig.weights(), "state": rig.session.parts[trial.path].state_dict()})
            for rig in (trial.rig, second)
        )
        same("resumed after step 2, other weights", before, after)
        kept, resumed = (self.held(rig.session.parts[trial.path]) for rig in (trial.rig, second))
        lost = [p for p, v in kept.items() if v not in (trial.made.get(p), resumed.get(p))]
        fix = "which steps change: name it in remembers, or register a buffer"
        assert not lost, f"a resume forgets {lost[0]}, {fix}"

    def promise_trains_with_finite_numbers_and_its_parameters_move(self) -> None:
        """In fp32 and bf16 losses, gradients and weights are finite, also with a batch of one row.

        Each parameter of the part that is to be trained gets a gradient and moves.
        """
        rig = self.trial().second
        trained = self._trained(rig.session.parts[self.trial().path])
        known = {id(weight) for weight in rig.session.trained.values()}
        before: Mapping[str, torch.Tensor] = self._trained(self.trial().part)  # by other steps
        for precision, steps in (("fp32", 0), ("bf16", 1)):
            rig.session = rig.session.with_precision(precision)
            rig.step(steps)
            rig.step(1, rows=1)
            assert not (bad := rig.not_finite()), f"{precision}: {bad}"
            lost = [name for name, weight in trained.items() if id(weight) not in known]
            assert not lost, (
                f"{len(lost)} parameters are not with the optimiser ({', '.join(lost[:3])}): make "
                "the part an nn.Module that holds them"
            )
            still = [name for name, weight in trained.items() if torch.equal(weight, before[name])]
            assert not still, f"steps leave {', '.join(still[:3])} as they were: no gradient"
            before = {name: weight.detach().clone() for name, weight in trained.items()}

    def promise_leaves_the_online_encoder_as_it_is(self) -> None:
        """Its dropout, mode and ``requires_grad`` are those of a run without the part."""
        given = _online_state(self.trial().rig.session.encoder())
        other = [
            f"{name} is {given.get(name)}, not {value}"
            for name, value in _plain_state(self.trial().needed.cased).items()
            if not name.startswith(self._may_change) and given.get(name) != value
        ]
        assert not other, f"changes the online encoder: {'; '.join(other[:3])}"

    def promise_chunks_give_the_same_loss(self) -> None:
        """Encoded in chunks of one row (``train.chunk_size``) its run has the loss of one call.

        So no row depends on those beside it. Compared with all dropout off, also that of a branch
        with an encoder of its own. A part that draws for tokens draws again for each chunk; it only
        has to train.
        """
        trial, plain = self.trial(), "model.dropout=0"
        whole, cut = (
            trial.fresh(*sets).without_dropout()
            for sets in ((plain,), (plain, "train.chunk_size=1"))
        )
        for rig in (whole, cut):
            rig.step(2, rows=3)
        once, chunks = torch.tensor(whole.losses), torch.tensor(cut.losses)
        assert bool(chunks.isfinite().all()), f"in chunks the losses are {cut.losses}"
        drawn = any(call.drawn for call in trial.calls())
        same = torch.allclose(once, chunks, rtol=1e-3, atol=1e-4)
        assert drawn or same, (
            f"losses {whole.losses} at once, {cut.losses} in chunks: a row depends on others"
        )

    def promise_its_variants_keep_them_too(self) -> None:
        """With each of the suite's ``variants`` as options it runs, and keeps state and chunks."""
        for options in self.variants:
            variant = type("Variant", (type(self),), {"options": options, "variants": ()})
            for name, detail in failures(variant, _OF_VARIANTS).items():
                raise AssertionError(f"with {dict(options)} {name}: {detail}")

    def promise_each_option_changes_something(self) -> None:
        """Some other value of each option of its own changes what some steps show.

        So does one of the options that it inherits and must honour by itself. One that needs more
        steps or other texts, or says how fast it computes, is named in ``[tool.cse.unchecked]``.
        """
        found = dict(silent_options(self))
        refused = [f"{name} ({why})" for name, why in found.items() if why]
        silent = [name for name, why in found.items() if not why]
        assert not refused, (
            f"all other values that were tried are refused, of {', '.join(refused)}: give the "
            "suite the sets that they need, or declare the option in [tool.cse.unchecked]"
        )
        assert not silent, (
            f"other values of {', '.join(silent)} change nothing in {STEPS} steps: honour them; "
            'narrow what is inherited, as similarity: Literal["cosine"] = "cosine"; declare what '
            "needs more steps or other texts in [tool.cse.unchecked]"
        )

    def promise_it_computes_on_the_device_of_the_run(self) -> None:
        """On another device than the CPU it mixes no tensors of both; the device is pretended."""
        assert not (fault := fault_elsewhere(self)), fault

    def promise_it_holds_for_hundreds_of_steps(self) -> None:
        """After 256 steps the online encoder is the optimiser's, and a resume restores the part."""
        if type(self.trial().part).after_step is parts.Part.after_step:
            raise NotMeant("it does nothing after a step")
        assert not (fault := forgotten_later(self)), fault

    def promise_a_real_run_takes_it(self) -> None:
        """``cse train`` trains its run, and saves the model."""
        trial = self.trial()
        composition = trial.needed.compose(trial.corpus, *self.sets, "train.max_steps=2")
        said = refused_run(composition, trial.plugins)
        assert not said, f"cse train refuses its run: {said}"

    @staticmethod
    def held(part: parts.Part) -> dict[str, Any]:
        """Return the state that only this part holds, by path; shared objects are left out."""
        copies = dict(part.encoder.state_dict()) if isinstance(part, parts.Branch) else {}
        every = snapshot(part) | snapshot({"encoder": copies})
        return {path: value for path, value in every.items() if not isinstance(value, int)}

    def _trained(self, part: parts.Part) -> dict[str, nn.Parameter]:
        """Return the parameters of a part that are to be trained, by name."""
        modules: dict[str, nn.Module] = {"": part} if isinstance(part, nn.Module) else {}
        if isinstance(part, parts.Branch) and getattr(self.found().spec, "trainable", False):
            modules |= {"encoder.": part.encoder}
            modules |= {f"heads.{name}.": head for name, head in part.heads.items()}
        return {
            f"{start}{name}": weight
            for start, module in modules.items()
            for name, weight in module.named_parameters()
            if weight.requires_grad
        }


_OF_VARIANTS = (
    "it_runs_and_pure_methods_change_nothing",
    "its_state_round_trips",
    "chunks_give_the_same_loss",
)


def _online_state(module: nn.Module) -> dict[str, Any]:
    """Return the online encoder's state that a part may not change, by module name."""
    modules = dict(module.named_modules())
    drops = {name: layer for name, layer in modules.items() if isinstance(layer, nn.Dropout)}
    return {
        **{f"dropout of {name}": layer.p for name, layer in drops.items()},
        **{f"mode of {name or 'all'}": layer.training for name, layer in modules.items()},
        **{f"requires_grad of {n}": leaf.requires_grad for n, leaf in module.named_parameters()},
    }


@cache
def _plain_state(cased: bool) -> dict[str, Any]:
    """Return that state after a step of the default recipe."""
    rig = Rig(compose(encoder=shared_encoder(cased)))
    rig.step(1)
    return _online_state(rig.session.encoder())
