"""Groups of parts in which each pair that may stand together does so once at least."""

from collections.abc import Callable, Collection, Sequence

from cse_testkit.completion import Found


def covering(
    allowed: Collection[tuple[Found, Found]], fits: Callable[[Sequence[Found]], bool], size: int
) -> list[list[Found]]:
    """Return groups of parts in which each allowed pair is together once at least.

    Greedy: a group begins with a pair that is in none yet and takes the part that brings the most
    such pairs, as long as all its pairs are allowed and the whole group fits.

    Args:
        allowed: The pairs.
        fits: Whether some parts can stand in one run.
        size: Parts of a group at most.
    """
    near: dict[Found, set[Found]] = {}
    for one, other in allowed:
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    new = {part: set(others) for part, others in near.items()}
    groups = []
    for one, other in allowed:
        if other not in new[one]:
            continue
        group = [one, other]
        candidates = [part for part in near if near[part] >= set(group)]
        while candidates and len(group) < size:
            best = max(candidates, key=lambda part: len(new[part] & set(group)))
            candidates.remove(best)
            if new[best] & set(group) and fits([*group, best]):
                group.append(best)
                candidates = [part for part in candidates if best in near[part]]
        for part in group:
            new[part] -= set(group)
        groups.append(group)
    return groups
