"""Several vectors of a row: their units, the heads of a level, what chunks and plans refuse."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cse_testkit import compose, installed_registry, tiny_corpus
from cse_testkit.runs import Rig

from cse_core.errors import CseError, PartError
from cse_core.types import TokenBatch, Units, offsets_of, positions_of
from cse_engine.compose.composition import Composition
from cse_engine.step.passes import Passes

LEVEL = ["loss.infonce.level=token"]


def rows(lengths: list[int]) -> TokenBatch:
    offsets = offsets_of(torch.tensor(lengths))
    ids = torch.arange(int(offsets[-1]))
    plain, count = torch.zeros(len(ids), dtype=torch.bool), len(lengths)
    places = positions_of(offsets)
    return TokenBatch(ids, places, places, places, plain, offsets, torch.arange(count),
                      torch.zeros(count, dtype=torch.long))  # fmt: skip


def planned(*sets: str, pool: tuple[str, ...] = ("mean", "+token-vectors")) -> Composition:
    return compose(kinds={"pool": pool}, sets=sets, corpus=tiny_corpus())


def test_units_and_their_means() -> None:
    tokens = rows([3, 0, 2])
    units = Units.of(tokens, torch.tensor([0, 1, 1, 4]), torch.tensor([2, 1, 1]))
    assert units.row.tolist() == [0, 0, 2] and len(units) == 3
    states = torch.arange(5.0).unsqueeze(1)
    assert units.means(states).squeeze(1).tolist() == [0.5, 1.0, 4.0]
    assert units.means(states.bfloat16()).dtype is torch.float32
    joined = Units.join([(units, tokens), (units, tokens)])
    assert joined.row.tolist() == [0, 0, 2, 3, 3, 5] and joined.index.tolist()[4:] == [5, 6, 6, 9]
    every = Units.of_tokens(tokens, torch.ones(5, dtype=torch.bool))
    assert torch.equal(every.means(states), states)


@pytest.mark.parametrize(
    ("index", "lengths", "message"),
    [
        ([0, 3], [2], "tokens of two rows"),
        ([3, 0], [1, 1], "out of the order"),
        ([0, 1], [1], "2 tokens for units of"),
        ([0], [1, 0], "1 tokens for units of"),
    ],
)
def test_units_that_are_refused(index: list[int], lengths: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Units.of(rows([3, 2]), torch.tensor(index), torch.tensor(lengths))


def test_a_loss_at_the_level_sees_the_tokens_of_all_rows() -> None:
    """In chunks it has the loss and the weights of one batch; a head may be that of the level."""
    head = ("mean", "+token-vectors", "+mlp")
    sets = (*LEVEL, "pool.mlp.level=token", "pool.mlp.dimension=8", "model.dropout=0")
    made = [Rig(planned(*sets, *more, pool=head)) for more in ((), ("train.chunk_size=3",))]
    losses = [[float(step.loss) for step in rig.step(3)] for rig in made]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    texts = list(tiny_corpus().column("text"))[:4]
    one, other = (torch.as_tensor(rig.session.encode(texts)) for rig in made)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_what_a_plan_refuses() -> None:
    with pytest.raises(CseError, match=r"no part of this run makes rows.*token-vectors"):
        planned(*LEVEL, pool=("mean",))
    with pytest.raises(
        CseError, match=r"nothing makes vectors of this level.*row or token, or all"
    ):
        planned(*LEVEL, "pool.mlp.level=chunk", pool=("mean", "+token-vectors", "+mlp"))
    with pytest.raises(CseError, match="both make the level 'token'"):
        planned(*LEVEL, pool=("mean", "+token-vectors", "+token-vectors:other"))
    mixed = ("mean", "+token-vectors", "+mlp:tokens", "+mlp:both")
    small = ("pool.tokens.level=token", "pool.tokens.dimension=8")
    with pytest.raises(CseError, match=r"32 numbers .level row. and 8 numbers .*--pool ~both"):
        planned(*LEVEL, *small, pool=mixed)


def test_too_many_vectors_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cse_engine.step.sentence_encoder.SLOTS_PER_TEXT", 3)
    with pytest.raises(PartError, match=r"made \d+ vectors of a text, more than 3"):
        Rig(planned(*LEVEL)).step()


def test_the_layers_that_a_token_loss_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its states have them, of the tokens of its view; the last layer is that of ``states``."""
    rig = Rig(compose(kinds={"loss": ["+mlm"], "aug": ["mask"]}, sets=["model.dropout=0"]))
    (loss,) = (part for path, part in rig.session.parts.items() if path == "loss.mlm")
    layers, seen = rig.session.encoder().layer_count, []
    loss.layers = (0, layers)  # type: ignore[attr-defined]
    given: Any = loss.sums  # type: ignore[attr-defined]

    def sums(views: Any, ctx: Any) -> Any:
        seen.extend(views.values())
        return given(views, ctx)

    monkeypatch.setattr(loss, "sums", sums)
    rig.step()
    for states in seen:
        assert {*states.layers} == {0, layers}
        torch.testing.assert_close(states.layers[layers], states.states)
        assert len(states.layers[0]) == len(states.tokens.ids)


def test_a_loss_over_all_rows_refuses_chunks_and_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = installed_registry().find("loss", "mlm").spec
    monkeypatch.setitem(vars(spec), "whole_batch", True)
    given: dict[str, Any] = {"kinds": {"loss": ["+mlm"], "aug": ["mask"]}}
    with pytest.raises(CseError, match=r"compares token states of all rows.*chunk_size none"):
        compose(**given, sets=["train.chunk_size=2"])
    (loss,) = (part for part in compose(**given).of("loss") if part.name == "mlm")
    monkeypatch.setattr("cse_engine.runtime.distributed.rank_and_size", lambda: (0, 2))
    with pytest.raises(CseError, match="which 2 processes keep apart; train in one process"):
        builder: Any = SimpleNamespace(assembly=SimpleNamespace(device="cpu"))
        Passes(builder, Any, Any, False, (loss,))
