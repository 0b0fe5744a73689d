"""Groups of parts in which each pair that may stand together does so once at least."""

from collections.abc import Callable, Sequence

from cse_testkit.completion import Found


def covering(
    pairs: Sequence[tuple[Found, Found]], fits: Callable[[Sequence[Found]], bool], size: int
) -> list[list[Found]]:
    """Return groups of parts in which each pair that fits is together once at least.

    Greedy: a group begins with a pair that is in none yet and takes the parts that bring the most
    such pairs, many at once as long as the whole group fits. Where one alone does not, its pairs
    are asked for the one that no group may have.

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

    def best(group: Sequence[Found], out: set[Found], count: int) -> list[Found]:
        """Return parts that bring the most new pairs, and of which no pair is known to clash."""
        members, some = {*group}, list[Found]()
        fine = (part for part in near if part not in out and near[part] >= members)
        gains = {part: len(new[part] & members) for part in fine}
        for part in sorted(gains, key=lambda part: -gains[part]):
            if gains[part] and len(some) < count and near[part] >= {*some}:
                some.append(part)
        return some

    groups = []
    for one, other in pairs:
        if other not in new[one] or apart(one, other):
            continue
        group, out, count = [one, other], set[Found](), size
        while len(group) < size and (some := best(group, out, min(count, size - len(group)))):
            if fits([*group, *some]):
                group, count = [*group, *some], 2 * count
            elif len(some) > 1:
                count = len(some) // 2
            else:
                out.add(some[0])
                like = sorted(group, key=lambda part: part.spec.kind != some[0].spec.kind)
                any(apart(some[0], part) for part in like)
        for part in group:
            new[part] -= set(group)
        groups.append(group)
    return groups
