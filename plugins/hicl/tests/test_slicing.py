"""Slicing and joining against slow loops, and at the edges."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from cse_testkit import Rig, compose, make_part
from torch import Tensor

from cse_core.types import Embeddings, TokenBatch
from cse_engine.step.sentence_encoder import SentenceEncoder
from tests.fixtures.equations import equation
from tests.fixtures.token_rows import spans, token_rows


def texts(lengths: list[int]) -> TokenBatch:
    """Return texts of so many tokens, two a word, some of them special."""
    tokens = token_rows(*lengths, words=2, ends=False)
    return replace(tokens, special=tokens.ids % 11 == 0)


def slow_slices(tokens: TokenBatch, length: int) -> list[dict[str, Any]]:
    rows = []
    for row in range(tokens.rows):
        start, stop = int(tokens.offsets[row]), int(tokens.offsets[row + 1])
        cuts = list(range(start, stop, length)) or [start]
        for slot, cut in enumerate(cuts):
            inside = slice(cut, min(cut + length, stop))
            rows.append(
                {
                    "ids": tokens.ids[inside].tolist(),
                    "source": tokens.source[inside].tolist(),
                    "word": tokens.word[inside].tolist(),
                    "special": tokens.special[inside].tolist(),
                    "positions": list(range(inside.stop - inside.start)),
                    "owner": int(tokens.owner[row]),
                    "slot": slot,
                }
            )
    return rows


def slow_join(rows: Embeddings, weighted: bool) -> Tensor:
    joined = []
    for owner in dict.fromkeys(rows.owner.tolist()):
        mine = [i for i, each in enumerate(rows.owner.tolist()) if each == owner]
        weights = [float(rows.length[i]) if weighted else 1.0 for i in mine]
        if sum(weights) == 0:
            weights = [1.0] * len(mine)
        total = torch.zeros(rows.vectors.shape[1], dtype=rows.vectors.dtype)
        for i, weight in zip(mine, weights, strict=True):
            total += rows.vectors[i] * weight
        joined.append(total / sum(weights))
    return torch.stack(joined)


@equation("HiCL", "Section 3.1, l = 1 + floor((|seq| - 1) / L)", "pool segments", within=0)
def test_numbers_and_lengths_of_segments() -> Iterator[tuple[list[int], list[int]]]:
    for length in range(1, 41):
        lengths = list(range(1, 130))
        sliced = make_part("pool", "segments", length=length).slices(texts(lengths))
        counts = [1 + math.floor((each - 1) / length) for each in lengths]
        yield torch.bincount(sliced.owner).tolist(), counts
        rests = [each - (count - 1) * length for each, count in zip(lengths, counts, strict=True)]
        both = zip(counts, rests, strict=True)
        wanted = [size for count, rest in both for size in [length] * (count - 1) + [rest]]
        yield sliced.lengths.tolist(), wanted


def test_slices_equal_a_loop() -> None:
    given = ([70, 20, 40], [0], [1], [32, 0, 33, 64, 65], [512], [1, 512, 3, 0, 0, 100])
    for lengths, length in product(given, (1, 7, 32)):
        tokens = texts(lengths)
        sliced = make_part("pool", "segments", length=length).slices(tokens)
        rows = slow_slices(tokens, length)
        assert sliced.rows == len(rows)
        for row, (span, wanted) in enumerate(zip(spans(sliced), rows, strict=True)):
            for name in ("ids", "source", "word", "special", "positions"):
                assert getattr(sliced, name)[span].tolist() == wanted[name], name
            keys = (int(sliced.owner[row]), int(sliced.slot[row]))
            assert keys == (wanted["owner"], wanted["slot"])


@equation("HiCL", "Section 3.1, the weighted mean", "pool segments")
def test_join_equals_a_loop() -> Iterator[tuple[Tensor, Tensor]]:
    """The mean, and its gradient."""
    for aggregate, owners in product(("weighted", "mean"), (7, None)):
        pooler = make_part("pool", "segments", length=4, aggregate=aggregate)
        sliced = pooler.slices(texts([9, 0, 4, 1, 17, 5, 0]))
        draws = torch.Generator().manual_seed(1)
        vectors = torch.randn(sliced.rows, 6, dtype=torch.float64, generator=draws)
        vectors.requires_grad_(True)
        lengths = sliced.content_lengths()
        rows = Embeddings(vectors, sliced.owner * 3 + 1, sliced.slot, lengths, owners)
        joined = pooler.join(rows)
        wanted = slow_join(rows, aggregate == "weighted")
        yield joined.vectors, wanted
        assert joined.owner.tolist() == [1, 4, 7, 10, 13, 16, 19]
        assert not joined.slot.any()
        assert int(joined.length.sum()) == int(rows.length.sum())
        seeds = torch.randn(wanted.shape, dtype=torch.float64, generator=draws)
        (fast,) = torch.autograd.grad(joined.vectors, vectors, seeds, retain_graph=True)
        (slow,) = torch.autograd.grad(wanted, vectors, seeds)
        yield fast, slow


def test_half_precision_is_joined_in_float32() -> None:
    pooler = make_part("pool", "segments")
    vectors = torch.ones(300, 2, dtype=torch.bfloat16)
    slot = torch.arange(300)
    joined = pooler.join(Embeddings(vectors, slot * 0, slot, slot * 0 + 32))
    assert joined.vectors.dtype == torch.float32
    assert torch.allclose(joined.vectors, torch.ones(1, 2))


# -- rows that the encoder takes --------------------------------------------------------------


def rig(*sets: str) -> Rig:
    return Rig(compose(recipe="hicl", sets=sets))


def test_every_segment_has_its_special_tokens() -> None:
    sentence_encoder = rig("pool.segments.length=4").session._loop.assembly.online
    tokenizer = sentence_encoder.tokenizer
    content = tokenizer.content(["boat " * 10, "boat"])
    rows = sentence_encoder.rows(content, "anchor")
    assert rows.lengths.tolist() == [6, 6, 4, 3]
    assert rows.owner.tolist() == [0, 0, 0, 1] and rows.slot.tolist() == [0, 1, 2, 0]
    first, last = tokenizer.before[0], tokenizer.after[-1]
    assert bool((rows.ids[rows.offsets[:-1]] == first).all())
    assert bool((rows.ids[rows.offsets[1:] - 1] == last).all())
    assert int(rows.content_lengths().sum()) == len(content.ids)
    assert int(rows.content_lengths().max()) == 4


def test_the_wrapped_sentence_can_be_cut_instead() -> None:
    """One [CLS], one [SEP]; the wrapped text is cut, at most ``max_length`` of it."""
    sets = ("pool.segments.length=4", "pool.segments.wrap=sentence", "model.max_length=9")
    sentence_encoder = rig(*sets).session._loop.assembly.online
    tokenizer = sentence_encoder.tokenizer
    content = tokenizer.content(["the old boat near the garden is red and old", "boat"])
    rows = sentence_encoder.rows(content, "anchor")
    whole = tokenizer.wrap(content, longest=9)
    assert torch.equal(rows.ids, whole.ids)
    assert rows.lengths.tolist() == [4, 4, 1, 3]
    assert rows.slot.tolist() == [0, 1, 2, 0]
    assert int((rows.ids == tokenizer.before[0]).sum()) == 2
    assert rows.positions.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1, 2]


def test_the_full_stop_of_a_prompt_is_no_segment_of_its_own() -> None:
    """SNCSE's " ." stands behind the last segment, whose number the text's own tokens decide."""
    sentence_encoder = prompted("model.max_length=512")
    tokenizer = sentence_encoder.tokenizer
    counts = [1, 31, 32, 33, 64, 65]
    for mark, added in (("", 1), (".", 0)):
        plain = [f"{'boat ' * (count - len(mark))}{mark}" for count in counts[len(mark) :]]
        content = tokenizer.content(plain, 512)
        assert content.lengths.tolist() == counts[len(mark) :]
        rows = sentence_encoder.rows(content, "anchor")
        found = [rows.content_lengths()[rows.owner == text].tolist() for text in range(len(plain))]
        last = [[1], [31], [32], [32, 1], [32, 32], [32, 32, 1]][len(mark) :]
        assert found == [[*each[:-1], each[-1] + added] for each in last]
        ids, stop = rows.ids[~rows.special], tokenizer.content([" ."]).ids
        assert int((ids == stop).sum()) == len(plain), "one for each text"


def prompted(*sets: str) -> SentenceEncoder:
    parts: dict[Any, list[str]] = {"pool": ["segments", "+mask-prompt", "+mlp"]}
    return Rig(compose(kinds=parts, sets=sets)).session._loop.assembly.online


def test_segments_weigh_by_the_tokens_of_their_text() -> None:
    """Special tokens, prompts and the full stop behind a prompt's text do not weigh."""
    sentence_encoder = prompted("model.max_length=512", "pool.segments.length=4", "model.dropout=0")
    content = sentence_encoder.tokenizer.content(["boat " * 6, "boat boat boat .", "boat", ""])
    rows = sentence_encoder.rows(content, "anchor")
    assert rows.content_lengths().tolist() == [4, 3, 4, 2, 0], "full stops are content"
    assert rows.source[~rows.special].tolist() == [0, 1, 2, 3, 4, 5, -1, 0, 1, 2, 3, 0, -1]
    with torch.no_grad():
        levels = sentence_encoder.embed(rows, torch.device("cpu"), 4)
    segments = levels["segment"].vectors
    assert levels["segment"].length.tolist() == [4, 2, 4, 1, 0]
    assert levels["sentence"].length.tolist() == [6, 4, 1, 0]
    wanted = torch.stack([(4 * segments[0] + 2 * segments[1]) / 6, *segments[2:]])
    assert torch.allclose(levels["sentence"].vectors, wanted, atol=1e-6)


def test_slices_of_a_wrapped_sentence_weigh_by_all_that_was_cut() -> None:
    """That reading counts [CLS] and [SEP], so they weigh: the last segment may be [SEP] alone."""
    sets = ("pool.segments.length=4", "pool.segments.wrap=sentence", "model.dropout=0")
    sentence_encoder = rig(*sets).session._loop.assembly.online
    content = sentence_encoder.tokenizer.content(["boat " * 3, "boat", "boat " * 7])
    rows = sentence_encoder.rows(content, "anchor")
    assert rows.lengths.tolist() == [4, 1, 3, 4, 4, 1]
    with torch.no_grad():
        levels = sentence_encoder.embed(rows, torch.device("cpu"), 3)
    segments = levels["segment"].vectors
    assert levels["segment"].length.tolist() == [4, 1, 3, 4, 4, 1]
    wanted = (4 * segments[0] + segments[1]) / 5
    assert torch.allclose(levels["sentence"].vectors[0], wanted, atol=1e-6)
