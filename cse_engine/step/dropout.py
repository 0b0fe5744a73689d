"""Cheap, seeded dropout.

On a CPU torch's own masks take about a tenth of a training step (pytorch issue 138199). Here a mask
is 16 random bits a value, drawn 64 at a time and compared with a threshold. On a GPU torch's fused
kernel is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function

from cse_core.protocols import Encoder


class DropoutSource:
    """The random bits of every dropout mask of a model.

    The state is a seed and nothing else: :meth:`seed` before a pass makes the same shapes draw the
    same masks again. On a GPU the masks come from the device's default generator, which
    :meth:`seed` restarts too, so that kernels with a dropout of their own draw the same as well.

    On a CPU the probability is rounded to a multiple of ``2 ** -16``: 0.1 becomes 0.100006. A deep
    copy of a model shares the source of the original.
    """

    def __init__(self) -> None:
        self.seed(0)

    def __deepcopy__(self, memo: dict[int, Any]) -> DropoutSource:
        return self

    def seed(self, value: int) -> None:
        """Restart the masks; the same value and the same shapes give the same masks."""
        # SFC64 gives a 64-bit word in half the time of torch's Mersenne twister.
        self._words = np.random.SFC64(value % 2**64)
        if torch.accelerator.is_available():  # the GPUs here, of whatever kind
            module = torch.get_device_module(torch.accelerator.current_accelerator())
            (getattr(module, "manual_seed_all", None) or module.manual_seed)(value % 2**63)

    @property
    def state(self) -> Any:
        """Where the draws on a CPU are; set it to draw the same once more."""
        return self._words.state

    @state.setter
    def state(self, value: Any) -> None:
        self._words.state = value

    def next_seed(self) -> int:
        """Draw a seed for something that has its own generator."""
        words: list[int] = self._words.random_raw(1).tolist()
        return words[0] >> 1

    def serve(self, module: nn.Module) -> None:
        """Let every dropout of a module draw from this source.

        Each ``nn.Dropout`` inside is replaced, in place, by a :class:`Dropout`; one that was
        replaced before takes the new source.
        """
        for inner in list(module.modules()):
            if isinstance(inner, Dropout):
                inner.source = self
            for name, child in inner.named_children():
                if type(child) is nn.Dropout:
                    setattr(inner, name, Dropout(child.p, self).train(child.training))
        if isinstance(module, Encoder):
            module.use_dropout(self)

    def leave_graphs(self) -> None:
        """Draw outside of what torch's compiler makes: it cannot follow the draws of a CPU."""
        disable: Any = torch.compiler.disable
        self.drop = disable(self.drop)  # type: ignore[method-assign]

    def drop(self, values: Tensor, p: float) -> Tensor:
        """Drop each value, of any shape, with probability ``p`` in [0, 1] and scale the others up.

        The expectation is that of ``values`` (exactly: the scale uses the rounded probability). On
        a GPU this is torch's own dropout.
        """
        threshold, count = round(p * 2**16), values.numel()
        if values.device.type != "cpu":
            return functional.dropout(values, p)
        if threshold in (0, 2**16):
            return values if threshold == 0 else values * 0.0
        with record_function("cse.dropout"):  # no operator of torch tells a profiler of it
            words = self._words.random_raw(-(-count // 4))
        drawn = torch.from_numpy(words.view(np.int16)[:count]).view(values.shape)
        scale = 1.0 / (1.0 - threshold / 2**16)
        masked: Tensor = _Masked.apply(values, drawn, threshold - 2**15, scale)  # type: ignore[no-untyped-call]
        return masked


class _Masked(torch.autograd.Function):
    """Keep values whose draw reaches ``least``, times ``scale``; others become zero.

    The draws are kept for the backward pass, 2 bytes a value, and compared again there. On a
    CPU a comparison written straight into the values' own format, then a product of equal formats,
    is several times faster than a bool mask.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, drawn: Tensor, least: int, scale: float) -> Tensor:
        ctx.save_for_backward(drawn)
        ctx.least, ctx.scale = least, scale
        return _masked(values, drawn, least, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (drawn,) = ctx.saved_tensors
        return _masked(gradients[0], drawn, ctx.least, ctx.scale), None, None, None


def _masked(values: Tensor, drawn: Tensor, least: int, scale: float) -> Tensor:
    """Return ``values * scale`` where the draw reaches ``least``, else zero."""
    kept = torch.empty(drawn.shape, dtype=values.dtype)
    torch.ge(drawn, least, out=kept)
    return torch.addcmul(kept.new_zeros(()), kept, values, value=scale, out=kept)


class Dropout(nn.Dropout):
    """Dropout whose masks come from a seeded source that a model's dropouts share."""

    def __init__(self, p: float, source: DropoutSource) -> None:
        super().__init__(p)
        self.source = source

    def forward(self, values: Tensor) -> Tensor:
        """Return ``values`` (any shape) with some dropped in training, unchanged otherwise."""
        if not self.training or self.p == 0.0:
            return values
        return self.source.drop(values, self.p)
