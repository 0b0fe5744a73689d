"""What parts require and who provides it; adds the branches that are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from cse_core.errors import CseError, did_you_mean
from cse_core.options import LossOptions, MinerOptions, StoreOptions
from cse_core.recipes.composition import PlannedPart
from cse_core.recipes.sketch import BASE_LEVELS, Sketch, tokens
from cse_core.vocabulary import Need


def add_branches(sketch: Sketch, view_branches: dict[str, str]) -> None:
    """Add a default instance of each branch that is asked for by its record's name.

    Args:
        sketch: The run; parts, notes and errors are added to.
        view_branches: Branch of each view of the run, by view.
    """
    wanted = [(f"views.{view}.branch", branch) for view, branch in view_branches.items()]
    for part, options in sketch.stores():
        if options.branch is not None:
            wanted.append((f"{part.path}.branch", options.branch))
    for part in sketch.parts:
        for need in part.spec.required(part.options):
            names = [need] if isinstance(need, str) else list(need)
            branches = [name.removeprefix("branch:") for name in names if name[:7] == "branch:"]
            if branches and not any(satisfied(sketch, part, name) for name in names):
                wanted.append((part.path, branches[0]))
    present = {part.name: part for part in sketch.of("branch")}
    for where, name in [("views.anchor.branch", "online"), *wanted]:
        if name in present:
            continue
        if not sketch.registry.has("branch", name):
            sketch.errors.append(_no_branch(sketch, where, name, list(present)))
            continue
        found = sketch.registry.find("branch", name, where=where)
        part = PlannedPart.of(found)
        present[name] = part
        if name == "online":
            first = next((i for i, p in enumerate(sketch.parts) if p.kind in ("branch", "metric")),
                         len(sketch.parts))  # fmt: skip
            sketch.parts.insert(first, part)
        else:
            last = next((i for i, p in enumerate(sketch.parts) if p.kind == "metric"),
                        len(sketch.parts))  # fmt: skip
            sketch.parts.insert(last, part)
            sketch.notes.append(f"{part.path} added with its defaults, for {where}")


def check_closure(sketch: Sketch) -> None:
    """Add an error for each requirement that nothing meets."""
    for part in sketch.parts:
        for need in _needs(part):
            alternatives = (need,) if isinstance(need, str) else need
            if any(token.startswith("branch:") for token in alternatives):
                continue  # add_branches has added it, or said why it cannot
            if not any(satisfied(sketch, part, token) for token in alternatives):
                sketch.errors.append(_unmet(sketch, part, alternatives))
    for part in sketch.parts:
        options = part.options
        if not isinstance(options, LossOptions | StoreOptions | MinerOptions):
            continue
        if not satisfied(sketch, part, f"level:{options.level}"):
            levels = [*BASE_LEVELS, *_provided(sketch, "level")]
            sketch.errors.append(
                CseError(
                    "no part of this run makes rows of this level",
                    where=f"{part.path}.level",
                    value=options.level,
                    hint=_add(sketch, f"level:{options.level}")
                    or did_you_mean(options.level, levels),
                )
            )


def satisfied(sketch: Sketch, part: PlannedPart, token: str) -> bool:
    """Tell whether a token that a part requires is there; what is unknown counts as there."""
    prefix, _, name = token.partition(":")
    facts = sketch.facts
    if any(token in tokens(other) for other in sketch.parts if other is not part):
        if prefix != "branch":
            return True
    if prefix == "view":
        return sketch.has_view(name) and sketch.made.get(name) is not part
    if prefix == "level":
        return name in BASE_LEVELS
    if prefix == "positives":
        return sketch.has_view(name)
    if prefix == "branch":
        return any(other.name == name for other in sketch.of("branch"))
    if prefix == "column":
        return name == "text" or facts.columns is None or name in facts.columns
    if token == "pairs":
        mined = any(other is not part for other in sketch.rounds())
        return mined or facts.columns is None or "positive" in facts.columns
    if token == "vocab:cased":
        return facts.cased is not False
    if token == "mask-token":
        return facts.mask_token is not False
    return token == "gradient:inputs"


def _needs(part: PlannedPart) -> tuple[Need, ...]:
    return part.spec.required(part.options)


def _provided(sketch: Sketch, prefix: str) -> Iterator[str]:
    for part in sketch.parts:
        for token in tokens(part):
            head, _, name = token.partition(":")
            if head == prefix:
                yield name


def _unmet(sketch: Sketch, part: PlannedPart, alternatives: tuple[str, ...]) -> CseError:
    hints = [hint for hint in (_add(sketch, token) for token in alternatives) if hint]
    if not hints:
        hints = [hint for hint in (_other(part, token) for token in alternatives) if hint]
    hints += [part.spec.remedy] if part.spec.remedy else []
    hint = ", or ".join(dict.fromkeys(hints)) or f"take it out with --{part.kind} ~{part.name}"
    return CseError(f"needs {_said(sketch, alternatives)}", where=part.path, hint=hint)


def _said(sketch: Sketch, alternatives: tuple[str, ...]) -> str:
    """Return what is needed, and what there is instead."""
    there = ", ".join(sketch.facts.columns or ())
    nouns = {
        "view": "the view {}, which nothing in this run makes",
        "level": "rows of level {}, which nothing in this run makes",
        "positives": "positives {}, which nothing in this run finds",
        "column": f"a column {{}}, and the data has {there}",
    }
    words = {
        "vocab:cased": f"a vocabulary that keeps capital letters, and {sketch.facts.model} "
        "lower-cases",
        "mask-token": f"a mask token, and the vocabulary of {sketch.facts.model} has none",
        "pairs": "pairs, and neither a part nor a column 'positive' brings them",
    }
    named: dict[str, list[str]] = {}
    for token in alternatives:
        prefix, _, name = token.partition(":")
        named.setdefault(words.get(token) or nouns.get(prefix, prefix), []).append(repr(name))
    return ", or ".join(text.format(" or ".join(names)) for text, names in named.items())


def _other(part: PlannedPart, token: str) -> str:
    prefix, _, name = token.partition(":")
    if prefix == "column":
        return f"if another column holds it: --set data.columns.{name}=COLUMN"
    if token in ("vocab:cased", "mask-token"):
        return f"choose another --model, or take it out with --{part.kind} ~{part.name}"
    if token == "pairs":
        return "name the column: --set data.columns.positive=COLUMN"
    if prefix == "view":
        return f"name its column: --set views.{name}.column=COLUMN"
    return ""


def _add(sketch: Sketch, token: str) -> str:
    """Return how to add a part that provides a token; empty where none is known."""
    registry = sketch.registry
    flags = [f"--{part.kind} +{part.name} ({part.label})" for part in registry.providers(token)[:3]]
    flags += [
        f"--{part.kind} +{part.name} ({part.install})"
        for part in registry.known_providers(token)[:3]
    ]
    return f"add {' or '.join(flags)}" if flags else ""


def _no_branch(sketch: Sketch, where: str, name: str, present: list[str]) -> CseError:
    installed = [found.name for found in sketch.registry.parts("branch")]
    return CseError(
        "there is no branch of this name",
        where=where,
        value=name,
        hint=_add(sketch, f"branch:{name}") or did_you_mean(name, [*present, *installed]),
    )
