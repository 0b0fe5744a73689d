"""Replaced tokens beside a loop over rows and places, what is kept of a run, what is refused."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_diffcse.batch_norm import BatchNormMlp
from cse_diffcse.options import BatchNormMlpOptions, ReplacedTokensOptions
from cse_testkit import make_context, make_setup, run_steps, tiny_corpus, tiny_encoder
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.types import Embeddings, StepContext, TokenStates

LOSS: Any = {"loss": ["infonce", "+replaced-tokens"], "pool": ["cls"]}
PLAIN = ["model.dropout=0", "train.batch_size=4", "views.positive.column=text"]


def row_alone(encoder: Any, ids: Tensor, first: Tensor | None = None) -> Tensor:
    """Return the states of a row that is encoded by itself."""

    def begun(inputs: Tensor) -> Tensor:
        return inputs if first is None else torch.cat([first[None], inputs[1:]])

    places, offsets = torch.arange(len(ids)), torch.tensor([0, len(ids)])
    states: Tensor = encoder(encoder.word_embeddings(ids), places, offsets, on_input=begun).last
    return states


def picked(scores: Tensor, fill: str, draw: float) -> int:
    """Return the most probable token, or the one that a draw falls on."""
    if fill == "argmax":
        return int(scores.argmax())
    total, upto = float(scores.exp().sum()), 0.0
    for token, score in enumerate(scores.tolist()):
        upto += math.exp(score) / total
        if draw < upto:
            return token
    return len(scores) - 1


def by_hand(part: Any, views: dict[str, TokenStates], ctx: StepContext) -> tuple[float, int, int]:
    """Return the sum of the cross entropies, their number, and how many tokens were replaced."""
    options, (generator, head) = part.options, part._generator
    total, count, changed = 0.0, 0, 0
    for name, view in views.items():
        tokens = view.tokens
        draws = {w: ctx.uniform(f"{w} {name}", tokens) for w in ("which", "how", "what", "sample")}
        for row in range(tokens.rows):
            own = slice(int(tokens.offsets[row]), int(tokens.offsets[row + 1]))
            ids, special = tokens.ids[own], tokens.special[own].tolist()
            which, how, what, sample = (draws[w][own].tolist() for w in draws)
            seen, chosen = ids.clone(), [False] * len(ids)
            for p in range(len(ids)):
                chosen[p] = which[p] < options.probability and not special[p]
                if chosen[p] and how[p] < 0.8:
                    seen[p] = part._mask
                elif chosen[p] and how[p] < 0.9:
                    seen[p] = int(what[p] * part._words)
            scores, new = head(row_alone(generator, seen)), ids.clone()
            for p in range(1, len(ids)):
                may = chosen[p] if options.replaced == "masked" else True
                if may and not (special[p] and options.places == "content"):
                    new[p] = picked(scores[p], options.fill, sample[p])
            logits = part.judge(row_alone(part.discriminator, new, view.vectors[row]))
            for p in range(len(ids)):
                if options.places == "content" and special[p]:
                    continue
                label, pair = int(new[p] != ids[p]), logits[p].tolist()
                total += math.log(sum(math.exp(each) for each in pair)) - pair[label]
                count, changed = count + 1, changed + label
    return total, count, changed


@pytest.mark.parametrize("number", [0, 1])
def test_value_is_that_of_a_loop(number: int) -> None:
    options = (
        {"probability": 0.4},
        {"probability": 0.6, "fill": "sample", "replaced": "masked", "places": "content"},
    )[number]
    sets = [*PLAIN, *(f"loss.replaced-tokens.{name}={value}" for name, value in options.items())]
    rig = run_steps(LOSS, sets, steps=0)
    tried: list[str] = []

    def look(part: Any, method: str, given: Any, came: Any) -> None:
        if method != "sums":
            return
        views, ctx = given
        tried.extend(views)
        with torch.no_grad():  # now, before the weights move
            total, count, changed = by_hand(part, views, ctx)
        assert (int(came.count), int(came.parts["replaced"])) == (count, changed)
        assert 0 < changed < count
        assert float(came.total.detach()) == pytest.approx(total, rel=1e-5)

    rig.session.watch(look)
    rig.step(1)
    assert tried == ["anchor", "positive"]


def test_hard_negatives_are_read_too() -> None:
    sets = [*PLAIN[:2], "loss.replaced-tokens.others=positive,negative"]
    corpus, parts = tiny_corpus(columns=("positive", "negative")), {"loss": ["+replaced-tokens"]}
    parts["negatives"] = ["hard-negatives"]
    rig, tried = run_steps(parts, sets, "pairs", steps=0, corpus=corpus), list[str]()

    def look(part: Any, method: str, given: Any, came: Any) -> None:
        tried.extend(given[0] if method == "sums" else ())

    rig.session.watch(look)
    rig.step(1)
    assert tried == ["anchor", "positive", "negative"]


def test_both_views_are_masked_by_draws_of_their_own() -> None:
    rig = run_steps(LOSS, [*PLAIN, "loss.replaced-tokens.probability=0.5"], steps=0)
    found: dict[str, Tensor] = {}

    def look(part: Any, method: str, given: Any, came: Any) -> None:
        if method == "sums":
            views, ctx = given
            for name, view in views.items():
                found[name] = part._masked(name, view.tokens, ctx)[0]

    rig.session.watch(look)
    rig.step(1)
    assert not torch.equal(found["anchor"], found["positive"])


def test_the_discriminator_is_trained_and_the_generator_is_not() -> None:
    rig = run_steps(LOSS, PLAIN, steps=0)
    part = rig.session.prepare() and rig.session.parts["loss.replaced-tokens"]
    online = {each.data_ptr() for each in rig.session.encoder().parameters()}
    assert online.isdisjoint(each.data_ptr() for each in part.discriminator.parameters())
    frozen = [each.detach().clone() for module in part._generator for each in module.parameters()]
    trained = {name: each.detach().clone() for name, each in part.discriminator.named_parameters()}
    rig.step(2)
    now = [each for module in part._generator for each in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(frozen, now, strict=True))
    assert not any(module.training for module in part._generator)
    moved = [n for n, each in part.discriminator.named_parameters()
             if not torch.equal(each, trained[n])]  # fmt: skip
    assert len(moved) == len(trained)
    held = {name.split(".")[0] for name in part.state_dict()}
    assert held == {"discriminator", "judge"}


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    narrow: Any = {**LOSS, "pool": ["cls", "+mlp"]}
    with pytest.raises(CseError, match=r"loss\.replaced-tokens: vectors of 16 numbers.*make 32"):
        run_steps(narrow, [*PLAIN, "pool.mlp.dimension=16"], steps=1)
    other = tiny_encoder(tmp_path / "cased", cased=True)
    with pytest.raises(CseError, match=r"loss\.replaced-tokens\.generator: has another vocabul"):
        run_steps(LOSS, [*PLAIN, f"loss.replaced-tokens.generator={other}"], steps=1)
    with pytest.raises(ValueError, match="a view is named twice: anchor, positive, anchor"):
        ReplacedTokensOptions(others=("positive", "anchor"))
    with pytest.raises(ValueError, match=r"masked \+ random is 1\.1, above 1"):
        ReplacedTokensOptions(masked=0.9, random=0.2)


def test_the_projection_is_torchs_batch_norm_over_the_whole_batch() -> None:
    made = BatchNormMlp(BatchNormMlpOptions(wide=5), make_setup(dimension=4)).double()
    draws = torch.Generator().manual_seed(0)
    for parameter in made.parameters():
        nn.init.normal_(parameter, generator=draws)
    first, last = nn.BatchNorm1d(5).double(), nn.BatchNorm1d(4, affine=False).double()
    first.weight, first.bias = made.scale, made.shift
    theirs = nn.Sequential(made.enter, first, nn.ReLU(), made.leave, last)
    rows = torch.randn(7, 4, dtype=torch.float64, generator=draws)
    assert torch.allclose(made.mapped(rows), theirs(rows), rtol=0, atol=1e-12)
    keys = torch.zeros(4, dtype=torch.long)
    views = {str(len(part)): Embeddings(part, *[keys[: len(part)]] * 3) for part in rows.split(4)}
    both = torch.cat([view.vectors for view in made(views, make_context()).values()])
    assert torch.allclose(both, theirs(rows), rtol=0, atol=1e-12), "all views are one batch"
    whole, cut = (
        run_steps(None, [*PLAIN, *sets], "diffcse", steps=2).losses
        for sets in ((), ("train.chunk_size=1",))
    )
    assert cut == pytest.approx(whole, rel=1e-5)
