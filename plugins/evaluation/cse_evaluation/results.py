"""What a model scored on a set, and means over the sets of a suite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean
from typing import Any

from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.suites import SuiteScore

Baseline = Mapping[str, Any]
"""Numbers of words alone on a set by name, None for an undefined one, and ``lexical``: what was
counted, as ``--json`` shows it."""


@dataclass(frozen=True, kw_only=True)
class Result(SuiteScore):
    """The scores of one set, or their mean over several.

    ``items`` are what they are made of: the cosine of each pair, whether each text's label was
    predicted, or how many titles stand before each document's own ``[N]``.
    """

    items: NDArray[Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        name: str,
        numbers: Mapping[str, float | None],
        facts: Mapping[str, Any],
        *,
        words: Baseline | None = None,
        **rest: Any,
    ) -> Result:
        """Return a result; numbers that are None are undefined, and null in JSON.

        ``rest`` is its split, setting and items.
        """
        known = {**numbers, **(words or {})}
        scores = {key: value for key, value in known.items() if isinstance(value, float)}
        facts = {**{key: known[key] for key in known if key not in scores}, **facts}
        return cls(name=name, scores=scores, facts=facts, **rest)


@dataclass
class Scores:
    """What one model scored, ``others`` on each suite of another distribution.

    ``encoder`` is its pooling, prompt and length in words.
    """

    model: str
    encoder: str
    pairs: list[Result] = field(default_factory=list)
    tasks: list[Result] = field(default_factory=list)
    documents: list[Result] = field(default_factory=list)
    collections: list[Result] = field(default_factory=list)
    others: list[Sequence[SuiteScore]] = field(default_factory=list)

    @property
    def all(self) -> list[SuiteScore]:
        """Return them all."""
        lists = (self.pairs, self.tasks, self.documents, self.collections)
        return [*chain.from_iterable(lists), *chain.from_iterable(self.others)]


def mean_of(
    results: Sequence[Result],
    tests: Collection[str],
    *,
    prefix: str = "",
    key: str,
    sums: Sequence[str],
    **about: Any,
) -> list[Result]:
    """Return the mean over the test sets of a suite, none where fewer than two are there.

    Every number that all of them have is averaged; one that any has undefined is undefined. Facts
    that ``sums`` names are added up. ``prefix`` stands before ``mean`` (over all ``tests``) or
    ``mean-of-4`` in its name; ``key`` lists the sets in its JSON; ``about`` is its split and
    setting.
    """
    kept = [part for part in results if part.name in tests]
    if len(kept) < 2:
        return []
    means: dict[str, float | None] = {}
    undefined = (key for part in kept for key, value in part.facts.items() if value is None)
    for name in dict.fromkeys([*(key for part in kept for key in part.scores), *undefined]):
        known = [part.scores[name] for part in kept if name in part.scores]
        if all(name in part.scores or name in part.facts for part in kept):
            means[name] = fmean(known) if len(known) == len(kept) else None
    facts: dict[str, Any] = {name: sum(part.facts[name] for part in kept) for name in sums}
    facts[key] = [part.name for part in kept]
    name = "mean" if len(kept) == len(tests) else f"mean-of-{len(kept)}"
    return [Result.of(prefix + name, means, facts, **about)]


def rounded(value: Any, places: int = 4) -> Any:
    """Return a JSON value with every float in it rounded."""
    if isinstance(value, float):
        return round(value, places)
    if isinstance(value, Mapping):
        return {key: rounded(item, places) for key, item in value.items()}
    return [rounded(item, places) for item in value] if isinstance(value, list) else value


def check_names(names: Sequence[str]) -> None:
    """Refuse two sets of one name, of which results could show only one."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        hint = "rename a file, or evaluate them one by one"
        raise CseError(f"two sets are called {twice!r}", hint=hint)
