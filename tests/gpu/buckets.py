"""What compiling the encoder gives: shapes as they come, buckets of tokens, the parts alone.

Rows lie end to end, so a step has a new number of tokens, for which torch.compile makes code that
takes any (dynamic shapes), or its own for each. In a bucket the tokens are filled up to the next
multiple of a number by rows that nothing reads, and the number of rows and the longest row are
fixed: shapes repeat, and CUDA graphs can replay them. The parts alone are what lies between the
products: dense layer and activation, dense layer with dropout, residual sum and norm.

Attention goes through an operator with cumulative lengths; on a CPU it is dense with a mask, and
the compiled encoders must only give the same numbers.
"""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, BertConfig, BertModel

from tests.benchmarks.inputs import Shape, content_lengths
from tests.gpu.runs import SIZES, drawn_rows, encoder
from tests.gpu.setting import Setting, exact

NAME = "rows_by_starts"
STEP = 1024
"""Tokens of a bucket are a multiple of this."""
VARIANTS = ("eager", "dynamic", "buckets", "graphs", "parts")


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
    *, starts: Tensor, longest: int, scaling: float | None = None, dropout: float = 0.0,
    **_: object,
) -> tuple[Tensor, None]:  # fmt: skip
    """Attend inside each row of ``[1, heads, T, d]``, whose rows begin at ``starts``."""
    if query.device.type == "cpu":
        place = torch.arange(query.shape[2])
        row = torch.searchsorted(starts[1:].long(), place, right=True)
        seen = row[:, None] == row[None]
        out = functional.scaled_dot_product_attention(query, key, value, seen, scale=scaling)
        return out.transpose(1, 2), None
    q, k, v = (each.squeeze(0).transpose(0, 1).to(torch.bfloat16) for each in (query, key, value))
    kernel = torch.ops.aten._flash_attention_forward
    out = kernel(q, k, v, starts, starts, longest, longest, dropout, False, False, scale=scaling)[0]
    return out.unsqueeze(0), None


@dataclass(frozen=True)
class Batch:
    """``[T]`` ids and positions, ``[R+1]`` starts, the longest row, tokens that count."""

    ids: Tensor
    positions: Tensor
    starts: Tensor
    longest: int
    tokens: int


def batch(lengths: list[int], vocabulary: int, device: str) -> Batch:
    """Return rows of drawn tokens."""
    starts = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    ids = torch.randint(5, vocabulary, (sum(lengths),))
    positions = torch.cat([torch.arange(length) for length in lengths])
    there = (each.to(device) for each in (ids, positions, starts))
    return Batch(*there, max(lengths), sum(lengths))


