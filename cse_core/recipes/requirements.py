"""What parts require and who provides it; adds the branches that are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cse_core.errors import CseError, did_you_mean
from cse_core.options import LossOptions, MinerOptions, StoreOptions
from cse_core.recipes.composition import BASE_LEVELS, Composition, PlannedPart, Problem
from cse_core.registry.registry import Registry


def add_branches(run: Composition, registry: Registry) -> tuple[Composition, list[Problem]]:
    """Return the run with a default instance of each branch that its record's name asks for."""
    asked = [("views.anchor.branch", "online")]
    asked += [(f"views.{view.name}.branch", view.branch) for view in run.views]
    for store, options in run.stores():
        if options.branch is not None:
            asked.append((f"{store.path}.branch", options.branch))
    for part in run.parts:
        for alternatives in part.requires:
            branches = [need[7:] for need in alternatives if need.startswith("branch:")]
            if branches and not any(is_met(run, part, capability) for capability in alternatives):
                asked.append((part.path, branches[0]))
    parts, notes, problems = list(run.parts), list(run.notes), list[Problem]()
    present = [part.name for part in run.of("branch")]
    for where, name in asked:
        if name in present:
            continue
        if not registry.has("branch", name):
            known = [*present, *(found.name for found in registry.parts("branch"))]
            hint = _how_to_add(registry, f"branch:{name}") or did_you_mean(name, known)
            text = "unknown branch"
            problems.append(CseError(text, where=where, value=name, hint=hint))
            continue
        added = PlannedPart.of(registry.find("branch", name, where=where))
        present.append(name)
        behind = ("branch", "metric") if name == "online" else ("metric",)
        place = next((i for i, part in enumerate(parts) if part.kind in behind), len(parts))
        parts.insert(place, added)
        if name != "online":
            notes.append(f"{added.path} added with its defaults, for {where}")
    return replace(run, parts=tuple(parts), notes=tuple(notes)), problems


def check_requirements(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse each requirement and each level that nothing meets."""
    for part in run.parts:
        for alternatives in part.requires:
            if any(capability.startswith("branch:") for capability in alternatives):
                continue  # add_branches has added it, or said why it cannot
            if not any(is_met(run, part, capability) for capability in alternatives):
                yield _unmet(run, registry, part, alternatives)
    for part in run.parts:
        options = part.options
        if not isinstance(options, LossOptions | StoreOptions | MinerOptions):
            continue
        capability = f"level:{options.level}"
        if not is_met(run, part, capability):
            provided = [capability for other in run.parts for capability in other.provides]
            levels = [capability[6:] for capability in provided if capability.startswith("level:")]
            yield CseError(
                "no part of this run makes rows of this level",
                where=f"{part.path}.level",
                value=options.level,
                hint=_how_to_add(registry, capability)
                or did_you_mean(options.level, [*BASE_LEVELS, *levels]),
            )


def is_met(run: Composition, part: PlannedPart, capability: str) -> bool:
    """Tell whether a capability that a part requires is there; what is unknown counts as there."""
    prefix, _, name = capability.partition(":")
    facts = run.facts
    if prefix == "branch":
        return any(branch.name == name for branch in run.of("branch"))
    if any(capability in other.provides for other in run.parts if other is not part):
        return True
    if prefix == "view":
        return run.can_have_view(name) and run.view_makers.get(name) is not part
    if prefix == "level":
        return name in BASE_LEVELS
    if prefix == "positives":
        return run.can_have_view(name)
    if prefix == "column":
        return name == "text" or facts.columns is None or name in facts.columns
    if capability == "pairs":
        mined = any(other is not part for other in run.round_miners)
        return mined or facts.columns is None or "positive" in facts.columns
    if capability == "vocab:cased":
        return facts.cased is not False
    if capability == "mask-token":
        return facts.mask_token is not False
    return capability == "gradient:inputs"


_TAKE_OUT = "choose another --model, or remove it with --{part.kind} ~{part.name}"
_UNMET = {
    "view": (
        "the view {names}, which nothing in this run makes",
        "name its column: --set views.{name}.column=COLUMN",
    ),
    "level": ("rows of level {names}, which nothing in this run makes", ""),
    "positives": ("positives {names}, which nothing in this run finds", ""),
    "column": (
        "a column {names}, and the data has {columns}",
        "if another column holds it: --set data.columns.{name}=COLUMN",
    ),
    "vocab": ("a vocabulary that keeps capital letters, but {model} lower-cases", _TAKE_OUT),
    "mask-token": ("a mask token, but the vocabulary of {model} has none", _TAKE_OUT),
    "pairs": (
        "pairs, but neither a part nor a column 'positive' provides them",
        "name the column: --set data.columns.positive=COLUMN",
    ),
}
"""What is needed and what there is instead, and what helps where no part provides it."""


def _unmet(
    run: Composition, registry: Registry, part: PlannedPart, alternatives: tuple[str, ...]
) -> CseError:
    words: dict[str, list[str]] = {}
    remedies = []
    for capability in alternatives:
        prefix, _, name = capability.partition(":")
        text, hint = _UNMET.get(prefix, (prefix, ""))
        words.setdefault(text, []).append(repr(name))
        remedies.append(hint.format(name=name, part=part))
    facts = {"model": run.facts.model, "columns": ", ".join(run.facts.columns or ())}
    needed = [text.format(names=" or ".join(names), **facts) for text, names in words.items()]
    added = [_how_to_add(registry, capability) for capability in alternatives]
    hints = [*(added if any(added) else remedies), part.spec.hint]
    hint = ", or ".join(dict.fromkeys(filter(None, hints)))
    hint = hint or f"remove it with --{part.kind} ~{part.name}"
    return CseError(f"needs {', or '.join(needed)}", where=part.path, hint=hint)


def _how_to_add(registry: Registry, capability: str) -> str:
    """Return how to add a part that provides a capability; empty where none is known."""
    here, elsewhere = registry.providers(capability), registry.providers_elsewhere(capability)
    flags = [f"--{part.spec.kind} +{part.name} ({part.label})" for part in here[:3]]
    flags += [f"--{kind} +{name} ({command})" for kind, name, command in [*elsewhere][:3]]
    return f"add {' or '.join(flags)}" if flags else ""
