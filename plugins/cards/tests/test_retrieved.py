"""What is retrieved, drawn, masked and kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_cards.approximate import nearest
from cse_cards.retrieved import Retrieved, room
from cse_testkit import Rig, compose, make_context, make_part, tiny_corpus, tiny_encoder
from torch import Tensor

from cse_core.options import PoolerOptions
from cse_defaults.basics.poolers import Cls, Mean
from cse_defaults.texts import Corpus
from cse_engine.step.training_rows import TrainingRows
from tests.fixtures.methods import refusal, round_context

KINDS: Any = {"negatives": ["retrieved"]}


def rig(*sets: str, corpus: Corpus | None = None) -> Rig:
    given = [f"negatives.retrieved.{each}" for each in sets]
    return Rig(compose(kinds=KINDS, sets=given, corpus=corpus))


def prepared(*sets: str, corpus: Corpus | None = None) -> Rig:
    made = rig(*sets, corpus=corpus)
    made.session.prepare()
    return made


def part_of(made: Rig) -> Retrieved:
    part = made.session.parts["negatives.retrieved"]
    assert isinstance(part, Retrieved)
    return part


def neighbours(made: Rig, corpus: Corpus, count: int, pool: Any = Mean) -> dict[str, list[str]]:
    """Return the texts most similar to each text, by loops over vectors of the starting encoder."""
    sentence_encoder = made.session._loop.assembly.online
    pooler = pool(PoolerOptions(), part_of(made).setup)
    pooler.dimension = sentence_encoder.encoder.hidden_size
    texts = list(dict.fromkeys(corpus.column("text")))
    found = replace(sentence_encoder, pooler=pooler, heads={}).encode(texts, torch.device("cpu"))
    vectors = dict(zip(texts, found, strict=True))
    table = {}
    for text in texts:
        scores = {
            other: float(torch.cosine_similarity(vectors[text], vectors[other], dim=0))
            for other in texts
            if other != text
        }
        table[text] = sorted(scores, key=lambda other: -scores[other])[:count]
    return table


def test_the_table_holds_the_nearest_other_texts() -> None:
    corpus = tiny_corpus()
    for pool, kind, index in (("mean", Mean, "auto"), ("cls", Cls, "exact"),
                              ("mean", Mean, "faiss")):  # fmt: skip
        made = rig("knn=6", f"pool={pool}", f"index={index}", corpus=corpus)
        wanted = neighbours(made, corpus, 5, kind)
        made.session.prepare()
        part = part_of(made)
        assert part.known is not None and part.near is not None
        assert len(part.known) == 23, "rows 3 and 4 have one text"
        for number in range(23):
            (text,) = part.known.texts(torch.tensor([number]))
            assert part.known.texts(part.near[number].long()) == wanted[text]
            assert text not in wanted[text]


def drawn_texts(part: Retrieved, rows: list[int], step: int) -> tuple[list[str], Tensor]:
    ctx = make_context(step=step).replace(rows=torch.tensor(rows))
    (view,) = part.views(torch.tensor(rows), ctx)
    assert view.texts is not None and view.owner is not None
    return list(view.texts), view.owner


def test_what_is_drawn_are_neighbours_new_in_each_step() -> None:
    corpus = tiny_corpus()
    made = rig("knn=6", "take=3", corpus=corpus)
    wanted = neighbours(made, corpus, 5)
    made.session.prepare()
    rows, texts = [7, 4, 0], corpus.column("text")
    seen: dict[int, set[str]] = {row: set() for row in rows}
    for step in range(40):
        found, owner = drawn_texts(part_of(made), rows, step)
        assert found == drawn_texts(part_of(made), rows, step)[0]
        assert owner.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        for place, row in enumerate(rows):
            own = found[3 * place : 3 * place + 3]
            assert len(set(own)) == 3, "without one twice"
            seen[row] |= set(own)
    for row in rows:
        assert seen[row] == set(wanted[texts[row]]), "in forty steps each was drawn"


def test_the_nearest_can_be_left_out() -> None:
    corpus = tiny_corpus()
    made = rig("knn=8", "skip=4", "take=3", corpus=corpus)
    wanted = neighbours(made, corpus, 7)
    made.session.prepare()
    found, _ = drawn_texts(part_of(made), [7, 4], 0)
    texts = corpus.column("text")
    assert set(found[:3]) == set(wanted[texts[7]][4:])
    assert set(found[3:]) == set(wanted[texts[4]][4:])
    line = refusal(prepared, "knn=30", "skip=22", corpus=corpus)
    assert "23 distinct texts: none is left to retrieve after 22" in line


@pytest.mark.parametrize("shared", [True, False])
def test_who_sees_which_column_and_with_what_weight(shared: bool) -> None:
    """In loops, at two columns a sentence; own texts are masked, and columns have a gradient."""
    corpus = tiny_corpus(6)
    sets = ("knn=6", "take=2", f"shared={str(shared).lower()}", "weight=0.5")
    made = prepared(*sets, corpus=corpus)
    part = part_of(made)
    calls: list[tuple[Any, Any, Any]] = []
    weigh = part.weigh

    def watched(negatives: Any, batch: Any, ctx: Any) -> Any:
        calls.append((weigh(negatives, batch, ctx), batch, ctx))
        return calls[-1][0]

    part.weigh = watched  # type: ignore[method-assign]
    (result,) = made.step(1)
    ((found, batch, ctx),) = calls
    assert found.blocks == (("in-batch", 4), ("negative-retrieved", 8))
    assert found.vectors.requires_grad and bool(torch.isfinite(result.loss))
    (view,) = part.views(batch.rows, ctx)
    texts = list(view.texts or ())
    hidden = 0
    for i, row in enumerate(batch.rows.tolist()):
        for column in range(8):
            own = texts[column] == corpus.column("text")[row]
            mine = column // 2 == i
            assert bool(found.mask[i, 4 + column]) == (own or not (mine or shared))
            assert float(found.log_weights[i, 4 + column]) == (0.5 if mine else 0.0)
            hidden += own
    assert hidden, "six rows, so some sentence of the batch was retrieved"
    vectors = batch.views["negative-retrieved"]["sentence"].vectors
    assert torch.equal(found.vectors[4:], vectors)


def test_the_index_may_be_of_another_model(tmp_path: Path) -> None:
    other = tiny_encoder(tmp_path / "other", cased=True, hidden=16, seed=9)
    own, named = prepared("knn=6"), prepared("knn=6", f"model={other}")
    assert not torch.equal(part_of(own).near, part_of(named).near)  # type: ignore[arg-type]
    assert part_of(named).named is None, "it is not kept"


def begun(store: Any, texts: list[str], number: int, vectors: Tensor | None = None) -> None:
    corpus = Corpus.from_columns({"text": [f"row {row}" for row in range(5)]})
    pairs = {"text": texts, "positive": texts} if texts else None
    rows = TrainingRows(corpus, 32, pairs, None, number)
    table = torch.eye(8) if vectors is None else vectors

    def encode(given: list[str]) -> Tensor:
        return torch.stack([table[int(each.split()[1])] for each in given])

    store.begin_round(rows, round_context(corpus, round=number, encode=encode))


def test_each_round_is_searched_by_the_model_as_it_is_then() -> None:
    store = make_part("negatives", "retrieved", knn=2, refresh="round")
    first = torch.tensor([[1.0, 0], [0.9, 0.1], [0, 1.0], [0.1, 0.9], [-1, 0.2]])
    begun(store, [], 0, first)
    assert store.near.squeeze(1).tolist()[:4] == [1, 0, 3, 2]
    moved = first[[0, 2, 1, 3, 4]]
    begun(store, [], 0, moved)
    assert store.near.squeeze(1).tolist()[:4] == [1, 0, 3, 2], "resumed: not searched again"
    begun(store, [], 1, moved)
    assert store.near.squeeze(1).tolist()[:4] == [2, 3, 0, 1]
    begun(store, ["text 4", "text 0", "text 1"], 2, first)
    assert store.near.squeeze(1).tolist()[1:] == [2, 1]
    rows = torch.tensor([2 * 2**40 + 1])
    (view,) = store.views(rows, make_context().replace(rows=rows))
    assert view.texts == ["text 1"]


def test_a_static_table_is_kept_and_texts_of_a_round_are_searched_before_it() -> None:
    store = make_part("negatives", "retrieved", knn=2)
    store._encoder = lambda: lambda given, longest: torch.eye(8)[: len(given)]
    begun(store, [], 1)
    kept = store.near
    begun(store, [], 2)
    assert store.near is kept
    begun(store, ["one", "two"], 3)
    assert store.near.tolist() == [[1], [0]] and store.first == 3 * 2**40
    own, again = store.near, make_part("negatives", "retrieved", knn=2)
    again.load_state_dict(store.state_dict())
    begun(again, ["one", "two"], 3)
    assert again.near is not None and again.searched == 3
    again._encoder = None  # a resumed round is not searched again
    begun(again, ["one", "two"], 3)
    assert torch.equal(again.near, own)
    begun(store, [], 4)
    assert torch.equal(store.near, kept) and store.first == 0


def test_the_plan_says_when_texts_of_rounds_are_searched() -> None:
    corpus = tiny_corpus(columns=("document",))
    kinds = {"positives": ["inverse-cloze"], "negatives": ["retrieved"]}
    printed = compose(kinds=kinds, corpus=corpus).notes
    assert any("texts that a round brings are searched" in line for line in printed)
    plain = compose(kinds={"negatives": ["retrieved"]}, corpus=corpus).notes
    assert not any("a round brings" in line for line in plain)


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    for sets, words in (
        (["knn=3", "take=3"], "above take"),
        (["knn=4", "take=2", "skip=2"], "above take and skip together: 4, 2 and 2"),
        (["refresh=round", "model=starter"], "refresh = static"),
        (["view=positive"], "view"),
        ([f"model={tmp_path / 'nothing'}"], "negatives.retrieved.model: "),
    ):
        line = refusal(prepared, *sets)
        assert words in line and "negatives.retrieved" in line
    one = Corpus.from_columns({"text": ["Boat"] * 4})
    assert "only one text" in refusal(prepared, corpus=one)


def test_vectors_beyond_the_limit_lie_in_a_file() -> None:
    given = torch.nn.functional.normalize(torch.randn(40, 6), dim=1)
    own = torch.arange(40)
    with room(40, 6, limit=0) as mapped, room(40, 6) as held:
        assert mapped.untyped_storage().filename and not held.untyped_storage().filename
        for each in (mapped, held):
            each.copy_(given)
        assert torch.equal(nearest(mapped, mapped, 5, own), nearest(held, held, 5, own))
