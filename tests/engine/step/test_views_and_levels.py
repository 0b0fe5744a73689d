"""Augmenters, slices, levels, views: joined by key, drawn by counters."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from cse_core.types import Embeddings
from cse_engine.runtime.seeds import StepPosition
from cse_engine.step.passes import PreparedBatch
from cse_engine.step.row_keys import align
from tests.fixtures.tiny import Bench, Build, sentences

CLS = '[[pool]]\nuse = "cls"\n'
CUT = CLS + '[[pool]]\nuse = "cut"\n[[pool]]\nuse = "mlp"\n'
LOCAL = '[[loss]]\nuse = "infonce"\nname = "local"\nlevel = "segment"\n'


def prepared(bench: Bench, step: int = 0) -> PreparedBatch:
    index = (torch.arange(8) + step * 8) % len(bench.corpus)
    return bench.engine.passes.prepare(index, StepPosition(step, 20, 0, 0), {})


def encoded(bench: Bench, step: int = 0) -> Any:
    return bench.engine.passes.encode(prepared(bench, step)).levels


def test_augmenters_change_their_views_alone(build: Build) -> None:
    recipe = CLS + (
        '[[aug]]\nuse = "drop-word"\nviews = ["anchor"]\n'
        '[[aug]]\nuse = "double"\nviews = ["anchor", "positive"]\n[[aug]]\nuse = "shuffle"\n'
        '[[loss]]\nuse = "infonce"\n[[loss]]\nuse = "infonce"\nname="same"\ntarget="identical"\n'
    )
    bench = build(recipe)
    views = prepared(bench).views
    texts = bench.columns["text"][:8]
    plain = bench.assembly.online.tokenizer.hf(texts)["input_ids"]
    identical, anchor, positive = (
        views[name].tokens for name in ("identical", "anchor", "positive")
    )
    assert identical.ids.tolist() == [i for row in plain for i in row]
    for row in range(8):
        start, stop = identical.offsets[row : row + 2].tolist()
        source = identical.source[start:stop].tolist()
        assert source == [-1, *range(stop - start - 2), -1]
        kept = anchor.source[anchor.offsets[row] : anchor.offsets[row + 1]].tolist()
        assert max(kept) == stop - start - 3 - (row % 2)
    assert len(positive.ids) > len(identical.ids)
    for row in range(8):
        places = positive.positions[positive.offsets[row] : positive.offsets[row + 1]]
        assert sorted(places.tolist()) == list(range(len(places)))
    assert not torch.equal(positive.positions, positive.take_rows(torch.arange(8)).positions * 0)
    assert anchor.source.tolist() != positive.source.tolist()
    assert bench.step(0).loss.isfinite()
    bench = build(CLS + '[[aug]]\nuse = "noise"\n', "model.dropout=0")
    vectors = encoded(bench)
    plain = build(CLS, "model.dropout=0")
    expected = encoded(plain)
    assert torch.equal(
        vectors["anchor"]["sentence"].vectors, expected["anchor"]["sentence"].vectors
    )
    moved = vectors["positive"]["sentence"].vectors - expected["positive"]["sentence"].vectors
    assert bool((moved.norm(dim=1) > 1e-4).all())


def test_long_rows_are_clipped_and_keep_their_order_of_positions(build: Build) -> None:
    recipe = CLS + '[[aug]]\nuse = "double"\nrate = 1.0\n[[aug]]\nuse = "shuffle"\n'
    bench = build(
        recipe, "model.max_length=40",
        columns={"text": sentences(10, longest=40)},
    )  # fmt: skip
    tokens = prepared(bench).views["positive"].tokens
    assert int(tokens.lengths.max()) == 48
    shuffled = 0
    for row in range(8):
        places = tokens.positions[tokens.offsets[row] : tokens.offsets[row + 1]].tolist()
        assert sorted(places) == list(range(len(places)))
        shuffled += places != sorted(places)
    assert shuffled == 8
    assert bench.step(0).loss.isfinite()


@pytest.mark.parametrize("before", ["true", "false"])
def test_segments_join_by_length_before_or_after_the_heads(before: str, build: Build) -> None:
    bench = build(CUT + LOCAL, "model.dropout=0", f"pool.cut.before={before}")
    levels = encoded(bench)["anchor"]
    segments, whole = levels["segment"], levels["sentence"]
    content = [len(t.split()) for t in bench.columns["text"][:8]]
    expected = [(i, j) for i, n in enumerate(content) for j in range(-(-n // 3))]
    assert list(zip(segments.owner.tolist(), segments.slot.tolist(), strict=True)) == expected
    assert segments.length.tolist() == [min(3, content[i] - 3 * j) for i, j in expected]
    assert whole.length.tolist() == content and whole.owner.tolist() == list(range(8))
    head = bench.assembly.online.heads["mlp"]
    words = [t.split() for t in bench.columns["text"][:8]]
    texts = [" ".join(words[i][3 * j : 3 * j + 3]) for i, j in expected]
    sentence_encoder = replace(bench.assembly.online, slicer=None, heads={})
    raw = sentence_encoder.encode(texts, torch.device("cpu"))
    with torch.no_grad():
        headed: Tensor = head(raw)
    torch.testing.assert_close(segments.vectors.detach(), headed, rtol=1e-4, atol=1e-5)
    for i in range(8):
        mine = [k for k, (owner, _) in enumerate(expected) if owner == i]
        share = torch.tensor([segments.length[k] / content[i] for k in mine]).unsqueeze(1)
        with torch.no_grad():
            wanted = (
                head((raw[mine] * share).sum(0))
                if before == "true"
                else (headed[mine] * share).sum(0)
            )
        torch.testing.assert_close(whole.vectors[i].detach(), wanted, rtol=1e-4, atol=1e-5)
    assert bench.step(0).loss.isfinite()


def test_segments_of_two_views_are_joined_by_key(build: Build) -> None:
    recipe = CUT + LOCAL + '[[aug]]\nuse = "drop-word"\n'
    bench = build(recipe, columns={"text": sentences(24, longest=10)})
    vectors = encoded(bench)
    one, other = vectors["anchor"]["segment"], vectors["positive"]["segment"]
    assert len(other) < len(one)
    joined = align({name: levels["segment"] for name, levels in vectors.items()})
    first = list(zip(one.owner.tolist(), one.slot.tolist(), strict=True))
    second = list(zip(other.owner.tolist(), other.slot.tolist(), strict=True))
    common = [key for key in first if key in second]
    for name, keys, whole in (("anchor", first, one), ("positive", second, other)):
        found = joined[name]
        assert list(zip(found.owner.tolist(), found.slot.tolist(), strict=True)) == common
        wanted = torch.stack([whole.vectors[keys.index(key)] for key in common])
        assert torch.equal(found.vectors, wanted)
    result = bench.step(0)
    assert result.loss.isfinite()
    owners = [key[0] for key in common]
    negatives = sum(owners[i] != owners[j] for i in range(len(common)) for j in range(len(common)))
    assert float(result.parts["local.negatives"]) == pytest.approx(negatives / len(common))

    def of(owner: list[int], slot: list[int]) -> Embeddings:
        keys = torch.tensor(owner), torch.tensor(slot)
        values = (keys[0] * 10 + keys[1]).unsqueeze(1).float()
        return Embeddings(values, *keys, torch.ones(len(owner)).long())

    joined = align({"anchor": of([0, 0, 2, 1], [0, 1, 0, 0]), "positive": of([1, 0, 3], [0, 1, 0])})
    assert joined["anchor"].vectors.squeeze(1).tolist() == [1.0, 10.0]
    assert joined["positive"].vectors.squeeze(1).tolist() == [1.0, 10.0]


def test_level_input_is_the_mean_of_what_enters_the_first_layer(build: Build) -> None:
    bench = build(CLS + '[[loss]]\nuse = "bias"\nlevel = "input"\n',
                  "model.dropout=0")  # fmt: skip
    found = encoded(bench)["anchor"]["input"]
    model = bench.assembly.online.encoder.model
    for i, text in enumerate(bench.columns["text"][:8]):
        ids = bench.assembly.online.tokenizer.hf(text, return_tensors="pt")["input_ids"]
        states = model.embeddings(input_ids=ids)[0, 1:-1]
        torch.testing.assert_close(found.vectors[i], states.mean(0).detach(), rtol=1e-4, atol=1e-5)
    assert not found.vectors.requires_grad


def test_draws_differ_by_view_and_chunk_and_nothing_else(build: Build) -> None:
    recipe = CLS + '[[aug]]\nuse = "noise"\nviews = ["anchor", "positive"]\n'
    noise: dict[str, list[Tensor]] = {}
    for name, more in (
        ("alone", ""),
        ("beside", '[[aug]]\nuse = "double"\nviews = ["identical"]\n'),
    ):
        bench = build(more + recipe if more else recipe,
                      "train.chunk_size=4", "train.seed=3")  # fmt: skip
        part = bench.part("aug.noise")
        kept = noise.setdefault(name, [])
        plain = type(part).__call__

        class Watched(type(part)):  # type: ignore[misc]
            def __call__(self, *a: Any, kept: Any = kept, plain: Any = plain) -> Any:
                made = plain(self, *a)
                kept.append(self.drawn.flatten()[:40].clone())
                return made

        part.__class__ = Watched
        encoded(bench)
    alone = noise["alone"]
    assert len(alone) == 4
    for i in range(4):
        assert torch.equal(alone[i], noise["beside"][i])
        assert not any(torch.equal(alone[i], alone[j]) for j in range(i))


def test_groups_of_a_miner_and_a_group_that_comes_later(build: Build) -> None:
    recipe = CLS + (
        '[[positives]]\nuse = "near"\nstart = 2\n[[loss]]\nuse = "infonce"\ntarget = "near"\n'
        '[[loss]]\nuse = "infonce"\nname = "plain"\nweight = 0.5\n'
    )
    bench = build(recipe)
    for step in range(3):
        result = bench.step(step)
        assert ("infonce.loss" in result.parts) == (step == 2)
        expected = 0.5 * result.parts["plain.loss"]
        if step == 2:
            expected = expected + result.parts["infonce.loss"]
            assert float(result.parts["infonce.negatives"]) == pytest.approx((7 * 13 + 14) / 8)
        assert torch.allclose(result.loss, expected)
    alone = build(recipe.split('[[loss]]\nuse = "infonce"\nname')[0])
    before = {n: p.clone() for n, p in alone.optimizer.named.items()}
    assert float(alone.step(0).loss) == 0.0
    assert all(torch.equal(p, before[n]) for n, p in alone.optimizer.named.items())
