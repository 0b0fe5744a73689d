"""Time that a call takes, as steadily as a shared machine allows."""

from __future__ import annotations

import time
from collections.abc import Callable


def least_seconds(call: Callable[[], object], tries: int = 5) -> float:
    """Return the least processor time of this thread that a call took, in seconds.

    What else the machine and the collector of garbage do makes a try longer, never shorter: the
    least of some tries is the call's own time.

    Args:
        call: What to time.
        tries: How often.
    """
    taken = []
    for _ in range(tries):
        start = time.thread_time()
        call()
        taken.append(time.thread_time() - start)
    return min(taken)
