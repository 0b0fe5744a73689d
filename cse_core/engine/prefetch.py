"""The tokens of the next batch, prepared while the current one computes.

The rule that keeps a run the same to the bit: the thread does nothing that a step could change. It
runs no code of any part, draws nothing and never tokenises: it looks up the tokens of the core's
own views in tables that are made, and wraps them where no part has a say. What parts add or change
(``views``, augmenters, ``content`` and ``slices`` of poolers) stays in the step. Prompts are asked
for in the step too, and rows that were wrapped in another prompt are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.types import TokenBatch
from cse_core.vocabulary import Role

Prompt = tuple[str, str]
Content = Callable[[str, Tensor, Any], TokenBatch]


@dataclass(frozen=True)
class PrefetchedView:
    """What is ready of a view.

    Attributes:
        content: Its content tokens.
        prompt: What ``rows`` are wrapped in.
        rows: Wrapped rows; None where a part has a say in them.
    """

    content: TokenBatch
    prompt: Prompt
    rows: TokenBatch | None

    def rows_in(self, prompt: Prompt) -> TokenBatch | None:
        """Return the wrapped rows if they are wrapped in this prompt."""
        return self.rows if prompt == self.prompt else None


@dataclass(frozen=True)
class PlainView:
    """A view of the core whose content no part changes.

    Attributes:
        column: Of its texts; it is tokenised.
        sentence_encoder: What encodes it.
    """

    name: str
    role: Role
    column: str
    sentence_encoder: SentenceEncoder


class Prefetcher:
    """Prepares the plain views of one batch ahead, in one background thread.

    Args:
        content: Returns rows ``[B]`` of a column as content tokens (``TrainingRows.content``).
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        self._thread: ThreadPoolExecutor | None = None
        self._expected: tuple[Tensor, Future[dict[str, PrefetchedView]]] | None = None

    def expect(self, index: Tensor, views: Sequence[PlainView]) -> None:
        """Begin to prepare the views of a batch.

        Args:
            index: ``[b]`` rows of the batch that this process encodes next.
            views: What of it is to be prepared.
        """
        self._drop()
        if not views:
            return
        wanted = []
        for view in views:
            prompt = view.sentence_encoder.pooler.prompt(view.role)
            for text in prompt:
                view.sentence_encoder.tokenizer.prompt_ids(text)  # kept: the thread finds it there
            wanted.append((view, prompt))
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="cse-prefetch")
        self._expected = index, self._thread.submit(self._prepare, wanted, index)

    def take(self, index: Tensor) -> Mapping[str, PrefetchedView]:
        """Return what is ready of a batch by view; nothing where another one was expected.

        Raises:
            Exception: What was raised in the thread.
        """
        expected, self._expected = self._expected, None
        if expected is None:
            return {}
        # Not begun yet: whoever needs it is as fast.
        if expected[1].cancel() or not torch.equal(expected[0], index):
            return {}
        return expected[1].result()

    def close(self) -> None:
        """End the thread."""
        self._drop()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._thread = None

    def _drop(self) -> None:
        if self._expected is not None:
            self._expected[1].cancel()
            self._expected = None

    def _prepare(
        self, wanted: list[tuple[PlainView, Prompt]], index: Tensor
    ) -> dict[str, PrefetchedView]:
        ready = {}
        for view, prompt in wanted:
            content = self._content(view.column, index, view.sentence_encoder.tokenizer)
            rows = (
                view.sentence_encoder.wrap(content, prompt)
                if view.sentence_encoder.only_wraps
                else None
            )
            ready[view.name] = PrefetchedView(content, prompt, rows)
        return ready
