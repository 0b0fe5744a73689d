"""Branches: ema against a trace by hand, frozen, shared and copied."""

import pytest
import torch

from cse_core.errors import CseError
from cse_core.parts import NegativeStore
from cse_engine.run.export import inference_encoder
from tests.engine.step.test_views_and_levels import encoded, prepared
from tests.fixtures.small_parts import Queue
from tests.fixtures.tiny import CPU, Build

HEADED = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n'
EMA = (
    HEADED
    + '[[branch]]\nuse = "ema"\nname = "momentum"\ndecay = "linear(0.5, 0.9)"\n'
    + ('[views.positive]\nbranch = "momentum"\n')
)


@pytest.mark.parametrize("copies", ["encoder", "encoder+heads"])
@pytest.mark.parametrize("embeddings", ["shared", "copied"])
def test_ema_follows_a_trace_by_hand(copies: str, embeddings: str, build: Build) -> None:
    bench = build(
        EMA, "train.lr=1e-2", f"branch.momentum.copies={copies}",
        f"branch.momentum.embeddings={embeddings}",
    )  # fmt: skip
    branch, online = bench.part("branch.momentum"), bench.assembly.online.encoder
    trace = {n: p.detach().clone() for n, p in online.named_parameters()}
    for name, value in branch.encoder.named_parameters():
        assert torch.equal(value, trace[name])
    head = dict(bench.assembly.online.heads["mlp"].named_parameters())
    head_trace = {n: p.detach().clone() for n, p in head.items()}
    shared = "model.embeddings.word_embeddings.weight"
    for step in range(4):
        result = bench.step(step)
        decay = 0.5 + 0.4 * (step + 1) / 20
        assert float(result.logged["momentum.decay"]) == pytest.approx(decay)
        now = dict(online.named_parameters())
        for name, mine in branch.encoder.named_parameters():
            trace[name] = decay * trace[name] + (1 - decay) * now[name].detach()
            if embeddings == "shared" and name == shared:
                assert mine is now[name] and mine.requires_grad
                continue
            torch.testing.assert_close(mine, trace[name], rtol=1e-5, atol=1e-6)
            assert not mine.requires_grad and mine.grad is None
        own = bench.assembly.encoders["momentum"].heads["mlp"]
        if copies == "encoder":
            assert own is bench.assembly.online.heads["mlp"]
            continue
        for name, mine in own.named_parameters():
            head_trace[name] = decay * head_trace[name] + (1 - decay) * head[name].detach()
            torch.testing.assert_close(mine, head_trace[name], rtol=1e-5, atol=1e-6)
    moved = dict(online.named_parameters())["model.encoder.layer.0.output.dense.weight"]
    kept = dict(branch.encoder.named_parameters())["model.encoder.layer.0.output.dense.weight"]
    assert not torch.allclose(moved, kept, atol=1e-4)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_branch_and_the_heads_that_it_uses_have_its_mode(mode: str, build: Build) -> None:
    bench = build(EMA, f"branch.momentum.mode={mode}", "model.dropout=0.3")
    vectors = encoded(bench)
    positive = vectors["positive"]["sentence"].vectors
    assert not positive.requires_grad and vectors["anchor"]["sentence"].vectors.requires_grad
    texts = bench.columns["text"][:8]
    plain = bench.assembly.encoders["momentum"].encode(texts, CPU)
    assert torch.allclose(positive, plain, atol=1e-5) == (mode == "eval")
    bench.step(0)
    again = bench.part("branch.momentum").encoder.training
    assert again == (mode == "train") and bench.assembly.online.encoder.training

    online = HEADED + f'[[branch]]\nuse = "online"\nmode = "{mode}"\n'
    vectors = encoded(build(online, "model.dropout=0.3"))
    anchor, positive = (vectors[name]["sentence"].vectors for name in ("anchor", "positive"))
    assert anchor.requires_grad
    assert torch.allclose(anchor, positive, atol=1e-5) == (mode == "eval")

    sets = (f"branch.momentum.mode={mode}", "branch.momentum.copies=encoder", "model.dropout=0")
    bench = build(EMA, *sets)
    head = bench.assembly.online.heads["mlp"]
    head.stages.append(torch.nn.Dropout(0.5).train())
    vectors = encoded(bench)
    plain = bench.assembly.online.encode(texts, CPU)
    positive, anchor = (vectors[name]["sentence"].vectors for name in ("positive", "anchor"))
    assert torch.allclose(positive, plain, atol=1e-5) == (mode == "eval")
    assert not torch.allclose(anchor, plain, atol=1e-2)
    assert head.training and head.stages[-1].training


def test_views_of_a_branch_without_gradient_are_encoded_once_beside_a_trial(build: Build) -> None:
    recipe = EMA + '[[aug]]\nuse = "push"\nviews = ["anchor"]\n'
    bench = build(recipe)
    model, calls = bench.part("branch.momentum").encoder, []
    plain = model.forward
    model.forward = lambda *a, **k: (calls.append(1), plain(*a, **k))[1]
    bench.step(0)
    assert len(calls) == 1
    changed = build(EMA + '[[aug]]\nuse = "push"\n')
    model = changed.part("branch.momentum").encoder
    del calls[:]
    model.forward = lambda *a, f=model.forward, **k: (calls.append(1), f(*a, **k))[1]
    changed.step(0)
    assert len(calls) == 2


