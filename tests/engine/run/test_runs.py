"""Whole runs: the same again, resumed, in rounds, and what is noticed."""

import json
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_testkit import compose, installed_registry, run_steps, tiny_corpus, write_corpus

from cse_cli.models.saved_model import load
from cse_core.errors import CseError
from cse_core.reporter import Reporter
from cse_defaults.basics.infonce import Infonce
from cse_defaults.texts import Corpus, read_data
from cse_engine.run.checkpoint import Checkpoint, part_states, restore_weights, weights
from cse_engine.run.prepare import prepare
from cse_engine.run.run import read_run, resume, train
from cse_engine.run.selection import Scorer
from cse_engine.run.signals import Stopped
from cse_engine.run.trainer import Outcome, Trainer
from tests.fixtures.small_parts import Near, TwoRounds, Watching
from tests.fixtures.tiny import composed, dev_scorer, metrics, sentences, trainer

EVERYTHING = """
[[pool]]
use = "cls"
[[pool]]
use = "mlp"
[[aug]]
use = "double"
[[aug]]
use = "push"
gradient = "previous"
[[aug]]
use = "push"
name = "now"
point = "input_embeddings"
[[negatives]]
use = "queue"
branch = "ema"
[[branch]]
use = "ema"
decay = "cosine(0.5, 0.99)"
[[loss]]
use = "infonce"
[[loss]]
use = "bias"
"""
ROUNDS = """
[[pool]]
use = "cls"
[[positives]]
use = "two-rounds"
[[negatives]]
use = "queue"
[[loss]]
use = "infonce"
name = "first"
[[loss]]
use = "infonce"
name = "second"
same_document = "mask"
"""


def begin(
    encoder: str, folder: Path, recipe: str, out: str, *sets: str, rows: int = 60,
    scorer: Scorer | None = None,
) -> tuple[Trainer, Any]:  # fmt: skip
    texts = sentences(rows)
    composition = composed(encoder, recipe, "train.lr=1e-3", *sets, folder=folder, rows=rows)
    return trainer(composition, Corpus.from_columns({"text": texts}), folder / out, scorer=scorer)


def stop_after(run: Trainer, step: int) -> None:
    plain = run.reporter.step

    def step_done(done: int) -> None:
        plain(done)
        if done == step:
            signal.raise_signal(signal.SIGTERM)

    run.reporter.step = step_done  # type: ignore[method-assign]


def same(one: Trainer, other: Trainer) -> None:
    first, second = weights(one.assembly), weights(other.assembly)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


def dev() -> Scorer:
    return dev_scorer(sentences(60))


def test_the_same_seed_is_the_same_run_and_a_resumed_one_too(encoder: str, folder: Path) -> None:
    sets = ["train.chunk_size=5", "train.epochs=2", "train.log_steps=2"]
    whole, _ = begin(encoder, folder, EVERYTHING, "whole", *sets, rows=28)
    whole.run()
    again, _ = begin(encoder, folder, EVERYTHING, "again", *sets, rows=28)
    stop_after(again, 3)
    with pytest.raises(Stopped):
        again.run()
    found = again.folder.checkpoints()[-1]
    assert found.name == "step-3"
    assert any(name.startswith("gradient.") for name in Checkpoint.read(found).tensors)
    with (folder / "again" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 4, "round": 0}) + '\n{"step": 1')
    resumed, _ = begin(encoder, folder, EVERYTHING, "again", *sets, rows=28)
    outcome = resumed.run(Checkpoint.read(found))
    same(whole, resumed)
    assert outcome.steps == 8
    one, other = (metrics(folder / name) for name in ("whole", "again"))
    assert [line["step"] for line in other] == [2, 4, 6, 8]
    assert one == other
    ema, mine = (run.assembly.parts["branch.ema"].state_dict() for run in (whole, resumed))
    assert all(torch.equal(value, mine[name]) for name, value in ema.items())
    different, _ = begin(encoder, folder, EVERYTHING, "other", *sets, "train.seed=1", rows=28)
    different.run()
    with pytest.raises(AssertionError):
        same(whole, different)


def test_two_rounds(encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TwoRounds, "mined", 0)
    whole, _ = begin(encoder, folder, ROUNDS, "whole", "train.log_steps=1", scorer=dev())
    outcome = whole.run()
    lines = metrics(folder / "whole")
    steps = [(line["round"], line["step"]) for line in lines]
    assert steps == [(1, i + 1) for i in range(8)] + [(2, i + 1) for i in range(8)]
    assert all(("first.loss" in line) == (line["round"] == 1) for line in lines)
    assert all(("second.loss" in line) == (line["round"] == 2) for line in lines)
    assert [line["lr"] for line in lines[8:10]] == [1e-3, 1e-3 * 7 / 8]
    assert outcome.steps == 16 and TwoRounds.mined == 3
    scores = {
        number: max(line["dev.spearman"] for line in lines if line["round"] == number)
        for number in (1, 2)
    }
    assert outcome.score == max(scores.values())
    assert outcome.round == max(scores, key=lambda number: (scores[number], -number))
    best = Checkpoint.read(whole.folder.checkpoint(outcome.round, outcome.step))
    for name, value in weights(whole.assembly).items():
        assert torch.equal(value, best.tensors[name])
    # The better of the rounds is the run's model; it can be loaded as that of its round, too.
    kept = load(str(folder / "whole" / "rounds" / str(outcome.round)), installed_registry())
    for name, value in kept.sentence_encoder.encoder.state_dict().items():
        assert torch.equal(value, best.part("encoder")[name]), name


