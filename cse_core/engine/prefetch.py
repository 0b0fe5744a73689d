"""The tokens of the next batch, prepared while the current one computes.

The rule that keeps a run the same to the bit: the thread does nothing that a step could change. It
runs no code of any part, draws nothing and never tokenises: it looks up the tokens of the core's
own views in tables that are made, and wraps them where no part has a say. What parts add or change
(``views``, augmenters, ``content`` and ``slices`` of poolers) stays in the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from cse_core.types import TokenBatch

Ready = Mapping[str, TokenBatch]
"""Rows by view."""


class Prefetcher:
    """Prepares the rows of one batch ahead, in one background thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cse-prefetch")
        self._expected: tuple[Tensor, Future[Ready]] | None = None

    def expect(self, index: Tensor, make: Callable[[Tensor], Ready]) -> None:
        """Begin to prepare the ``[b]`` rows that come next; ``make`` runs in the thread."""
        if self._expected is not None:
            self._expected[1].cancel()
        self._expected = index, self._thread.submit(make, index)

    def take(self, index: Tensor) -> Ready:
        """Return what is ready of a batch by view; nothing where another one was expected.

        Raises:
            Exception: What was raised in the thread.
        """
        expected, self._expected = self._expected, None
        # If it is not begun yet, whoever needs it is as fast.
        if expected is None or expected[1].cancel() or not torch.equal(expected[0], index):
            return {}
        return expected[1].result()

    def close(self) -> None:
        """End the thread; nothing can be expected any more."""
        self._thread.shutdown(wait=True, cancel_futures=True)
