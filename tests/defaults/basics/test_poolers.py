"""Built-in poolers and heads against loops and transformers, an encoder's own pooler."""

from pathlib import Path

import pytest
import torch
from cse_testkit.batches import make_setup, tiny_tokenizer
from transformers import BertConfig, BertModel

from cse_cli.models.saved_model import load
from cse_core.errors import CseError
from cse_core.options import PoolerOptions
from cse_core.types import Hidden
from cse_defaults.basics.heads import Mlp
from cse_defaults.basics.options import FirstLastOptions, MlpOptions
from cse_defaults.basics.poolers import Cls, FirstLast, Mean
from cse_defaults.transformers.encoder import PackedEncoder
from cse_engine.run.export import save_model
from tests.fixtures.tiny import CPU, Bench, make_encoder, registry

SETUP = make_setup()
TOKENS = tiny_tokenizer().wrap(tiny_tokenizer().content(["anna paints the boat", "it", ""], 64))
DRAWS = torch.Generator().manual_seed(0)
LAYERS = {
    layer: torch.randn(len(TOKENS.ids), 4, generator=DRAWS, dtype=torch.float64)
    for layer in (0, 1, 2)
}
HIDDEN = Hidden(LAYERS[2], LAYERS)


def by_hand(*layers: int) -> list[list[float]]:
    """The mean of the layers' means over the tokens of each row."""
    rows = []
    for start, stop in zip(TOKENS.offsets[:-1].tolist(), TOKENS.offsets[1:].tolist(), strict=True):
        own = [sum(LAYERS[layer][token] for layer in layers) / len(layers)
               for token in range(start, stop)]  # fmt: skip
        rows.append((sum(own) / len(own)).tolist())
    return rows


def test_poolers_and_weights_of_heads() -> None:
    first = TOKENS.offsets[:-1]
    pooled = {
        "cls": (Cls(PoolerOptions(), SETUP), LAYERS[2][first].tolist()),
        "mean": (Mean(PoolerOptions(), SETUP), by_hand(2)),
        "embeddings": (FirstLast(FirstLastOptions(first="embeddings"), SETUP), by_hand(0, 2)),
        "layer": (FirstLast(FirstLastOptions(first="layer"), SETUP), by_hand(1, 2)),
    }
    for name, (pooler, wanted) in pooled.items():
        found = pooler.pool(HIDDEN, TOKENS)
        assert torch.equal(found, found.double()), name
        torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64))
    made = []
    for noise in (0, 1):
        torch.manual_seed(noise)
        made.append(Mlp(MlpOptions(layers=2), SETUP))
    for one, other in zip(made[0].parameters(), made[1].parameters(), strict=True):
        assert torch.equal(one, other)
    first = made[0].stages[0].weight
    assert isinstance(first, torch.Tensor)
    assert float(first.detach().std()) == pytest.approx(0.02, rel=0.2)


HEAD = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\nstart = "pooler"\nkeep = "always"\n'


def with_pooler(folder: Path, *, seed: int = 2) -> tuple[str, BertModel]:
    """Save an encoder with a pooler, and return it."""
    make_encoder(folder)
    torch.manual_seed(seed)
    model = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=True).eval()
    model.save_pretrained(folder)
    return str(folder), model


def pooled(model: BertModel, bench: Bench, texts: list[str]) -> torch.Tensor:
    """Return what transformers makes of the texts with its own pooler."""
    given = bench.assembly.online.tokenizer.hf(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        found: torch.Tensor = model(**given).pooler_output
    return found


def test_a_head_starts_from_the_encoders_own_pooler(folder: Path) -> None:
    name, model = with_pooler(folder / "encoder")
    bench = Bench(name, folder, HEAD)
    texts = list(bench.columns["text"])
    torch.testing.assert_close(
        bench.assembly.online.encode(texts, CPU), pooled(model, bench, texts), atol=1e-5, rtol=1e-5
    )
    bench.step()
    after = bench.assembly.online.encode(texts, CPU)
    assert not torch.allclose(after, pooled(model, bench, texts), atol=1e-5)
    save_model(bench.assembly, folder / "model", chosen="")
    loaded = load(str(folder / "model"), registry())
    torch.testing.assert_close(torch.from_numpy(loaded.encode(texts)), after)


def test_a_pooler_that_was_never_trained_is_none(encoder: str, folder: Path) -> None:
    assert PackedEncoder.load(encoder, seed=0).own_pooler is None
    named, _ = with_pooler(folder / "encoder")
    assert PackedEncoder.load(named, seed=0).own_pooler is not None
    assert PackedEncoder.load(named, seed=0, from_scratch=True).own_pooler is None
    with pytest.raises(CseError) as refused:
        Bench(encoder, folder, HEAD)
    assert refused.value.line() == (
        "pool.mlp.start: the encoder has no trained pooler of its own (got 'pooler'); use start = "
        "random, or a model with pooler.dense.weight among its weights"
    )
    with pytest.raises(CseError, match=r"own pooler is 32 x 32, this layer 8 x 32"):
        Bench(named, folder, HEAD + "dimension = 8\n")


def test_a_second_encoder_keeps_its_own_pooler(encoder: str, folder: Path) -> None:
    named, model = with_pooler(folder / "second")
    branch = f'[[branch]]\nuse = "frozen"\nmodel = "{named}"\npooler = true\n'
    recipe = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n' + branch
    bench = Bench(encoder, folder, recipe)
    texts = list(bench.columns["text"])
    second = bench.assembly.encoders["frozen"]
    found = second.encode(texts, CPU)
    torch.testing.assert_close(found, pooled(model, bench, texts), atol=1e-5, rtol=1e-5)
    bench.step()
    torch.testing.assert_close(second.encode(texts, CPU), found)
    with pytest.raises(CseError, match=r"branch.frozen.model: the encoder has no trained pooler"):
        Bench(encoder, folder, recipe.replace(named, encoder))
    with pytest.raises(CseError, match="pooler needs another model"):
        Bench(encoder, folder, recipe.replace(named, "self"))


@pytest.mark.parametrize("use", ["cls", "mean", "last-token", "first-last"])
def test_a_row_without_tokens_has_a_vector_of_zeros(use: str, encoder: str, folder: Path) -> None:
    end = "end = false\n" if use == "last-token" else ""
    recipe = f'[[pool]]\nuse = "{use}"\n{end}[[loss]]\nuse = "infonce"\n'
    online = Bench(encoder, folder, recipe, "model.dropout=0").assembly.online
    rows = online.tokenizer.wrap(online.tokenizer.content(["", "anna paints", "", "it", ""]))
    plain = rows.keep_tokens(~rows.special)
    vectors = online.embed(plain, CPU, 5)["sentence"].vectors
    assert vectors[[0, 2, 4]].eq(0).all()
    alone = online.embed(plain.take_rows(torch.tensor([1, 3])), CPU, 2)["sentence"].vectors
    torch.testing.assert_close(vectors[[1, 3]], alone)
    none = plain.take_rows(torch.tensor([0, 2]))
    assert online.embed(none, CPU, 2)["sentence"].vectors.eq(0).all()