def test_frozen_self_never_moves(build: Build) -> None:
    recipe = HEADED + '[[branch]]\nuse = "frozen"\n[views.positive]\nbranch = "frozen"\n'
    bench = build(recipe, "train.lr=1e-2")
    texts = bench.columns["text"][:8]
    sentence_encoder = bench.assembly.encoders["frozen"]
    before = sentence_encoder.encode(texts, CPU)
    for step in range(3):
        bench.step(step)
    assert torch.equal(sentence_encoder.encode(texts, CPU), before)
    online = bench.assembly.online.encode(texts, CPU)
    assert not torch.allclose(online, before, atol=1e-2)


def test_a_frozen_encoder_with_its_own_tokenizer_and_size(
    other_encoder: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that keeps vectors of another size and brings none of them to a loss.
    monkeypatch.setattr(Queue, "candidates", NegativeStore.candidates)
    recipe = HEADED + (
        f'[[branch]]\nuse = "frozen"\nmodel = "{other_encoder}"\n'
        '[[negatives]]\nuse = "queue"\nbranch = "frozen"\n[[aug]]\nuse = "push"\n'
        '[[aug]]\nuse = "double"\n'
    )
    bench = build(recipe, "train.chunk_size=3")
    bench.step(0)
    kept = bench.part("negatives.queue").queue.held.vectors[-8:]
    assert kept.shape == (8, 16)
    sentence_encoder = bench.assembly.encoders["frozen"]
    assert sentence_encoder.heads == {}
    assert sentence_encoder.tokenizer is not bench.assembly.online.tokenizer
    expected = sentence_encoder.encode(bench.columns["text"][:8], CPU)
    torch.testing.assert_close(kept, expected, rtol=1e-4, atol=1e-5)
    result = bench.step(1)
    assert float(result.parts["infonce.negatives"]) == 7.0


def test_vectors_of_the_context(build: Build) -> None:
    stored = '[[negatives]]\nuse = "queue"\nbranch = "momentum"\nview = "anchor"\n'
    bench = build(EMA + stored)
    batch = prepared(bench)
    with pytest.raises(RuntimeError, match="view anchor before they are encoded"):
        batch.ctx.vectors("anchor", None)
    encoded = bench.engine.passes.encode(batch)
    ctx = encoded.ctx
    for view, branch in (("positive", "momentum"), ("anchor", "online")):
        own, named = (ctx.vectors(view, b)["sentence"] for b in (None, branch))
        assert torch.equal(own.vectors, named.vectors) and not own.vectors.requires_grad
        assert torch.equal(own.vectors, encoded.levels[view]["sentence"].vectors)
    found = ctx.vectors("anchor", "momentum")["sentence"].vectors
    assert found is ctx.vectors("anchor", "momentum")["sentence"].vectors
    assert not found.requires_grad
    with pytest.raises(RuntimeError, match=r"no record encodes: write encodes=\(\('positive', 'no"):
        ctx.vectors("positive", "nobody")
    with pytest.raises(KeyError):
        ctx.vectors("nowhere", "online")


def test_a_cached_teacher_encodes_each_text_once(
    other_encoder: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vectors are those of each step, in chunks too; texts that change are encoded again."""
    monkeypatch.setattr(Queue, "candidates", NegativeStore.candidates)
    kept = '[[negatives]]\nuse = "queue"\nbranch = "frozen"\nview = "anchor"\nsize = 16\n'
    recipe = f'{HEADED}{kept}[[branch]]\nuse = "frozen"\nmodel = "{other_encoder}"\n'
    vectors, calls = {}, {}
    for cache in ("true", "false"):
        bench = build(recipe, "train.chunk_size=3", f"branch.frozen.cache={cache}")
        encoder, seen = bench.assembly.encoders["frozen"].encoder, []
        encoder.register_forward_pre_hook(lambda *_, seen=seen: seen.append(1))
        for step in (0, 1, 0):
            bench.step(step)
        calls[cache], vectors[cache] = len(seen), bench.part("negatives.queue").queue.held.vectors
    torch.testing.assert_close(vectors["true"], vectors["false"], rtol=1e-4, atol=1e-5)
    assert calls["true"] < calls["false"] and calls["true"] == 1, "all texts fit into one call"
    changed = f'{recipe}[[aug]]\nuse = "drop-word"\nviews = ["anchor"]\n'
    bench = build(changed, "branch.frozen.cache=true")
    bench.step(0)
    assert not bench.engine.builder._vectors
    named = 'name = "teacher"\nmode = "train"\nmodel = "starter"'
    for table, hint in (("", "--branch.frozen.model NAME"), (named, "--branch.teacher.mode eval")):
        with pytest.raises(CseError, match=f"cache needs another model, and mode = eval.*{hint}"):
            build(f'{HEADED}[[branch]]\nuse = "frozen"\ncache = true\n{table}\n')


def test_the_pooler_of_the_saved_model_scores_too(build: Build) -> None:
    """The training does without it, so nothing but the dev sets calls it."""
    bench = build('[[pool]]\nuse = "cls"\n[[loss]]\nuse = "infonce"\n', "inference.pool=mean")
    encoder = inference_encoder(bench.assembly)
    assert encoder.pooler is bench.assembly.inference_pool is not None
    vectors = encoder.encode(["anna paints", "a boat"], torch.device("cpu"))
    assert vectors.shape == (2, 32)
