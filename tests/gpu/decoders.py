"""Decoders on a GPU: each family's rows without padding, and the speed of one of today's size."""

import statistics
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cse_defaults.transformers.encoder import PackedEncoder
from tests.benchmarks.inputs import read, silence
from tests.benchmarks.report import PEER
from tests.benchmarks.work import run as measured
from tests.defaults.transformers.test_decoders import BOTH, make
from tests.defaults.transformers.test_encoder import LENGTHS, padded_states, rows
from tests.fixtures.decoders import FAMILIES, make_tokenizer
from tests.gpu.runs import AT_ONCE, drawn
from tests.gpu.setting import Setting, exact

FACTOR = 3.0
"""How much further from fp64 than the padded model, in the same format, packed rows may be."""
SIZES = {"hidden_size": 128, "head_dim": 32, "intermediate_size": 192}
QWEN3: dict[str, Any] = {
    "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "tie_word_embeddings": True, "rope_theta": 1_000_000, "max_position_embeddings": 32_768,
}  # fmt: skip
"""Shape of Qwen3-0.6B: its config.json."""
TINY = QWEN3 | {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 2}


def run(setting: Setting) -> None:
    """Each family's states and gradients, and steps of Qwen3-0.6B's shape beside the trainer's.

    States of rows without padding may be as far from those of fp64 as the padded model's in the
    same number format, times three. Speed: random weights, SimCSE on the last token, bf16.
    """
    exact()
    formats = ("float32",) if setting.small else ("float32", "bfloat16")
    for family, direction, name in product(FAMILIES, BOTH, formats):
        about = {"family": family, "attention": direction, "format": name}
        with setting.trying("values", **about):
            values(setting, family, direction, about)
    with tempfile.TemporaryDirectory() as folder:
        for length, batch in ((8, 4),) if setting.small else ((32, 64), (32, 512), (256, 64)):
            with setting.trying("speed", tokens=length, batch=batch):
                speed(setting, Path(folder), length, batch)


def values(setting: Setting, family: str, direction: str, about: dict[str, Any]) -> None:
    dtype = getattr(torch, about["format"])
    model, plain = make(family, direction, **SIZES)
    for parameter in plain.parameters():
        parameter.data *= 0.2
    model.load_state_dict(plain.state_dict())
    where = {"device": setting.device, "dtype": dtype}
    weight = torch.randn(
        sum(LENGTHS), SIZES["hidden_size"], generator=torch.Generator().manual_seed(2)
    )

    def found(states: Tensor, module: torch.nn.Module) -> list[Tensor]:
        (states.double().cpu() * weight).sum().backward()
        given = [each.grad for each in module.parameters() if each.grad is not None]
        return [states.detach().double().cpu(), *(each.double().cpu() for each in given)]

    def by_transformers(*batches: Sequence[Tensor], **how: Any) -> list[Tensor]:
        there = deepcopy(plain).to(**how)
        states = [padded_states(there.eval(), batch)[-1] for batch in batches]
        return found(torch.cat(states), there)

    def far(these: list[Tensor]) -> float:
        pairs = zip(these, exactly, strict=True)
        return max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-9)) for a, b in pairs)

    ids, positions, offsets = rows(LENGTHS)
    texts = ids.split(LENGTHS)
    # Each row alone: transformers' own attention gives NaN for padding in fp64.
    exactly = by_transformers(*([text] for text in texts), dtype=torch.float64)
    theirs = far(by_transformers(texts, **where))
    encoder = PackedEncoder(model.to(**where).eval(), attention=direction)
    words = encoder.word_embeddings(ids.to(setting.device))
    states = encoder(words, positions.to(setting.device), offsets).last
    ours = far(found(states, model))
    good = encoder.packed and ours <= FACTOR * theirs + 1e-5
    why = encoder.why_padded
    setting.keep("values", good, **about, error=ours, padded_error=theirs, padded_because=why)


def speed(setting: Setting, folder: Path, length: int, batch: int) -> None:
    """Take steps of SimCSE on the last token's state, whose rows are of drawn words."""
    from transformers import AutoConfig, AutoModel

    model = folder / "qwen3"
    if not model.exists():
        silence()
        make_tokenizer(read(None, 2_000), 8_000).save_pretrained(model)
        ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
        shape = TINY if setting.small else QWEN3
        torch.manual_seed(0)
        with torch.device(setting.device):
            made = AutoModel.from_config(AutoConfig.for_model("qwen3", **shape, **ids))
        made.save_pretrained(model)
    chunk = None if batch * length <= AT_ONCE // 4 else AT_ONCE // 4 // length
    base = drawn(setting, folder, str(model), length, batch, chunk, 1 if setting.small else 4)
    base = replace(base, pool="last-token")
    facts: dict[str, float] = {}
    for who, name in ((base.who, "cse"), (PEER, PEER)):
        watch = measured(replace(base, who=who))
        facts |= {
            f"{name}_a_second": batch / statistics.median(watch.seconds), f"{name}_MB": watch.most
        }  # fmt: skip
    ratio = facts["cse_a_second"] / facts[f"{PEER}_a_second"]
    setting.keep("speed", None, tokens=length, batch=batch, **facts, times=ratio)
