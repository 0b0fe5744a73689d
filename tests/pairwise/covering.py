"""Groups of parts in which each pair that may stand together does so once at least."""

from collections.abc import Callable, Sequence

from cse_testkit.completion import Found


def covering(
    pairs: Sequence[tuple[Found, Found]], fits: Callable[[Sequence[Found]], bool], size: int
) -> list[list[Found]]:
    """Return groups of parts in which each pair that fits is together once at least.

    Greedy: a group begins with a pair that is in none yet and takes the part that brings the most
    such pairs, as long as the whole group fits. Where it does not, its pairs are asked for the one
    that no group may have.

    Args:
        pairs: All pairs.
        fits: Whether some parts can stand in one run.
        size: Parts of a group at most.
    """
    near: dict[Found, set[Found]] = {}
    for one, other in pairs:
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    new = {part: set(others) for part, others in near.items()}

    def apart(one: Found, other: Found) -> bool:
        if fits((one, other)):
            return False
        for sets in (near, new):
            sets[one].discard(other)
            sets[other].discard(one)
        return True

    groups = []
    for one, other in pairs:
        if other not in new[one] or apart(one, other):
            continue
        group = [one, other]
        candidates = [part for part in near if near[part] >= set(group)]
        while candidates and len(group) < size:
            best = max(candidates, key=lambda part: len(new[part] & set(group)))
            candidates.remove(best)
            if not new[best] & set(group):
                break
            if fits([*group, best]):
                group.append(best)
                candidates = [part for part in candidates if best in near[part]]
            else:
                like = sorted(group, key=lambda part: part.spec.kind != best.spec.kind)
                any(apart(best, part) for part in like)
        for part in group:
            new[part] -= set(group)
        groups.append(group)
    return groups
