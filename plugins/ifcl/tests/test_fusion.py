"""Which tokens meet, what they become, and what the second model may be."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_ifcl.fusion import Fusion
from cse_ifcl.options import FusionOptions
from cse_testkit import compose, make_context, make_setup, shared_encoder, tiny_encoder
from cse_testkit.batches import tiny_tokenizer
from torch import Tensor
from transformers import AlbertConfig, AlbertModel

from cse_core.errors import CseError
from cse_core.parts import TextModel
from cse_core.types import StepContext, TokenBatch, View
from cse_defaults.texts import Corpus
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.pretrained import load_tokenizer
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.step.training_rows import TrainingRows
from tests.fixtures.equations import equation
from tests.fixtures.methods import refusal

VIEW = View("positive", "positive", "online")
CORPUS = Corpus.from_columns(
    {
        "text": ["anna paints the boat", "emil repairs", "clara finds the old clock", "boat"],
        "fraternal": ["the drum", "gustav finds not the ladder", "and not the attic boat", "the"],
    }
)


@pytest.fixture(scope="module")
def encoder() -> PackedEncoder:
    torch.set_num_threads(1)
    return PackedEncoder.load(shared_encoder(), seed=0).eval()


def fusion(encoder: PackedEncoder, second: Path | None = None, **options: Any) -> Fusion:
    def load(name: str) -> TextModel:
        tokenizer: Any = TextTokenizer(load_tokenizer(name))
        return TextModel(PackedEncoder.load(name, seed=0), tokenizer, print)

    setup = make_setup(
        "fusion",
        encoder=encoder,
        hidden_size=encoder.hidden_size,
        embedding_size=encoder.embedding_size,
        load_model=load,
    )
    model = None if second is None else str(second)
    part = Fusion(FusionOptions(model=model, **options), setup)
    between: Any = None
    part.begin_round(TrainingRows(CORPUS, 32), between)
    return part


def rows_of(*texts: str) -> TokenBatch:
    tokenizer = tiny_tokenizer()
    return tokenizer.wrap(tokenizer.content(texts))


def context(rows: list[int]) -> StepContext:
    return make_context().replace(rows=torch.tensor(rows))


def word(encoder: PackedEncoder, text: str) -> Tensor:
    ids = tiny_tokenizer().content([text]).ids
    assert len(ids) == 1, text
    return encoder.word_embeddings(ids)[0].detach()


def words(encoder: PackedEncoder, tokens: TokenBatch) -> Tensor:
    return encoder.word_embeddings(tokens.ids).detach()


def entered(encoder: PackedEncoder, ids: Tensor, tokens: TokenBatch) -> Tensor:
    """Return what enters the first layer by the whole forward pass."""
    seen: list[Tensor] = []

    def look(states: Tensor) -> Tensor:
        seen.append(states)
        return states

    with torch.no_grad():
        encoder(encoder.word_embeddings(ids), tokens.positions, tokens.offsets, on_input=look)
    return seen[0]


@equation("IFCL", "Eqs. 2 and 3, the fusion, epsilon * y + (1 - epsilon) * y_F", "aug fusion")
def test_content_token_meets_content_token() -> Iterator[tuple[Tensor, Tensor]]:
    exact = PackedEncoder.load(shared_encoder(), seed=0).eval().double()
    part = fusion(exact, at="word_embeddings", epsilon=0.7)
    tokens = rows_of("emil repairs", "anna paints the boat")
    x = words(exact, tokens)
    fused = part(x, tokens, VIEW, context([1, 0]))
    # [CLS] emil repairs [SEP] [CLS] anna paints the boat [SEP]
    meets = [None, "gustav", "finds", None, None, "the", "drum", None, None, None]
    assert len(meets) == len(fused)
    for place, other in enumerate(meets):
        yield (
            fused[place],
            x[place] if other is None else 0.7 * x[place] + 0.3 * word(exact, other),
        )


def test_tokens_keep_their_counterpart_wherever_they_stand(encoder: PackedEncoder) -> None:
    """Rows of owners in any order and twice; tokens that were moved and doubled."""
    part = fusion(encoder, at="word_embeddings", epsilon=0.0)
    tokens = replace(rows_of("boat", "emil", "boat"), owner=torch.tensor([1, 0, 1]))
    fused = part(words(encoder, tokens), tokens, VIEW, context([2, 1]))
    for place, other in ((1, "gustav"), (4, "and"), (7, "gustav")):
        assert torch.allclose(fused[place], word(encoder, other))
    moved = rows_of("emil repairs").take_tokens(torch.tensor([0, 2, 1, 1, 3]), torch.tensor([5]))
    fused = part(words(encoder, moved), moved, VIEW, context([1]))
    for place, other in ((1, "finds"), (2, "gustav"), (3, "gustav")):
        assert torch.allclose(fused[place], word(encoder, other))


def test_tokens_without_a_counterpart(encoder: PackedEncoder) -> None:
    tokens = rows_of("anna paints the boat")
    pads = torch.full_like(tokens.ids, tiny_tokenizer().hf.pad_token_id)
    treatments: Any = ("keep", "zero", "pad")
    for at in ("word_embeddings", "input_embeddings"):
        if at == "word_embeddings":
            x, pad = words(encoder, tokens), words(encoder, replace(tokens, ids=pads))
        else:
            x, pad = (entered(encoder, ids, tokens) for ids in (tokens.ids, pads))
        others = {"keep": x, "zero": torch.zeros_like(x), "pad": pad}
        for unmatched, special in product(treatments, treatments):
            part = fusion(encoder, at=at, epsilon=0.6, unmatched=unmatched, special=special)
            fused = part(x, tokens, VIEW, context([0]))
            for place, treatment in ((0, special), (5, special), (3, unmatched), (4, unmatched)):
                wanted = 0.6 * x[place] + 0.4 * others[treatment][place]
                assert torch.allclose(fused[place], wanted, atol=1e-6), (place, treatment)
            assert not torch.allclose(fused[1], x[1])


@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_the_embedding_layer_of_another_family(encoder: PackedEncoder, family: Any) -> None:
    """No transformer layer runs, whether the model is packed or padded."""
    second = shared_encoder(family=family)
    part = fusion(encoder, second, epsilon=0.0)
    plain = PackedEncoder.load(second, seed=0).eval()
    tokens = rows_of("emil repairs", "clara finds the old clock")
    x = entered(encoder, tokens.ids, tokens)
    fused = part(x, tokens, VIEW, context([1, 2]))
    tokenizer = TextTokenizer(load_tokenizer(second))
    ids = tokens.ids.clone()
    ids[[1, 2, 5, 6, 7, 8, 9]] = tokenizer.content(["gustav finds", "and not the attic boat"]).ids
    wanted = entered(plain, ids, tokens)
    assert torch.allclose(fused[1:3], wanted[1:3], atol=1e-5)
    assert torch.allclose(fused[5:10], wanted[5:10], atol=1e-5)
    assert torch.equal(fused[0], x[0])


def test_rounds_of_pairs_take_the_texts_of_the_step(encoder: PackedEncoder) -> None:
    """In a round of its own texts a row is not a place in the corpus."""
    part = fusion(encoder, at="word_embeddings", epsilon=0.0)
    tokens = rows_of("emil repairs")
    ctx = make_context(round=1, texts={"fraternal": ["the clock"]})
    ctx = ctx.replace(rows=torch.tensor([2**40]))
    fused = part(words(encoder, tokens), tokens, VIEW, ctx)
    assert torch.allclose(fused[1], word(encoder, "the"))
    assert torch.allclose(fused[2], word(encoder, "clock"))


def test_its_own_embeddings_are_a_frozen_copy() -> None:
    own = PackedEncoder.load(shared_encoder(), seed=0)
    for at in ("word_embeddings", "input_embeddings"):
        part = fusion(own, at=at, epsilon=0.0)
        tokens = rows_of("emil repairs")
        width = own.embedding_size
        before = part(torch.zeros(4, width), tokens, VIEW, context([1]))
        with torch.no_grad():
            for parameter in own.parameters():
                parameter.add_(1.0)
        assert torch.equal(part(torch.zeros(4, width), tokens, VIEW, context([1])), before)
        assert not before.requires_grad


def test_another_dimension_is_refused_or_projected(encoder: PackedEncoder, tmp_path: Path) -> None:
    """A random projection is seeded, frozen and of about the same size."""
    wide = tiny_encoder(tmp_path / "wide", hidden=48, seed=3)
    tokens = rows_of("clara finds the old clock")
    for at, x in (
        ("word_embeddings", words(encoder, tokens)),
        ("input_embeddings", entered(encoder, tokens.ids, tokens)),
    ):
        line = refusal(fusion, encoder, wide, at=at)
        assert line.startswith("aug.fusion.model: ") and "48" in line and "32" in line
        assert "--set aug.fusion.projection=random" in line
        options = {"at": at, "epsilon": 0.0, "projection": "random"}
        one, other = (fusion(encoder, wide, **options) for _ in range(2))
        fused = one(x, tokens, VIEW, context([2]))
        assert torch.equal(fused, other(x, tokens, VIEW, context([2])))
        assert fused.shape == x.shape and not fused.requires_grad
        assert float(fused[1:6].norm() / x[1:6].norm()) == pytest.approx(1, rel=0.3)


# -- state, runs, mistakes ---------------------------------------------------------------------


def test_its_state_is_a_name_and_a_hash(encoder: PackedEncoder) -> None:
    part, other = fusion(encoder), fusion(encoder, shared_encoder(cased=True))
    state = part.state_dict()
    assert state["model"] == "the run's own encoder" and state["digest"].startswith("sha256:")
    assert set(state) == {"model", "digest"}
    part.load_state_dict(state)
    with pytest.raises(CseError, match=r"aug\.fusion\.model: its embeddings are not the ones"):
        other.load_state_dict(state)


def test_without_the_column_it_is_refused() -> None:
    line = refusal(compose, kinds={"aug": ["fusion"]})
    assert line.startswith("aug.fusion: needs the column 'fraternal'")
    assert line.endswith(
        "--set data.columns.fraternal=COLUMN, or make it as docs/translate.md shows"
    )


def test_a_row_too_long_for_the_second_model(encoder: PackedEncoder) -> None:
    part = fusion(encoder)
    part.second.longest = 3
    tokens = rows_of("emil repairs")
    with pytest.raises(CseError, match="takes rows of 3 tokens at most, and there is one of 4"):
        part(entered(encoder, tokens.ids, tokens), tokens, VIEW, context([1]))


def test_albert_is_narrow_in_words_and_not_in_its_layer(
    encoder: PackedEncoder, tmp_path: Path
) -> None:
    """The paper's German model is an ALBERT, whose layers share their weights."""
    sizes = {"num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 3}
    config = AlbertConfig(vocab_size=121, embedding_size=16, hidden_size=32, **sizes)
    AlbertModel(config, add_pooling_layer=False).save_pretrained(tmp_path)
    tiny_tokenizer().hf.save_pretrained(tmp_path)
    tokens = rows_of("emil repairs")
    x = entered(encoder, tokens.ids, tokens)
    fused = fusion(encoder, tmp_path, epsilon=0.0)(x, tokens, VIEW, context([1]))
    ids = rows_of("gustav finds").ids
    plain = PackedEncoder.load(tmp_path, seed=0).eval()
    assert torch.allclose(fused[1:3], entered(plain, ids, tokens)[1:3], atol=1e-5)
    with pytest.raises(CseError, match="dimension 16, those of the run 32"):
        fusion(encoder, tmp_path, at="word_embeddings")
