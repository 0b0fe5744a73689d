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
        for alternatives in _required(part):
            branches = [token[7:] for token in alternatives if token.startswith("branch:")]
            if branches and not any(is_met(run, part, token) for token in alternatives):
                asked.append((part.path, branches[0]))
    parts, notes, problems = list(run.parts), list(run.notes), list[Problem]()
    present = [part.name for part in run.of("branch")]
    for where, name in asked:
        if name in present:
            continue
        if not registry.has("branch", name):
            problems.append(_no_branch(registry, where, name, present))
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
        for alternatives in _required(part):
            if any(token.startswith("branch:") for token in alternatives):
                continue  # add_branches has added it, or said why it cannot
            if not any(is_met(run, part, token) for token in alternatives):
                yield _unmet(run, registry, part, alternatives)
    for part in run.parts:
        options = part.options
        if not isinstance(options, LossOptions | StoreOptions | MinerOptions):
            continue
        token = f"level:{options.level}"
        if not is_met(run, part, token):
            provided = [token for other in run.parts for token in other.provides]
            levels = [token[6:] for token in provided if token.startswith("level:")]
            yield CseError(
                "no part of this run makes rows of this level",
                where=f"{part.path}.level",
                value=options.level,
                hint=_how_to_add(registry, token)
                or did_you_mean(options.level, [*BASE_LEVELS, *levels]),
            )


def is_met(run: Composition, part: PlannedPart, token: str) -> bool:
    """Tell whether a token that a part requires is there; what is unknown counts as there."""
    prefix, _, name = token.partition(":")
    facts = run.facts
    if prefix == "branch":
        return any(branch.name == name for branch in run.of("branch"))
    if any(token in other.provides for other in run.parts if other is not part):
        return True
    if prefix == "view":
        return run.can_have_view(name) and run.view_makers.get(name) is not part
    if prefix == "level":
        return name in BASE_LEVELS
    if prefix == "positives":
        return run.can_have_view(name)
    if prefix == "column":
        return name == "text" or facts.columns is None or name in facts.columns
    if token == "pairs":
        mined = any(other is not part for other in run.round_miners)
        return mined or facts.columns is None or "positive" in facts.columns
    if token == "vocab:cased":
        return facts.cased is not False
    if token == "mask-token":
        return facts.mask_token is not False
    return token == "gradient:inputs"


def _required(part: PlannedPart) -> list[tuple[str, ...]]:
    """Return what a part requires, each as the alternatives that meet it."""
    return [(need,) if isinstance(need, str) else need for need in part.requires]


def _unmet(
    run: Composition, registry: Registry, part: PlannedPart, alternatives: tuple[str, ...]
) -> CseError:
    hints = [_how_to_add(registry, token) for token in alternatives]
    if not any(hints):
        hints = [_other_remedy(part, token) for token in alternatives]
    hints = list(dict.fromkeys(hint for hint in (*hints, part.spec.remedy) if hint))
    hint = ", or ".join(hints) or f"take it out with --{part.kind} ~{part.name}"
    return CseError(f"needs {_in_words(run, alternatives)}", where=part.path, hint=hint)


def _in_words(run: Composition, alternatives: tuple[str, ...]) -> str:
    """Return what is needed, and what there is instead."""
    model, columns = run.facts.model, ", ".join(run.facts.columns or ())
    words = {
        "view": "the view {}, which nothing in this run makes",
        "level": "rows of level {}, which nothing in this run makes",
        "positives": "positives {}, which nothing in this run finds",
        "column": f"a column {{}}, and the data has {columns}",
        "vocab": f"a vocabulary that keeps capital letters, and {model} lower-cases",
        "mask-token": f"a mask token, and the vocabulary of {model} has none",
        "pairs": "pairs, and neither a part nor a column 'positive' brings them",
    }
    named: dict[str, list[str]] = {}
    for token in alternatives:
        prefix, _, name = token.partition(":")
        named.setdefault(words.get(prefix, prefix), []).append(repr(name))
    return ", or ".join(text.format(" or ".join(names)) for text, names in named.items())


def _other_remedy(part: PlannedPart, token: str) -> str:
    """Return what helps where no part provides a token."""
    prefix, _, name = token.partition(":")
    if prefix == "column":
        return f"if another column holds it: --set data.columns.{name}=COLUMN"
    if token in ("vocab:cased", "mask-token"):
        return f"choose another --model, or take it out with --{part.kind} ~{part.name}"
    if token == "pairs":
        return "name the column: --set data.columns.positive=COLUMN"
    return f"name its column: --set views.{name}.column=COLUMN" if prefix == "view" else ""


def _how_to_add(registry: Registry, token: str) -> str:
    """Return how to add a part that provides a token; empty where none is known."""
    flags = [f"--{part.kind} +{part.name} ({part.label})" for part in registry.providers(token)[:3]]
    flags += [
        f"--{part.kind} +{part.name} ({part.install})"
        for part in registry.known_providers(token)[:3]
    ]
    return f"add {' or '.join(flags)}" if flags else ""


def _no_branch(registry: Registry, where: str, name: str, present: list[str]) -> CseError:
    installed = [found.name for found in registry.parts("branch")]
    return CseError(
        "there is no branch of this name",
        where=where,
        value=name,
        hint=_how_to_add(registry, f"branch:{name}") or did_you_mean(name, [*present, *installed]),
    )
