"""What is asked of a part for seconds: its options, another device, later steps, a real run.

``suite`` is a ``PartSuite``, ``trial`` its ``Trial``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import nn

import cse
from cse import Composition
from cse_cli.api import Choice, Installed, format_value
from cse_core.errors import CseError
from cse_core.loading import load_factory
from cse_core.parts import Augmenter, Branch
from cse_testkit.batches import make_setup
from cse_testkit.elsewhere import DEVICE, ELSEWHERE, move_module, moved, pretended
from cse_testkit.other_options import asked_of, others
from cse_testkit.promises import NotAsked
from cse_testkit.watching import difference, snapshot, tensors_of

STEPS = 3
LATER = 256
"""Steps after which a part still holds to its contract."""
_ROUNDS = 3
_NAMES = re.compile(r"\.(views|blocks)\.")
"""What negatives say of their origin, whatever they hold."""
_BESIDE = 6
"""Values of other options that are tried with an option that does nothing alone."""
_ON_DEVICE = (
    *("call", "mine", "candidates", "weigh", "pool", "forward", "join", "reads", "sums"),
    "after_step",
)
"""Methods whose tensors are on the run's device."""


def silent_options(suite: Any) -> Iterator[tuple[str, str]]:
    """Yield the options whose other values change nothing that some steps show.

    With each comes why, where the run refuses all that were tried: a value and the error's line.
    """
    trial = suite.trial()
    options, path = trial.planned.options, trial.path
    base = load_factory(type(trial.planned.spec).options)
    shown: dict[tuple[str, ...], Any] = {}

    def behaviour(*sets: str) -> Any:
        if sets not in shown:
            shown[sets] = _behaviour(trial, *(f"{path}.{text}" for text in sets))
        return shown[sets]

    left = {*suite.unchecked()}
    if not getattr(trial.planned.spec, "keeps", False):
        left.add("view")  # whose vectors a store keeps
    asked = [name for name in asked_of(suite.part[0], options, base) if name not in left]
    texts = {name: [f"{name}={_typed(value)}" for value in others(options, name)] for name in asked}
    switches = [
        text
        for name in asked
        for text in texts[name]
        if type(getattr(options, name)) not in (int, float)
    ]
    if asked and isinstance(behaviour(), str):
        raise NotAsked("its run is refused once it has begun")
    for name in asked:
        if any(_differ(behaviour(), behaviour(text)) for text in texts[name]):
            continue
        beside = [text for text in switches if text not in texts[name]][:_BESIDE]
        both = [(switch, text) for switch in beside for text in texts[name][:2]]
        if not any(_differ(behaviour(switch), behaviour(switch, text)) for switch, text in both):
            tried = [behaviour(text) for text in texts[name]]
            refused = all(
                isinstance(made, str) for made in [*tried, *(behaviour(*b) for b in both)]
            )
            yield name, f"{texts[name][0]}: {tried[0]}" if refused else ""


def _typed(value: Any) -> str:
    return "none" if value is None else str(format_value(value))


def _differ(one: Any, other: Any) -> bool:
    return not isinstance(one, str) and not isinstance(other, str) and bool(difference(one, other))


def _behaviour(trial: Any, *sets: str) -> Mapping[str, Any] | str:
    """Return what steps with other options show; the error's line where the run is refused."""
    try:
        rig = trial.fresh(*sets, watch=trial.path, compare=False)
        rig.step(STEPS)
    except CseError as error:
        return error.line()
    part = rig.session.parts[trial.path]
    rounds = [call for call in rig.watch.of(trial.path, "next_round")][:1]
    later = [
        part.next_round(_round(call.arguments[0], number))
        for call in rounds
        for number in range(2, 2 + _ROUNDS)
    ]
    seen = [call.result for call in rig.watch.of(trial.path)]
    logged = [dict(scalars) for scalars in rig.scalars]
    shown = snapshot([rig.losses, logged, seen, later, rig.weights(), dict(part.state_dict())])
    return {
        path: value
        for path, value in shown.items()
        if not isinstance(value, int) and not _NAMES.search(path)
    }


def _round(ctx: Any, number: int) -> Any:
    return replace(ctx, round=number, scores=(0.0,) * (number - 1))


def fault_elsewhere(suite: Any) -> str:
    """Describe what a part does on a device that is not the CPU; "" where it is right."""
    trial, planned = suite.trial(), suite.trial().planned
    session = trial.rig.session
    encoder = session.encoder()
    setup = make_setup(
        planned.name,
        dimension=encoder.hidden_size,
        device=DEVICE,
        tokenizer=session.tokenizer(),
        encoder=encoder,
        corpus=session.corpus,
    )
    calls = [call for call in trial.calls() if call.method in _ON_DEVICE]
    if isinstance(trial.part, Branch):
        return ""
    with pretended():
        try:
            part = load_factory(planned.spec.factory)(planned.options, setup)
            part.name, part.path, part.owner = planned.name, planned.path, planned.owner
            if isinstance(part, nn.Module):
                move_module(part)
            part.prepare(session.corpus)
        except Exception as error:
            if ELSEWHERE in str(error):
                return f"__init__ or prepare: {error}"
            raise NotAsked(f"it cannot be made outside of a run: {error}") from None
        for call in calls:
            tokens = isinstance(trial.part, Augmenter)
            if tokens and not isinstance(call.arguments[0], torch.Tensor):
                continue
            given = [moved(value) for value in call.arguments]
            name = "__call__" if call.method == "call" else call.method
            try:
                result = getattr(part, name)(*given)
            except Exception as error:
                if ELSEWHERE in str(error):
                    return f"{name}: {error}"
                raise NotAsked(f"{name} cannot be called outside of a run: {error}") from None
            for tensor in _floats(result):
                if tensor.device.type != DEVICE.type:
                    return f"{name} returns numbers on the CPU: leave them on the device"
    return ""


def _floats(value: Any) -> Iterator[torch.Tensor]:
    return (tensor for tensor in tensors_of(value) if tensor.is_floating_point())


def forgotten_later(suite: Any) -> str:
    """Describe what steps up to the 256th do that a resume loses, or to the online encoder."""
    trial = suite.trial()
    rig = trial.fresh(watch=trial.path, compare=False)
    rig.step(1)
    part = rig.session.parts[trial.path]
    batch, ctx = rig.watch.of(trial.path, "after_step")[0].arguments
    online = rig.session.encoder().state_dict()
    before, made = snapshot(dict(online)), suite.held(part)
    for step in range(1, LATER + 1):
        part.after_step(batch, ctx.replace(step=step, total_steps=2 * LATER))
        if step % 50 == 0 or step == LATER:
            where = difference(before, snapshot(dict(online)))
            if where is not None:
                return f"after_step changes the online encoder within {step} steps: {where}"
    state = deepcopy(dict(part.state_dict()))
    other = trial.fresh().session.prepare().parts[trial.path]
    other.load_state_dict(state)
    kept, resumed = suite.held(part), suite.held(other)
    lost = [p for p, value in kept.items() if value not in (made.get(p), resumed.get(p))]
    return (
        f"{LATER} steps change {lost[0]}, and a resume forgets it: name it in remembers"
        if lost
        else ""
    )


def refused_run(composition: Composition, plugins: Installed) -> str:
    """Describe why ``cse train`` refuses a composition; "" where it trains and saves."""
    with tempfile.TemporaryDirectory(prefix="cse-run-") as folder:
        try:
            cse.train(
                cse.Plan(composition, Choice(), plugins, None),  # type: ignore[arg-type]
                out=f"{folder}/run",
                quiet=True,
            )
        except CseError as error:
            return error.line()
    return ""
