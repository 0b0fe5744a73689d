"""Gradients of a batch from several small pieces, each computed by one thread of its own.

On a CPU this is as fast as letting every operation use all cores while the machine is quiet, and
much faster while it is shared: threads meet once a step instead of after every operation, so a
core that is taken away costs its own share and not the others'. Pieces are summed in their order,
whoever computed them, so the same batch gives the same gradient.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from mlm.model import MaskedLanguageModel
from mlm.rows import Masked


class GradientPool:
    """Compute masked-loss gradients with a number of worker threads.

    Args:
        model: The model whose `.grad` fields are filled.
        workers: Worker threads; 1 computes the whole batch at once in the calling thread.
        dtype: Number format of the layers.
        words: Weighted vectors of the words `[V, H]` for the sentence loss; None leaves it out.
        sentence_weight: Weight of the sentence loss beside the masked loss.
        piece_tokens: Positions of a piece, about.
    """

    def __init__(
        self,
        model: MaskedLanguageModel,
        workers: int,
        dtype: torch.dtype,
        words: Tensor | None = None,
        sentence_weight: float = 1.0,
        piece_tokens: int = 2048,
    ) -> None:
        self.model, self.dtype, self.piece_tokens = model, dtype, piece_tokens
        self.sentence_weight = sentence_weight
        self.device = next(model.parameters()).device
        self.words = None if words is None else words.to(self.device)
        self.pool = None
        if self.device.type == "cpu":
            torch.set_num_threads(1)
        if workers > 1 and self.device.type == "cpu":
            self.pool = ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1))

    def _piece(self, part: Masked, whole: Masked) -> tuple[float, float, tuple[Tensor, ...]]:
        ids, positions, labels = (tensor.to(self.device) for tensor in part)
        masked, sentence = self.model(ids, positions, labels, self.dtype, self.words)
        masked = masked * (len(labels) / len(whole.labels))
        sentence = sentence * (len(ids) / len(whole.ids))
        loss = masked + self.sentence_weight * sentence if sentence.requires_grad else masked
        gradients = torch.autograd.grad(loss, list(self.model.parameters()))
        return float(masked.detach()), float(sentence.detach()), gradients

    def fill(self, batch: Masked) -> tuple[float, float]:
        """Set `.grad` of every parameter for a batch; return its masked and its sentence loss."""
        if self.pool is None:
            results = [self._piece(batch, batch)]
        else:
            pieces = split(batch, max(1, self.piece_tokens // batch.ids.shape[1]))
            results = list(self.pool.map(lambda part: self._piece(part, batch), pieces))
        summed = list(results[0][2])
        for _, _, gradients in results[1:]:
            torch._foreach_add_(summed, list(gradients))
        for parameter, gradient in zip(self.model.parameters(), summed, strict=True):
            parameter.grad = gradient
        return sum(item[0] for item in results), sum(item[1] for item in results)


def split(batch: Masked, rows: int) -> list[Masked]:
    """Split a batch into pieces of so many rows; pieces with nothing to predict are left out."""
    length = batch.ids.shape[1]
    pieces = []
    for start in range(0, len(batch.ids), rows):
        ids = batch.ids[start : start + rows]
        low, high = start * length, (start + len(ids)) * length
        inside = (batch.positions >= low) & (batch.positions < high)
        if inside.any():
            pieces.append(Masked(ids, batch.positions[inside] - low, batch.labels[inside]))
    return pieces