def test_a_resumed_round_mines_once(
    encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(out: str) -> Trainer:
        return begin(encoder, folder, ROUNDS, out, "train.log_steps=1", rows=28, scorer=dev())[0]

    whole = begun("whole")
    whole.run()
    for where in ((1, 2), (2, 3), (2, 4)):
        out = f"halted-{where}"
        halted = begun(out)
        seen: list[int] = []

        def step_done(done: int, seen: list[int] = seen, where: tuple[int, int] = where) -> None:
            seen.append(done)
            if (len([s for s in seen if s == 1]), done) == where:
                signal.raise_signal(signal.SIGTERM)

        halted.reporter.step = step_done  # type: ignore[method-assign]
        with pytest.raises(Stopped):
            halted.run()
        monkeypatch.setattr(TwoRounds, "mined", 0)
        resumed = begun(out)
        resumed.run(Checkpoint.read(halted.folder.checkpoints()[-1]))
        assert TwoRounds.mined == 3 - where[0]
        same(whole, resumed)
        assert metrics(folder / "whole") == metrics(folder / out)


def test_damaged_best_weights_are_refused_before_the_first_step(encoder: str, folder: Path) -> None:
    sets = ("train.eval_steps=2", "train.save_steps=1")
    run, _ = begin(encoder, folder, "", "run", *sets, scorer=dev())
    stop_after(run, 7)
    with pytest.raises(Stopped):
        run.run()
    last, best = run.folder.checkpoints()[-1], run.scorer.of_round
    (run.folder.checkpoint(*best.place) / "state.json").write_text("{}")
    assert best.step < 6, "neither of the last two"
    resumed, _ = begin(encoder, folder, "", "run", *sets, scorer=dev())
    with pytest.raises(CseError, match=f"step-{best.step}: is not as it was written: state.json"):
        resumed.run(Checkpoint.read(last))


def test_a_mined_round_is_read(encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = begin(encoder, folder, ROUNDS, "run", "train.save_rounds=false")

    def begun(number: int, steps: int, done: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    run.reporter.begin = begun  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.run()
    monkeypatch.setattr(TwoRounds, "mined", 0)
    resumed, _ = begin(encoder, folder, ROUNDS, "run", "train.save_rounds=false")
    outcome = resumed.run(Checkpoint.read(run.folder.checkpoints()[-1]))
    assert TwoRounds.mined == 1 and outcome.steps == 16
    assert outcome.round == 2, "without dev sets the last one is kept"
    assert (folder / "run/model/config.json").is_file()
    assert not list((folder / "run/rounds").glob("*/model"))


@pytest.mark.parametrize("save", ["4", "5"])
def test_a_loss_of_nan_keeps_the_checkpoint_before(save: str, encoder: str, folder: Path) -> None:
    recipe = '[[pool]]\nuse = "cls"\n[[loss]]\nuse = "bias"\nexplode = 5\n'
    run, _ = begin(
        encoder, folder, recipe, "run", "train.epochs=3", f"train.save_steps={save}",
        "train.log_steps=8",
    )  # fmt: skip
    with pytest.raises(CseError, match="finite"):
        run.run()
    (kept,) = run.folder.checkpoints()
    found = Checkpoint.read(kept)
    assert found.values["step"] == int(save)
    assert all(bool(v.isfinite().all()) for v in found.tensors.values() if v.is_floating_point())
    found.tensors["part.loss.bias.scale"] = torch.zeros(2)
    with pytest.raises(CseError, match="loss.bias of .* does not fit its checkpoint: .* scale: "):
        run.restore(found)


def test_what_a_run_warns_of(encoder: str, folder: Path) -> None:
    recipe = (
        '[[pool]]\nuse = "cls"\n[[aug]]\nuse = "double"\nrate = 0.0\n'
        '[[aug]]\nuse = "push"\ngradient = "previous"\n'
    )
    run, notes = begin(encoder, folder, recipe, "run", "train.max_steps=11")
    run.run()
    assert [w for w in notes.warnings if "changed nothing" in w] == [
        "aug.double changed nothing in 10 calls: is its rate too low?"
    ]
    sets = ("train.batch_size=50", "train.epochs=3", "train.log_steps=2")
    run, notes = begin(encoder, folder, "", "run", *sets, rows=5)
    outcome = run.run()
    assert outcome.steps == 3
    lines = metrics(folder / "run")
    assert [line["infonce.negatives"] for line in lines] == [4.0] * len(lines) == [4.0] * 2


def test_a_loss_that_waits_is_named(
    encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Near, "mine", lambda self, batch, ctx: {})
    recipe = (
        '[[pool]]\nuse = "cls"\n[[positives]]\nuse = "near"\n[[loss]]\nuse = "infonce"\n'
        '[[loss]]\nuse = "infonce"\nname = "late"\ntarget = "near"\n'
    )
    run, notes = begin(encoder, folder, recipe, "run", "train.max_steps=2")
    run.run()
    assert [w for w in notes.warnings if "computed" in w] == [
        "loss.late was never computed in 2 steps: none had any 'near'"
    ]
    alone = '[[pool]]\nuse = "cls"\n[[positives]]\nuse = "near"\n[[loss]]\nuse = "infonce"\n'
    run, _ = begin(encoder, folder, f'{alone}target = "near"\n', "alone", "train.max_steps=2")
    with pytest.raises(CseError, match="loss.infonce: was never computed in 2 steps"):
        run.run()


def test_a_store_that_does_nothing_is_named(
    encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = '[[pool]]\nuse = "cls"\n[[loss]]\nuse = "infonce"\n[[negatives]]\nuse = "watching"\n'
    line = "negatives.watching gave no loss a negative in 2 steps, and changed no weight of one"
    run, notes = begin(encoder, folder, recipe, "acts", "train.max_steps=2")
    run.run()
    assert line not in notes.warnings
    monkeypatch.setattr(Watching, "weigh", lambda self, given, batch, ctx: replace(given))
    run, notes = begin(encoder, folder, recipe, "run", "train.max_steps=2")
    run.run()
    assert line in notes.warnings


def test_patience_stops_and_a_resumed_run_stops_too(encoder: str, folder: Path) -> None:
    sets = ["train.patience=1", "train.eval_steps=1", "train.epochs=3"]
    run, notes = begin(encoder, folder, "", "run", *sets, scorer=dev())
    untrained, _ = run.scorer.score(run.encode, 1, 0, {})
    outcome = run.run()
    assert outcome.steps < 24 and any("no better" in text for text in notes.messages)
    resumed, _ = begin(encoder, folder, "", "run", *sets, scorer=dev())
    again = resumed.run(Checkpoint.read(run.folder.checkpoints()[-1]))
    assert again.steps == outcome.steps
    same(run, resumed)
    assert np.isfinite(again.score or np.nan)
    assert again.start == outcome.start == untrained["dev.spearman"]


def test_parts_see_the_corpus_before_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So an error there leaves nothing behind, in a new run and in a resumed one."""
    corpus, registry, seen = tiny_corpus(16), installed_registry(), []
    file, out = write_corpus(corpus, folder / "rows.csv"), folder / "run"
    sets = [f"data.path=[{file}]", "train.dev=[none]", "train.device=cpu", "train.max_steps=3"]
    composition = compose(recipe="simcse", corpus=corpus, sets=sets)

    def see(part: object, dataset: Corpus) -> None:
        seen.append(out.exists())
        if len(seen) == 1:
            raise CseError("cannot use these rows", where="loss.infonce")

    monkeypatch.setattr(Infonce, "prepare", see)
    made = partial(prepare, registry=registry, reporter=Reporter(), read_texts=read_data)

    def go_on() -> Outcome:
        recorded = read_run(out, registry)
        facts, lines, notes = recorded.settings["run"] | {"processes": 3}, [], Reporter()
        notes.warning = lines.append  # type: ignore[method-assign]
        prepared = made(recorded.composition, recorded=facts, reporter=notes)
        assert any("began with 3 processes" in line for line in lines)
        return resume(recorded, prepared)

    with pytest.raises(CseError, match="cannot use these rows"):
        made(composition)
    assert not out.exists()
    stopping = Reporter()
    stopping.step = lambda done: signal.raise_signal(signal.SIGTERM)  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        train(made(composition, reporter=stopping), out)
    rows = file.read_text(encoding="utf-8")
    file.write_text(rows.replace("near", "on"), encoding="utf-8")
    with pytest.raises(CseError, match="data.path: has changed since the run started"):
        go_on()
    file.write_text(rows, encoding="utf-8")
    assert go_on().steps == 3
    assert seen == [False, False, True]


@pytest.mark.parametrize("recipe", ["tsdae", "denosent"])
def test_what_a_loss_shares_with_the_encoder_is_in_a_checkpoint_once(recipe: str) -> None:
    rig = run_steps(None, ["model.dropout=0"], recipe, steps=1)
    assembly = rig.session._loop.assembly
    own = {value.data_ptr() for value in assembly.online.encoder.state_dict().values()}
    kept = {n: v for n, v in weights(assembly).items() if n.startswith("part.loss.")}
    assert kept and not [name for name, value in kept.items() if value.data_ptr() in own]
    assert kept.keys() == {n for n in part_states(assembly)[0] if n.startswith("part.loss.")}
    before = {name: value.clone() for name, value in weights(assembly).items()}
    rig.step(1, rows=4)
    assert not torch.equal(before[min(kept)], kept[min(kept)])
    restore_weights(assembly, Checkpoint(before))
    now = weights(assembly)
    assert all(torch.equal(value, now[name]) for name, value in before.items())
