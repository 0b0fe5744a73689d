"""The decoders beside loops over places and transformers' own causal models; any family."""

import math
from pathlib import Path
from typing import Any

import cse_starter
import pytest
import torch
from cse_denoising.decoder import EncoderLayers, NewLayers, Rows, attend_to_earlier
from cse_testkit import run_steps
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
)

from cse_core.errors import CseError
from cse_core.types import offsets_of, positions_of
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.masked_lm import Head

STARTER = Path(cse_starter.__file__).parent / "encoder"
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
LENGTHS = (3, 1, 5)


def some_rows(words: int = 20) -> Rows:
    offsets = offsets_of(torch.tensor(LENGTHS))
    ids = 4 + torch.arange(int(offsets[-1])) * 7 % (words - 4)
    row = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    return Rows(ids, positions_of(offsets), offsets, row)


def by_hand(query: Tensor, key: Tensor, value: Tensor, where: Rows, heads: int) -> Tensor:
    """Return attention to earlier tokens, one place and one head at a time."""
    size = query.shape[1] // heads
    out = torch.zeros_like(query)
    for place in range(len(query)):
        start = int(where.offsets[int(where.row[place])])
        for head in range(heads):
            own = slice(head * size, (head + 1) * size)
            seen = range(start, place + 1)
            scores = [float(query[place, own] @ key[p, own]) / math.sqrt(size) for p in seen]
            total = sum(math.exp(score) for score in scores)
            for p, score in zip(seen, scores, strict=True):
                out[place, own] += math.exp(score) / total * value[p, own]
    return out


class Kept(nn.Dropout):
    """Dropout that is on and drops nothing."""

    def forward(self, values: Tensor) -> Tensor:
        self.shape = tuple(values.shape)
        return values


def test_attention_is_that_of_a_loop() -> None:
    where, draws = some_rows(), torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(9, 6, dtype=torch.float64, generator=draws) for _ in range(3))
    wanted = by_hand(q, k, v, where, 2)
    found = attend_to_earlier(q, k, v, where, 2, nn.Dropout(0.5).eval())
    assert torch.allclose(found, wanted, rtol=0, atol=1e-12)
    drop = Kept(0.5)  # the form that can drop weights
    found = attend_to_earlier(q, k, v, where, 2, drop)
    assert torch.allclose(found, wanted, rtol=0, atol=1e-12)
    assert drop.shape == (3, 2, 5, 5)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_tied_is_the_causal_model_of_transformers(family: str) -> None:
    """The same logits, of weights that are drawn as those of norms and biases are not."""
    own: dict[str, Any] = {"embedding_size": 8} if family == "electra" else {}

    def config(**more: Any) -> Any:
        return AutoConfig.for_model(
            family, vocab_size=20, pad_token_id=1, hidden_size=16, **SIZES, **own, **more
        )

    with torch.random.fork_rng():
        torch.manual_seed(5)
        whole = AutoModelForMaskedLM.from_config(config()).double().eval()
        prefix = whole.base_model_prefix
        encoder = PackedEncoder(getattr(whole, prefix))
        made = EncoderLayers(encoder, Head(whole, True), 16, False).double().eval()
        for parameter in [*made.parameters(), *encoder.parameters()]:
            nn.init.normal_(parameter, std=0.3)
        vectors = torch.randn(3, 16, dtype=torch.float64)
    theirs = AutoModelForCausalLM.from_config(config(is_decoder=True, add_cross_attention=True))
    state = {f"{prefix}.{name}": value for name, value in encoder.model.state_dict().items()}
    state |= {n.removeprefix("model."): v for n, v in made.head.state_dict().items()}
    for i, (cross, norm) in enumerate(zip(made.cross, made.norms, strict=True)):
        for part, name in ((cross.value, "self.value"), (cross.dense, "output.dense"),
                           (norm, "output.LayerNorm")):  # fmt: skip
            here = f"{prefix}.encoder.layer.{i}.crossattention.{name}"
            state |= {f"{here}.{key}": value for key, value in part.state_dict().items()}
    missing, unexpected = theirs.double().eval().load_state_dict(state, strict=False)
    assert not unexpected and all(".self.query" in n or ".self.key" in n for n in missing)
    where = some_rows()
    padded = torch.full((3, 5), 1)
    for row, length in enumerate(LENGTHS):
        padded[row, :length] = where.ids[int(where.offsets[row]) : int(where.offsets[row + 1])]
    wanted = theirs(input_ids=padded, encoder_hidden_states=vectors[:, None]).logits
    wanted = torch.cat([wanted[row, :length] for row, length in enumerate(LENGTHS)])
    assert torch.allclose(made(where, vectors), wanted, rtol=0, atol=1e-9)


def test_a_new_decoder_sees_its_vector_and_earlier_tokens() -> None:
    config = AutoConfig.for_model("bert", vocab_size=20, hidden_size=16, **SIZES)
    encoder = PackedEncoder(AutoModel.from_config(config).double())
    made = NewLayers(encoder, 6, 2).double().eval()
    draws = torch.Generator().manual_seed(1)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5, generator=draws)
    vectors = torch.randn(3, 6, dtype=torch.float64, generator=draws).requires_grad_()
    where = some_rows()
    logits = made(where, vectors)
    assert logits.shape == (9, 20)
    (gradient,) = torch.autograd.grad(logits[where.row == 2].sum(), vectors)
    assert not gradient[:2].any() and bool(gradient[2].all())
    other = where.ids.clone()
    other[6] = (other[6] + 1) % 20  # the third token of the last row
    changed = made(Rows(other, where.positions, where.offsets, where.row), vectors)
    moved = (changed - logits).abs().amax(dim=1) > 1e-9
    assert moved.tolist() == [False] * 6 + [True] * 3
    last = where.row == 2
    ids, places = where.ids[last], where.positions[last]
    alone = made(Rows(ids, places, torch.tensor([0, len(ids)]), 0 * places), vectors[2:])
    assert torch.allclose(alone, logits[last], rtol=0, atol=1e-9), "its place in the batch counts"


def save(folder: Path, family: str) -> Path:
    """Write a random encoder of a family beside the starter's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(str(STARTER))
    sizes: dict[str, Any] = {"hidden_size": 16, **SIZES}
    if family == "distilbert":
        sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
    sizes |= {"pad_token_id": int(family == "mpnet"), "max_position_embeddings": 80}
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", ["mpnet", "deberta-v2", "modernbert", "distilbert", "albert"])
def test_every_family_trains(family: str, tmp_path: Path) -> None:
    folder = save(tmp_path / family, family)
    rig = run_steps(None, ["train.batch_size=4"], "tsdae", steps=2, encoder=folder)
    assert isinstance(rig.session.parts["loss.reconstruction"].decoder, NewLayers)
    assert not rig.not_finite()
    with pytest.raises(CseError, match=r"decoder = tied needs an encoder like BERT.*use new"):
        run_steps(None, ["loss.reconstruction.decoder=tied"], "tsdae", encoder=folder)


def test_a_decoder_learns_the_texts_of_a_batch() -> None:
    for decoder in ("tied", "copy", "new"):
        sets = [f"loss.reconstruction.decoder={decoder}", "train.lr=0.01", "model.dropout=0"]
        rig = run_steps(None, sets, "tsdae", steps=1)
        for _ in range(25):
            rig.step(1, rows=4)
        assert rig.losses[-1] < 0.6 * rig.losses[0], decoder
