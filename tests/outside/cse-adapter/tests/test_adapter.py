from __future__ import annotations

from typing import Any

import pytest
import torch
from cse_adapter.adapter import AdapterBranch
from cse_adapter.frequent_words import FrequentWords
from cse_adapter.options import FrequentWordsOptions
from cse_testkit import (
    AugmenterSuite,
    BranchSuite,
    PluginSuite,
    RecipeSuite,
    Rig,
    compose,
    run_steps,
    tiny_corpus,
)

from cse_core.data.corpus import Corpus
from cse_core.errors import CseError


class TestPlugin(PluginSuite):
    distribution = "cse-adapter"


class TestRecipe(RecipeSuite):
    recipe = "adapter"


class TestFrozen(BranchSuite):
    part = ("branch", "adapter")


class TestShared(BranchSuite):
    part = ("branch", "adapter")
    options = {"base": "shared", "after": (1,)}


class TestFrequentWords(AugmenterSuite):
    part = ("aug", "frequent-words")
    options = {"threshold": 0.001, "most": 0.9}


def rig(*sets: str) -> Rig:
    return Rig(compose(recipe="adapter", sets=sets), tiny_corpus())


def branch_of(rig: Rig) -> AdapterBranch:
    part = rig.assembly.parts["branch.adapter"]
    assert isinstance(part, AdapterBranch)
    return part


def states(encoder: Any, read: torch.Tensor | None = None) -> torch.Tensor:
    """Return the last states of two rows of tokens, or of one token a row."""
    encoder.eval()
    ids, offsets = torch.tensor([5, 6, 7, 8, 9]), torch.tensor([0, 2, 5])
    positions = torch.tensor([0, 1, 0, 1, 2])
    found: torch.Tensor = encoder(
        encoder.word_embeddings(ids), positions, offsets, read=read
    ).last.detach()
    return found


def test_it_starts_as_the_online_encoder_and_adapters_alone_move() -> None:
    one = rig("train.lr=0.01")
    branch, online = branch_of(one), one.assembly.online.encoder
    start = states(branch.encoder)
    assert torch.equal(start, states(online))
    base = {n: p.clone() for n, p in branch.encoder.named_parameters()}
    one.step(3)
    assert all(bool(a.up.weight.any()) for a in branch.adapters.values())
    assert all(torch.equal(p, base[n]) for n, p in branch.encoder.named_parameters())
    assert not torch.equal(states(branch.encoder), start)


def test_a_shared_base_is_the_online_encoder_as_it_trains() -> None:
    one = rig("branch.adapter.base=shared", "train.lr=0.01")
    branch, online = branch_of(one), one.assembly.online.encoder
    one.step(2)
    theirs = dict(online.named_parameters())
    assert all(p is theirs[name] for name, p in branch.encoder.named_parameters())
    for adapter in branch.adapters.values():
        torch.nn.init.zeros_(adapter.up.weight)
        torch.nn.init.zeros_(adapter.up.bias)
    assert torch.equal(states(branch.encoder), states(online))


def test_one_token_a_row_passes_through_the_last_adapter_too() -> None:
    branch = branch_of(rig())
    for adapter in branch.adapters.values():
        torch.nn.init.normal_(adapter.up.weight)
    read = torch.tensor([0, 2])
    whole = states(branch.encoder)
    assert torch.allclose(states(branch.encoder, read), whole[read], atol=1e-5)


def test_a_layer_that_is_not_there_is_refused() -> None:
    with pytest.raises(CseError, match="after = 9 is not a layer"):
        compose(recipe="adapter", sets=["branch.adapter.after=9"])


def test_words_are_left_out_by_their_share() -> None:
    class Setup:
        name = "frequent-words"

    part = FrequentWords(FrequentWordsOptions(threshold=0.09, most=0.6), Setup())  # type: ignore[arg-type]
    part.prepare(Corpus.from_columns({"text": ["the the the a", "The rain", "rain the a b"]}))
    assert part.probability("the") == pytest.approx(min(0.6, 1 - (0.09 / 0.5) ** 0.5))
    assert part.probability("rain") == pytest.approx(1 - (0.09 / 0.2) ** 0.5)
    assert part.probability("unknown") == 0


def test_it_trains_with_a_store_of_its_vectors() -> None:
    done = run_steps(
        {"negatives": ["queue"]}, ["negatives.queue.branch=adapter"], recipe="adapter", steps=2
    )
    assert all(loss > 0 for loss in done.losses)
