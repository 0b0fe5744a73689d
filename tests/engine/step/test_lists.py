"""Lists of texts in a cell: all of them in a step, or one that is drawn, with their numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import make_batch
from cse_testkit.batches import tiny_tokenizer
from cse_testkit.tiny import shared_encoder
from torch import Tensor

import cse
from cse_core.errors import CseError
from cse_core.functional import listed, per_text
from cse_core.types import SLOTS_PER_TEXT, Batch, Embeddings
from cse_defaults.texts import Corpus
from cse_engine.run.checkpoint import Checkpoint
from cse_engine.run.recipe_file import as_recipe
from cse_engine.run.signals import Stopped
from cse_engine.step.training_rows import TrainingRows
from tests.engine.run.test_runs import same, stop_after
from tests.engine.step.test_chunks import close_gradients
from tests.engine.step.test_processes import as_one
from tests.fixtures.methods import refusal
from tests.fixtures.processes import TwoProcesses
from tests.fixtures.tiny import CPU, Bench, Build, composed, metrics, sentences, trainer

SIZES = [(2, 1), (1, 0), (0, 3), (3, 2), (1, 1), (2, 0), (1, 2)] * 4
"""Positives and negatives of each row."""
TEXTS = sentences(160)
ALL = """
[[pool]]
use = "cls"
[views.positive]
column = "positive"
lists = "all"
[views.negative]
column = "negative"
lists = "all"
[[loss]]
use = "infonce"
directions = "both"
[[loss]]
use = "listed"
"""
DRAW = ALL.replace('lists = "all"', 'lists = "draw"')
QUIET = ("model.dropout=0", "train.lr=1e-4")
STILL = ("model.dropout=0", "train.lr=0")
MIXED = "draw".join(ALL.rsplit("all", 1))
"""All positives, and a negative that is drawn."""


def columns(*least: int) -> dict[str, Any]:
    """Return lists with scores, of positives and negatives with at least so many texts."""
    left = iter(TEXTS)
    made: dict[str, Any] = {"text": [next(left) for _ in SIZES]}
    for place, (name, scores) in enumerate((("positive", "scores"), ("negative", "others"))):
        sizes = [max(size[place], (*least, 0, 0)[place]) for size in SIZES]
        made[name] = [[next(left, TEXTS[0]) for _ in range(size)] for size in sizes]
        made[scores] = [
            [str(row / 30 + n / 7) for n in range(size)] for row, size in enumerate(sizes)
        ]
    return made


def seen_batch(bench: Bench, index: list[int], step: int = 0) -> tuple[Batch, Any]:
    """Run a step; return the batch of the last loss, and its context."""
    calls = bench.seen()
    bench.step(step, index)
    given = calls["loss.listed", "__call__"][0]
    return given[0], given[3]


def test_all_texts_of_a_list_belong_to_their_row(build: Build) -> None:
    made, rows = columns(), [3, 0, 2, 1]
    bench = build(ALL, *STILL, columns=made)
    batch, ctx = seen_batch(bench, rows)
    group = batch.targets["positive"]
    sizes = [len(made["positive"][row]) for row in rows]
    assert group.vectors.shape[:2] == (4, 3) and group.weights is not None
    assert group.weights.tolist() == [[float(n < size) for n in range(3)] for size in sizes]
    encode = bench.assembly.online.encode
    for a, row in enumerate(rows):
        for p, text in enumerate(made["positive"][row]):
            torch.testing.assert_close(group.vectors[a, p].detach(), encode([text], CPU)[0])
    found = batch.views["negative"]["sentence"]
    wanted = [(a, n, text) for a, row in enumerate(rows)
              for n, text in enumerate(made["negative"][row])]  # fmt: skip
    assert list(zip(found.owner.tolist(), found.text.tolist(), strict=True)) == [
        (a, n) for a, n, _ in wanted
    ]
    torch.testing.assert_close(found.vectors.detach(), encode([t for *_, t in wanted], CPU))
    scores = ctx.values("scores")
    assert scores.shape == (4, 3) and scores[2].tolist() == [0, 0, 0]
    torch.testing.assert_close(scores[0], torch.tensor([float(x) for x in made["scores"][3]]))
    others = per_text(ctx.values("others"), found)
    torch.testing.assert_close(
        others, torch.tensor([float(made["others"][rows[a]][n]) for a, n, _ in wanted])
    )
    assert ctx.texts("negative") == [text for *_, text in wanted]
    assert "infonce.loss" in bench.step(1, [2]).parts, "a batch without any positive"


def test_weights_of_positives(build: Build) -> None:
    made, rows = columns(), [3, 0, 6]
    made["scores"] = [[str(n - 0.5) for n in range(len(cell))] for cell in made["scores"]]
    weighed = ALL.replace('lists = "all"', 'lists = "all"\nweights = "scores"', 1)
    batch, _ = seen_batch(build(weighed, *STILL, columns=made), rows)
    weights = batch.targets["positive"].weights
    assert weights is not None
    assert weights.tolist() == [[0, 0.5, 1.5], [0, 0.5, 0], [0, 0, 0]]
    line = refusal(build, ALL, "views.negative.weights=others", columns=made)
    assert "views.negative.weights: only positives have weights" in line


def test_a_text_is_drawn_by_seed_step_and_row(build: Build) -> None:
    made, rows = columns(1, 1), list(range(28))
    bench = build(DRAW, *STILL, columns=made)
    drawn = []
    for step in range(6):
        batch, ctx = seen_batch(bench, rows, step)
        assert batch.targets["positive"].vectors.shape[1] == 1 and len(ctx.values("scores")) == 28
        place = [
            cell.index(pytest.approx(float(score)))
            for cell, score in zip(
                [[float(x) for x in cell] for cell in made["scores"]], ctx.values("scores"),
                strict=True,
            )
        ]  # fmt: skip
        texts = [cell[n] for cell, n in zip(made["positive"], place, strict=True)]
        vectors = batch.targets["positive"].vectors[:, 0].detach()
        if step == 0:
            torch.testing.assert_close(vectors, bench.assembly.online.encode(texts, CPU))
        drawn.append(place)
    assert len({*map(tuple, drawn)}) == 6, "another draw in each step"
    full = [row for row in rows if len(made["positive"][row]) == 3]
    assert {place[row] for place in drawn for row in full} == {0, 1, 2}
    again = build(DRAW, *QUIET, columns=made)
    batch, ctx = seen_batch(again, rows[5:9], 3)
    wanted = [float(made["scores"][row][drawn[3][row]]) for row in rows[5:9]]
    torch.testing.assert_close(ctx.values("scores"), torch.tensor(wanted))
    other = seen_batch(build(DRAW, *QUIET, "train.seed=7", columns=made), rows)[1].values("scores")
    first = torch.tensor([float(made["scores"][row][drawn[0][row]]) for row in rows])
    assert not torch.equal(other, first), "by the seed"


@pytest.mark.parametrize("recipe", [ALL, DRAW])
def test_chunks_equal_one_call(recipe: str, build: Build) -> None:
    made = columns(*[int(recipe == DRAW)] * 2)
    whole, parts = (
        build(recipe, *QUIET, *chunk, columns=made) for chunk in ([], ["train.chunk_size=3"])
    )
    for step in range(3):
        one, other = (bench.step(step).loss for bench in (whole, parts))
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
        close_gradients(parts, whole, 1e-4)


def test_two_processes_are_one(encoder: str, folder: Path, two_processes: TwoProcesses) -> None:
    """One has row 2 alone, which has no positive; in chunks the other has calls without rows."""
    sets = (*QUIET, "train.chunk_size=2")
    given: Any = {"batches": [[0, 1, 3, 4, 5], [2]], "columns": columns(0, 1), "rtol": 1e-6}
    as_one(two_processes, folder, encoder, MIXED, *sets, **given)


def test_a_run_goes_on_as_it_would_have(encoder: str, folder: Path) -> None:
    """Bit for bit, with dropout."""
    corpus = Corpus.from_columns(columns(0, 1))
    sets = ("train.epochs=2", "train.log_steps=1", "train.chunk_size=3", "train.lr=1e-3")
    run = composed(encoder, MIXED, *sets, folder=folder, columns=corpus.names, rows=28)
    recorded = {name: view.get("lists") for name, view in as_recipe(run)["views"].items()}
    assert recorded == {"anchor": None, "positive": "all", "negative": "draw"}
    whole, stopped = (trainer(run, corpus, folder / name)[0] for name in ("whole", "stopped"))
    whole.run()
    stop_after(stopped, 3)
    with pytest.raises(Stopped):
        stopped.run()
    resumed, _ = trainer(run, corpus, folder / "stopped")
    resumed.run(Checkpoint.read(stopped.folder.checkpoints()[-1]))
    same(whole, resumed)
    assert metrics(folder / "whole") == metrics(folder / "stopped")


def test_teachers_read_all_texts_too(build: Build, encoder: str) -> None:
    """A frozen branch that keeps its vectors has the same as one that makes them."""
    made = columns()
    found = []
    for cache in ("false", "true"):
        frozen = f'\n[[branch]]\nuse = "frozen"\nmodel = "{encoder}"\n'
        frozen += f'mode = "eval"\ncache = {cache}\n'
        bench = build(ALL + frozen + '[[loss]]\nuse = "listed-twice"\n', *QUIET, columns=made)
        calls = bench.seen()
        bench.step(0, [3, 0, 2, 1])
        ctx = calls["loss.listed-twice", "__call__"][0][3]
        found.append(ctx.vectors("negative", "frozen")["sentence"])
    for name in ("vectors", "owner", "slot"):
        one, other = (getattr(rows, name) for rows in found)
        torch.testing.assert_close(one, other)


def test_texts_of_keys() -> None:
    batch = make_batch(sentences=3)
    rows = batch.views["positive"]["sentence"]
    keys = torch.tensor([2, 0, 2]), torch.tensor([0, 0, 1]) * SLOTS_PER_TEXT
    many = Embeddings(rows.vectors, *keys, rows.length)
    group = listed(many, batch.owner, batch.slot, 2)
    zero = torch.zeros(8, dtype=torch.float64)
    wanted = [[rows.vectors[1], zero], [zero, zero], [rows.vectors[0], rows.vectors[2]]]
    assert torch.equal(group.vectors, torch.stack([torch.stack(each) for each in wanted]))
    assert group.weights is not None and group.weights.tolist() == [[1, 0], [0, 0], [1, 1]]
    none = listed(many.take(torch.tensor([], dtype=torch.long)), batch.owner, batch.slot, 1)
    assert none.vectors.shape == (3, 1, 8) and not none.vectors.any()
    numbers = torch.arange(6.0).reshape(3, 2)
    assert per_text(numbers, many).tolist() == [4, 0, 5]
    assert per_text(numbers[:, 0], many).tolist() == [4, 0, 4]


def test_rows_of_a_round_have_the_lists_of_their_corpus() -> None:
    made, tokenizer = columns(), tiny_tokenizer()
    corpus = Corpus.from_columns(made)
    rows = TrainingRows(corpus, 8, {"text": torch.tensor([3, 1]).numpy()}, number=1)
    offsets = rows.offsets("positive")
    assert isinstance(offsets, Tensor) and rows.offsets("text") is None
    assert rows.texts("positive", offsets[3:4]) == made["positive"][3][:1]
    found = rows.content("positive", offsets[3:5], tokenizer)
    flat = [text for cell in made["positive"] for text in cell]
    wanted = tokenizer.content([flat[place] for place in offsets[3:5].tolist()], 8)
    assert torch.equal(found.ids, wanted.ids)


TWO_ENCODERS = """
[[branch]]
use = "second"
[views.second-anchor]
branch = "second"
[views.second-positive]
column = "positive"
lists = "all"
branch = "second"
"""
OF_OTHER_VECTORS = {
    "maxsim": ("token-vectors", ""),
    "every-layer": ("layer-vectors", ""),
    "two-encoders": ("first-state", TWO_ENCODERS),
    "norm-constraint": ("first-state", TWO_ENCODERS),
}


@pytest.mark.parametrize("loss", OF_OTHER_VECTORS)
def test_losses_that_look_up_other_vectors_count_every_text_of_a_list(
    tmp_path: Path, loss: str
) -> None:
    """A list the other way round has the same loss, another second text has not."""
    pooler, more = OF_OTHER_VECTORS[loss]
    head, _, _ = ALL.partition("[views.negative]")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'{head}{more}[[pool]]\nuse = "{pooler}"\n[[loss]]\nuse = "{loss}"\n')
    made = columns(1)

    def value(name: str, lists: list[list[str]]) -> float:
        rows = zip(made["text"], lists, strict=True)
        data = tmp_path / f"{name}.jsonl"
        data.write_text("".join(f"{json.dumps({'text': t, 'positive': p})}\n" for t, p in rows))
        options = {"model.dropout": 0, "train.batch_size": 4, "data.shuffle": False}
        with cse.Session(recipe, model=shared_encoder(), data=data, options=options) as session:
            return float(session.step().loss)

    lists = made["positive"]
    first = value("lists", lists)
    assert value("turned", [texts[::-1] for texts in lists]) == pytest.approx(first, rel=1e-5)
    assert value("other", [[texts[0], *TEXTS[-2:]] for texts in lists]) != pytest.approx(first)


def test_lists_that_cannot_be_are_one_line(encoder: str, folder: Path) -> None:
    given: Any = {"folder": folder, "columns": ("text", "positive", "negative", "scores", "others")}
    for sets, says in (
        ("views.anchor.lists=all", "views.anchor.lists: a row has one anchor"),
        (
            "views.positive-2.column=positive",
            "positive-2 makes rows of the lists of column positive",
        ),
        ("views.positive.lists=some", "rows"),
    ):
        line = refusal(composed, encoder, ALL, sets, *(["loss.infonce.target=positive-2"]
                       if "positive-2" in sets else []), **given)  # fmt: skip
        assert says in line, line


def test_a_part_that_reads_tokens_of_a_column_of_lists_is_refused(tmp_path: Path) -> None:
    rows = [{"text": f"old {i} the dog", "positive": ["a", "b"]} for i in range(40)]
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    sets = {"views.positive.column": "positive", "views.positive.lists": "draw",
            "aug.template-only.gap": "padding"}  # fmt: skip
    given: Any = {"model": shared_encoder(), "data": data, "dev": "none", "quiet": True}
    with pytest.raises(CseError, match="column positive holds lists, and a part of this run reads"):
        cse.train("promptbert", out=tmp_path / "run", options=sets, **given)


def test_rounds_bring_one_text_a_row(tmp_path: Path) -> None:
    rows = [{"text": f"old {i} the dog", "positive": ["a", "b"], "document": i // 4}
            for i in range(40)]  # fmt: skip
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(CseError, match="brings one text of column positive a row") as found:
        cse.plan(
            "infocse", model=shared_encoder(), data=data, options={"views.positive.lists": "all"}
        )
    assert found.value.where == "views.positive.lists"


def test_a_batch_that_is_shown_has_the_lists_of_its_rows() -> None:
    made, index = columns(), torch.tensor([5, 1])
    rows = TrainingRows(Corpus.from_columns(made), 32)
    for name in ("positive", "text"):
        assert rows.of_rows(name, index) == [made[name][5], made[name][1]]
