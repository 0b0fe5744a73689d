"""Gradients of the objective for the inputs, fresh and previous."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BertModel

from cse_engine.step.row_keys import token_keys
from tests.fixtures.tiny import Bench, Build, sentences

HEAD = '[[pool]]\nuse = "cls"\n'
PLAIN = HEAD + '[[loss]]\nuse = "infonce"\n'
FRESH = HEAD + '[[aug]]\nuse = "push"\n[[loss]]\nuse = "infonce"\n'
PREVIOUS = HEAD + '[[aug]]\nuse = "push"\ngradient = "previous"\n[[loss]]\nuse = "infonce"\n'


def obvious(encoder: str, bench: Bench, texts: list[str], *, inside: bool = False) -> Tensor:
    """Return the gradient for the positive's word embeddings ``[T, E]`` of a padded model.

    With ``inside`` it is that for what enters the layers.
    """
    model = BertModel.from_pretrained(encoder, add_pooling_layer=False).eval()
    batch = bench.assembly.online.tokenizer.hf(texts, padding=True, return_tensors="pt")
    words = model.get_input_embeddings()(batch["input_ids"]).detach()
    if inside:
        words = model.embeddings(inputs_embeds=words).detach()
    copies = [words.clone().requires_grad_(True) for _ in range(2)]

    def encoded(copy: Tensor) -> Tensor:
        if not inside:
            return model(inputs_embeds=copy, attention_mask=batch["attention_mask"])[0][:, 0]
        with model.embeddings.register_forward_hook(lambda *_: copy):
            return model(**batch)[0][:, 0]

    first, second = map(encoded, copies)
    cosines = torch.nn.functional.cosine_similarity(first[:, None], second[None], dim=-1)
    loss = torch.nn.functional.cross_entropy(cosines / 0.05, torch.arange(len(texts)))
    loss.backward()
    assert copies[1].grad is not None
    return copies[1].grad[batch["attention_mask"].bool()]


def test_fresh_is_the_gradient_of_the_plain_objective(encoder: str, build: Build) -> None:
    bench = build(FRESH, "model.dropout=0")
    push = bench.part("aug.push")
    result = bench.step(0)
    name, tokens, gradient, given = push.seen
    assert name == "positive"
    expected = obvious(encoder, bench, bench.columns["text"][:8])
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-6)
    assert gradient.abs().max() > 1e-3
    still, plain = (
        build(FRESH, "model.dropout=0", "aug.push.size=0"),
        build(PLAIN, "model.dropout=0"),
    )
    assert result.loss > still.step(0).loss
    plain.step(0)
    for name, weight in plain.gradients.items():
        torch.testing.assert_close(still.gradients[name], weight)


@pytest.mark.parametrize("attention", ["packed", "padded"])
@pytest.mark.parametrize("chunk", ["none", "3"])
def test_at_the_first_layer_too(attention: str, chunk: str, encoder: str, build: Build) -> None:
    """What enters the layers is kept as it enters them, also where nobody changes it."""
    sets = ("model.dropout=0", f"model.attention={attention}", f"train.chunk_size={chunk}")
    bench = build(FRESH, *sets, "aug.push.point=input_embeddings")
    bench.step(0)
    _, tokens, gradient, _ = bench.part("aug.push").seen
    before = obvious(encoder, bench, bench.columns["text"][:8], inside=True)
    mine = before[-len(gradient) :] if chunk != "none" else before  # of the last chunk
    torch.testing.assert_close(gradient, mine, rtol=1e-3, atol=1e-6)
    assert gradient.abs().max() > 1e-3


def test_the_trial_commits_and_logs_nothing(build: Build) -> None:
    recipe = FRESH + '[[negatives]]\nuse = "queue"\n[[loss]]\nuse = "bias"\n'
    bench = build(recipe)
    calls: list[Any] = []
    queue = bench.part("negatives.queue")
    plain_after, plain_candidates = queue.after_step, queue.candidates

    def candidates(batch: Any, ctx: Any) -> Any:
        ctx.log("asked", float(len(calls)))
        calls.append("candidates")
        return plain_candidates(batch, ctx)

    queue.candidates = candidates
    queue.after_step = lambda batch, ctx: (calls.append("after"), plain_after(batch, ctx))
    result = bench.step(0)
    assert calls == ["candidates", "candidates", "after"]
    assert result.logged["asked"] == 1.0
    assert len(queue.queue) == 8
    assert bench.part("loss.bias").scale.grad is None


def test_previous_is_last_steps_gradient_by_token(encoder: str, build: Build) -> None:
    texts = sentences(24)
    bench = build(PREVIOUS, "model.dropout=0", columns={"text": texts})
    push = bench.part("aug.push")
    bench.step(0)
    assert push.seen[2] is None
    expected = obvious(encoder, bench, texts[:8])
    first = push.seen[1]
    bench.step(1)
    _, tokens, gradient, _ = push.seen
    old = {int(k): g for k, g in zip(token_keys(first), expected, strict=True)}
    for key, found in zip(token_keys(tokens).tolist(), gradient, strict=True):
        wanted = old.get(key)
        if wanted is None:
            assert not found.any()
        else:
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-6)
    keys = {int(k) for k in token_keys(tokens)}
    assert keys & set(old) and keys - set(old)


def test_a_doubled_token_takes_the_gradient_of_its_source(build: Build) -> None:
    recipe = FRESH.replace("[[loss]]", '[[aug]]\nuse = "double"\n[[loss]]')
    bench = build(recipe, "model.dropout=0")
    push = bench.part("aug.push")
    anchors = build(recipe, "model.dropout=0", "aug.push.views=[anchor]")
    bench.step(0)
    anchors.step(0)
    assert len(push.seen[1].ids) > len(anchors.part("aug.push").seen[1].ids)
    assert push.seen[2].shape == push.seen[3].shape
    assert bool((push.seen[2].norm(dim=1) > 0).all())


def test_gradients_that_differ_are_kept_apart(build: Build) -> None:
    recipe = FRESH + '[views.positive]\nbranch = "ema"\n'
    bench = build(recipe, "model.dropout=0", "branch.ema.mode=eval")
    bench.step(0)
    gradient = bench.part("aug.push").seen[2]
    assert gradient is not None and bool((gradient.norm(dim=1) > 0).all())
    recipe = FRESH + '[[aug]]\nuse = "push"\nname = "old"\ngradient = "previous"\n'
    bench = build(recipe, "model.dropout=0")
    bench.step(0)
    assert bench.part("aug.push").seen[2] is not None
    assert bench.part("aug.old").seen[2] is None
