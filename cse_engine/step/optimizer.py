"""AdamW over everything that is trained, and the learning rate of each step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.schedule import Schedule
from cse_engine.compose.settings import TrainOptions
from cse_engine.step.assembly import Assembly


class Optimizer:
    """AdamW with the run's learning-rate schedule and clipping.

    The learning rate depends only on the step, so that only the moments are state, and the scale of
    ``scaler``: what scales the loss in fp16, None in other formats.
    """

    def __init__(
        self,
        assembly: Assembly,
        options: TrainOptions,
        total_steps: int,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self.options, self.scaler = options, scaler
        self.total_steps = total_steps
        head_lr = options.lr if options.head_lr is None else options.head_lr
        self.named = dict(_trained(assembly))
        if not self.named:
            hint = "train a head, --pool +mlp, or leave out what freezes the encoder"
            raise CseError("nothing is trained: all weights are frozen", where="model", hint=hint)
        above = assembly.online.encoder.depths() if options.layer_decay < 1 else {}
        groups: dict[tuple[float, float], dict[str, Any]] = {}  # each costs launches of its own
        for name, parameter in self.named.items():
            in_encoder = name.startswith("encoder.")
            depth = above.get(name.removeprefix("encoder."), 0)
            bare = parameter.ndim < 2 or name.endswith("bias")
            rate = options.lr * options.layer_decay**depth if in_encoder else head_lr
            decay = 0.0 if bare else options.weight_decay
            new = {"params": [], "lr": rate, "peak": rate, "weight_decay": decay}
            groups.setdefault((rate, decay), new)["params"].append(parameter)
        made = [*groups.values()]
        self.adamw = torch.optim.AdamW(made, betas=options.betas, eps=options.eps, fused=True)
        self.adamw.zero_grad(set_to_none=True)

    def rate(self, step: int) -> float:
        """Return the share of the peak learning rate at a step."""
        options, total = self.options, self.total_steps
        warmup = options.warmup if options.warmup >= 1 else math.ceil(options.warmup * total)
        if step < warmup:
            return step / warmup
        return Schedule(options.schedule, 1.0, 0.0).at(step - warmup, total - warmup)

    def update(self, step: int) -> Tensor | None:
        """Clip, move the weights with the learning rate of ``step``, forget the gradients.

        Returned is the norm of the gradient before it was clipped, None where nothing clips it.
        """
        share = self.rate(step)
        for group in self.adamw.param_groups:
            group["lr"] = group["peak"] * share
        norm, scaler = None, self.scaler
        if scaler is not None:
            scaler.unscale_(self.adamw)
        if self.options.clip:
            norm = nn.utils.clip_grad_norm_(self.named.values(), self.options.clip)
        if scaler is None:
            self.adamw.step()
        else:
            scaler.step(self.adamw)  # not where a gradient is not finite
            scaler.update()
        self.adamw.zero_grad(set_to_none=True)
        return norm

    def untrained(self) -> list[str]:
        """Return the parts whose weights have had no gradient in any step; waits for the device."""
        moved: dict[str, bool] = {}
        for name, parameter in self.named.items():
            path = ".".join(name.split(".")[: 1 if name.startswith("encoder.") else 2])
            moments = self.adamw.state.get(parameter, {})
            had = "exp_avg" in moments and bool(moments["exp_avg"].any())
            moved[path] = moved.get(path, False) or had
        return [path for path, had in moved.items() if not had]

    def state(self) -> dict[str, Tensor]:
        """Return the moments by parameter name, and the state of the scaler."""
        scaler = {} if self.scaler is None else self.scaler.state_dict()
        return {
            **{f"scaler:{key}": torch.tensor(float(value)) for key, value in scaler.items()},
            **{
                f"{name}:{key}": value
                for name, parameter in self.named.items()
                for key, value in self.adamw.state.get(parameter, {}).items()
            },
        }

    def restore(self, saved: dict[str, Tensor]) -> None:
        """Take the moments that ``state`` returned."""
        for place, value in saved.items():
            name, _, key = place.rpartition(":")
            if name == "scaler" and self.scaler is not None:
                now = self.scaler.state_dict()
                self.scaler.load_state_dict({**now, key: type(now[key])(value.item())})
            elif name in self.named:
                parameter = self.named[name]
                self.adamw.state[parameter][key] = value.to(parameter.device)


def _trained(assembly: Assembly) -> Iterator[tuple[str, nn.Parameter]]:
    seen: set[nn.Parameter] = set()
    for path, module in [("encoder", assembly.online.encoder), *assembly.modules()]:
        for name, parameter in module.named_parameters():
            if parameter.requires_grad and parameter not in seen:
                seen.add(parameter)
                yield f"{path}.{name}", parameter


def count_trained(encoder: nn.Module) -> tuple[int, int]:
    """Count the weights that train, and all weights."""
    sizes = [(weight.numel(), weight.requires_grad) for weight in encoder.parameters()]
    return sum(size for size, trains in sizes if trains), sum(size for size, _ in sizes)


def count_own(part: object, encoder: nn.Module) -> int:
    """Count the weights that a part trains beside those of the encoder."""
    shared = {id(parameter) for parameter in encoder.parameters()}
    every = part.parameters() if isinstance(part, nn.Module) else ()
    return sum(p.numel() for p in every if p.requires_grad and id(p) not in shared)
