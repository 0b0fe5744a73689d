"""What a row pooler does to the content of every text, before it is cut and wrapped."""

from __future__ import annotations

from dataclasses import replace

import torch
from cse_testkit import shared_encoder
from cse_testkit.batches import tiny_tokenizer

from cse_core.encoders.encoder import PackedEncoder
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.parts import RowPooler, SlicePooler
from cse_core.types import Embeddings, Hidden, TokenBatch, offsets_of, positions_of


class Backwards(RowPooler):
    """Turns the content of each row round."""

    dimension = 32

    def __init__(self) -> None:
        """Take no options."""

    def content(self, tokens: TokenBatch) -> TokenBatch:
        rows = [
            torch.arange(int(start), int(stop)).flip(0)
            for start, stop in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)
        ]
        return tokens.take_tokens(torch.cat(rows), tokens.lengths)

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> torch.Tensor:
        return hidden.last[tokens.offsets[:-1] + 1]


class Plain(Backwards):
    """The same without a change."""

    content = RowPooler.content


class Halves(SlicePooler):
    """Cuts each text into two slices of equal length."""

    def __init__(self) -> None:
        """Take no options."""

    def slices(self, tokens: TokenBatch) -> TokenBatch:
        lengths = (tokens.lengths // 2).repeat_interleave(2)
        halves = tokens.take_tokens(torch.arange(len(tokens.ids)), tokens.lengths)
        return replace(
            halves,
            offsets=offsets_of(lengths),
            positions=positions_of(offsets_of(lengths)),
            owner=tokens.owner.repeat_interleave(2),
            slot=torch.arange(2).repeat(tokens.rows),
        )

    def join(self, rows: Embeddings) -> Embeddings:
        return rows


class HalvesOfWrapped(Halves):
    """Cuts the wrapped text."""

    slices_wrapped = True


def encoder_of(pooler: RowPooler, max_length: int = 64) -> SentenceEncoder:
    encoder = PackedEncoder.load(str(shared_encoder()), seed=0).eval()
    return SentenceEncoder(encoder, tiny_tokenizer(), pooler, {}, max_length)


def content_ids(tokens: TokenBatch, row: int) -> list[int]:
    inside = slice(int(tokens.offsets[row]), int(tokens.offsets[row + 1]))
    return tokens.ids[inside][~tokens.special[inside]].tolist()


def test_every_role_has_the_changed_content_and_its_special_tokens() -> None:
    turned, plain = encoder_of(Backwards()), encoder_of(Plain())
    content = tiny_tokenizer().content(["anna paints the boat", "it is red"], 64)
    for role in ("anchor", "positive", "negative"):
        rows, as_is = turned.rows(content, role), plain.rows(content, role)  # type: ignore[arg-type]
        assert torch.equal(rows.special, as_is.special)
        for row in range(2):
            assert content_ids(rows, row) == content_ids(as_is, row)[::-1]


def test_it_comes_before_the_cut() -> None:
    content = tiny_tokenizer().content(["anna paints the boat"], 64)
    whole = content_ids(encoder_of(Plain()).rows(content, "anchor"), 0)
    assert content_ids(encoder_of(Backwards(), 4).rows(content, "anchor"), 0) == whole[::-1][:2]


def test_slices_have_it_and_whole_texts_where_wrapped_rows_are_sliced() -> None:
    content = tiny_tokenizer().content(["anna paints the boat"], 64)
    whole = content_ids(encoder_of(Plain()).rows(content, "anchor"), 0)
    sliced = replace(encoder_of(Backwards()), slicer=Halves())
    rows = sliced.rows(content, "anchor")
    assert [content_ids(rows, row) for row in range(2)] == [whole[:2][::-1], whole[2:][::-1]]
    assert (rows.owner.tolist(), rows.slot.tolist()) == ([0, 0], [0, 1])
    sliced = replace(encoder_of(Backwards()), slicer=HalvesOfWrapped())
    rows = sliced.rows(content, "anchor")
    assert content_ids(rows, 0) + content_ids(rows, 1) == whole[::-1]


def test_inference_has_it_too() -> None:
    turned, plain = encoder_of(Backwards()), encoder_of(Plain())
    device = torch.device("cpu")
    texts = ["it is red", "boat and lamp"]
    vectors = turned.encode(texts, device)
    rows = turned.rows(turned.tokenizer.content(texts, 64), "anchor")
    with torch.no_grad():
        wanted = turned.embed(rows, device, len(texts))["sentence"].vectors
    assert torch.allclose(vectors, wanted, atol=1e-5)
    assert not torch.allclose(vectors, plain.encode(texts, device), atol=1e-2)