def filled(given: Batch, most: int, step: int = STEP) -> Batch:
    """Return the batch in its bucket: filled by rows of at most ``most`` tokens; some are empty.

    The number of rows depends on the number of real rows alone, tokens are a multiple of ``step``.
    """
    free = -given.tokens % step
    device = given.ids.device
    more = -(-step // most)
    ends = [min(given.tokens + (number + 1) * most, given.tokens + free) for number in range(more)]
    starts = torch.cat([given.starts, torch.tensor(ends, dtype=torch.int32, device=device)])
    ids = functional.pad(given.ids, (0, free))
    place = torch.arange(free, device=device) % most
    return Batch(ids, torch.cat([given.positions, place]), starts, most, given.tokens)


def states(model: Callable[..., Any], given: Batch) -> Tensor:
    """Return the states of the tokens that count, ``[T, H]``."""
    out = model(
        input_ids=given.ids[None], position_ids=given.positions[None], starts=given.starts,
        longest=given.longest,
    )  # fmt: skip
    last: Tensor = out[0].squeeze(0)
    return last[: given.tokens]


def compiled(model: BertModel, variant: str) -> Callable[..., Any]:
    """Return the model compiled in one of the ways; the parts alone are changed in place."""
    if variant == "dynamic":
        return torch.compile(model, dynamic=True)
    if variant == "buckets":
        return torch.compile(model, dynamic=False)
    if variant == "graphs":
        return torch.compile(model, dynamic=False, mode="reduce-overhead")
    if variant == "parts":
        for layer in model.encoder.layer:
            for part in (layer.attention.output, layer.intermediate, layer.output):
                part.compile(dynamic=True)
    return model


def made(shape: Shape, vocabulary: int, device: str, dropout: float) -> BertModel:
    """Return a random encoder whose attention is that of this module."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, lambda *_, **__: None)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=shape.hidden, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, intermediate_size=shape.inner,
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).to(device)
    model.set_attn_implementation(NAME)
    return model


def run(setting: Setting) -> None:
    """Compare every variant, first its numbers and then its time."""
    exact()
    works = (("tiny", 8, 8),) if setting.small else (
        ("MiniLM", 32, 128), ("BERT-base", 32, 128), ("BERT-base", 512, 32),
    )  # fmt: skip
    for name, longest, rows in works:
        shape = Shape(1, 32) if setting.small else SIZES[name]
        with tempfile.TemporaryDirectory() as folder:
            small = encoder(Path(folder), "words", Shape(1, 64))
            texts = drawn_rows(small, rows * 6, longest)
            lengths = [count + 2 for count in content_lengths(small, texts)]
        vocabulary = 1_000 if setting.small else 30_522
        torch.manual_seed(1)
        batches = [
            batch(lengths[at : at + rows], vocabulary, setting.device)
            for at in range(0, len(lengths), rows)
        ]
        for variant in VARIANTS:
            about = {"encoder": name, "tokens": longest, "rows": rows, "variant": variant}
            if setting.left < 20:
                setting.keep("compile", None, **about, left_out="no time left")
                continue
            if variant == "graphs" and setting.small:
                continue  # the same code as buckets: there are no graphs on a CPU
            with setting.trying("compile", **about):
                measure(setting, shape, vocabulary, batches, longest, about)
            torch.compiler.reset()


def measure(
    setting: Setting, shape: Shape, vocabulary: int, batches: list[Batch], longest: int,
    about: dict[str, Any],
) -> None:  # fmt: skip
    """Compare one variant with eager states and gradients, and time its steps."""
    variant, device = about["variant"], setting.device
    step = 32 if setting.small else STEP
    given = batches
    if variant in ("buckets", "graphs"):
        given = [filled(each, longest, step) for each in batches]
    far = None
    if about["encoder"] in ("tiny", "MiniLM"):  # compiling is slow, the code that is made the same
        plain = made(shape, vocabulary, device, 0.0)
        other = copy.deepcopy(plain)
        changed, far = compiled(other, variant), 0.0
        with autocast(setting):
            # A graph is recorded when a shape comes for the second time, and replayed from then on.
            pairs = list(zip(batches, given, strict=True))[:2] * (3 if variant == "graphs" else 1)
            for one, two in pairs:
                torch.compiler.cudagraph_mark_step_begin()
                far = max(far, difference(plain, other, changed, one, two))
        del plain, other, changed
        torch.compiler.reset()
    model = made(shape, vocabulary, device, 0.1)
    ready = compiled(model, variant)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=not setting.small)

    def train(each: Batch) -> None:
        torch.compiler.cudagraph_mark_step_begin()
        with autocast(setting):
            states(ready, each).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    began = time.perf_counter()
    if not setting.small:
        for each in given:  # every bucket is compiled, and captured
            for _ in range(3 if variant == "graphs" else 1):
                train(each)
        setting.wait()
    first = time.perf_counter() - began
    took = setting.seconds(lambda: [train(each) for each in given[: 1 if setting.small else None]])
    facts = {
        "far": far, "first_seconds": first, "ms": 1000 * took / len(given),
        "filler": sum(len(each.ids) for each in given) / sum(each.tokens for each in given) - 1,
    }  # fmt: skip
    most = 1e-4 if setting.small else 5e-2
    setting.keep("compile", None if far is None else far < most, **about, **facts)


def autocast(setting: Setting) -> Any:
    """Return what makes products in bf16 on a GPU."""
    return torch.autocast("cuda" if not setting.small else "cpu", torch.bfloat16, not setting.small)


def difference(
    plain: BertModel, other: BertModel, changed: Callable[..., Any], one: Batch, two: Batch
) -> float:
    """Return how far states and gradients are from the eager ones, relative, the larger."""
    here, there = states(plain, one).float(), states(changed, two).float()
    apart = float((here - there).detach().norm() / here.detach().norm())
    for model, out in ((plain, here), (other, there)):
        model.zero_grad()
        out.square().mean().backward()
    norms = [
        (float((one.grad - two.grad).norm()), float(one.grad.norm()))
        for one, two in zip(plain.parameters(), other.parameters(), strict=True)
        if one.grad is not None and two.grad is not None
    ]
    whole = sum(norm**2 for _, norm in norms) ** 0.5
    return max(apart, sum(gap**2 for gap, _ in norms) ** 0.5 / whole)
