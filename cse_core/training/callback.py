"""Who looks at what training makes of the vectors, beside the scores of the dev sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor


class Callback:
    """Looks at a run; this one sees nothing. The command line looks for a collapse."""

    def numbers(self, anchors: Tensor) -> dict[str, float]:
        """Return what metrics.jsonl is to say of a batch's vectors ``[A, D]`` in training."""
        return {}

    def warnings(self, scores: Mapping[str, float], sizes: Mapping[str, int]) -> Iterator[str]:
        """Yield what to look at in these numbers and dev scores.

        ``sizes`` has the sentences of each dev set; of the ``batch`` where there is none.
        """
        yield from ()
