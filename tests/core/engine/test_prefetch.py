"""The next batch prepared in the background: to the bit what is prepared in the step."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cse_testkit.runs import compose
from cse_testkit.tiny import shared_encoder, tiny_corpus
from safetensors.torch import load_file
from torch import Tensor

from cse_core.engine.assembly import BoundAugmenter, build
from cse_core.engine.prefetch import Prefetcher, Ready
from cse_core.engine.views import ViewBuilder
from cse_core.runtime.reporter import Reporter
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.training.checkpoint import Checkpoint, part_states, weights
from cse_core.training.rounds import TrainingRound
from cse_core.training.run_folder import RunFolder
from cse_core.training.selection import Scorer
from cse_core.training.signals import Stopped
from cse_core.training.trainer import Trainer
from cse_core.types import StepContext, TokenBatch, View
from tests.fixtures.ranks import two_ranks
from tests.fixtures.tiny import CPU, FP32, Bench, metrics, sentences

ROOT = Path(__file__).parents[3]
THREAD = "cse-prefetch"
RECIPES = {
    "simcse": (),
    "simcse-supervised": (),
    "esimcse": (),
    "hicl": ("pool.segments.length=5",),
    "is-cse": (),
    "cards": ("negatives.retrieved.knn=5",),
    "sncse": (),
    "mocose": (),
}
"""Plain views; hard negatives; token augmenters; slices; a miner; views and prompts of parts."""
COLUMNS = {"simcse-supervised": ("positive", "negative")}


def begin(recipe: str, out: Path, reporter: Reporter | None = None, *sets: str) -> Trainer:
    corpus = tiny_corpus(14, COLUMNS.get(recipe, ()))
    composition = compose(
        recipe=recipe, corpus=corpus,
        sets=[*RECIPES[recipe], "train.epochs=2", "train.dev=none", "train.log_steps=1",
              "train.save_steps=0", "train.device=cpu", *sets],
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    own = str(shared_encoder())
    assembly = build(composition, corpus=corpus, device=CPU, resolve_model=lambda name: own)
    return Trainer(
        assembly, corpus, Scorer([], None), RunFolder(out), FP32, reporter or Reporter(), {}
    )


def alive() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith(THREAD)]


def without(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Prefetcher, "expect", lambda *_: None)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Ready]:
    """What each step found ready; the thread is always given the time to be."""
    found: list[Ready] = []
    plain = Prefetcher.take

    def take(self: Prefetcher, index: Tensor) -> Ready:
        if self._expected is not None:
            concurrent.futures.wait([self._expected[1]])
        found.append(plain(self, index))
        return found[-1]

    monkeypatch.setattr(Prefetcher, "take", take)
    return found


def outcome(run: Trainer) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    tensors = {**weights(run.assembly), **part_states(run.assembly)[0]}
    lines = [
        {name: value for name, value in line.items() if "per_second" not in name}
        for line in metrics(run.folder.path)
    ]
    return {name: value.clone() for name, value in tensors.items()}, lines


def same(one: Trainer, other: Trainer) -> None:
    (first, lines), (second, other_lines) = outcome(one), outcome(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
    assert lines == other_lines


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_run_is_the_same_to_the_bit(
    recipe: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    used: list[Ready],
) -> None:
    ahead = begin(recipe, tmp_path / "ahead")
    ahead.run()
    steps = 8  # 14 rows in batches of 4, twice: the last batch of an epoch has 2
    assert len(used) == steps and not used[0]
    for ready in used[1:]:
        assert "anchor" in ready
        wrapped = recipe not in ("hicl", "sncse")
        assert all(bool(rows.special.any()) == wrapped for rows in ready.values())
    assert not alive()
    with monkeypatch.context() as patch:
        without(patch)
        in_step = begin(recipe, tmp_path / "in-step")
        in_step.run()
    assert not any(used[steps:])
    same(ahead, in_step)


@pytest.mark.parametrize("recipe, stop", [("esimcse", 3), ("cards", 4), ("hicl", 5)])
def test_a_resumed_run_is_the_same(
    recipe: str, stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stops(Reporter):
        def step(self, step: int) -> None:
            if step == stop:
                signal.raise_signal(signal.SIGTERM)

    halted = begin(recipe, tmp_path / "run", Stops())
    with pytest.raises(Stopped):
        halted.run()
    assert not alive()
    resumed = begin(recipe, tmp_path / "run")
    resumed.run(Checkpoint.read(halted.folder.checkpoints()[-1]))
    with monkeypatch.context() as patch:
        without(patch)
        whole = begin(recipe, tmp_path / "whole")
        whole.run()
    same(resumed, whole)
    assert not alive()


def test_rounds_have_threads_of_their_own_and_leave_none(
    encoder: str,
    tmp_path: Path,
    used: list[Ready],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.core.training.test_runs import ROUNDS
    from tests.core.training.test_runs import begin as begin_small

    ahead, _ = begin_small(encoder, tmp_path, ROUNDS, "ahead", "train.log_steps=1")
    ahead.run()
    assert [bool(ready) for ready in used] == ([False] + [True] * 7) * 2
    assert not alive()
    with monkeypatch.context() as patch:
        without(patch)
        in_step, _ = begin_small(encoder, tmp_path, ROUNDS, "in-step", "train.log_steps=1")
        in_step.run()
    same(ahead, in_step)


def test_an_error_in_the_thread_is_the_step_s_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: list[Ready]
) -> None:
    done: list[int] = []
    plain = TrainingRows.content

    def broken_disk(self: TrainingRows, *given: Any) -> TokenBatch:
        if threading.current_thread().name.startswith(THREAD) and len(done) == 2:
            raise LookupError("no such page")
        return plain(self, *given)

    monkeypatch.setattr(TrainingRows, "content", broken_disk)
    reporter = Reporter()
    reporter.step = done.append  # type: ignore[method-assign]
    with pytest.raises(LookupError, match="no such page") as caught:
        begin("simcse", tmp_path, reporter).run()
    assert done == [1, 2, 3], "the step before it is finished"
    assert "broken_disk" in "".join(traceback.format_tb(caught.value.__traceback__))
    assert not alive()


def test_an_error_of_a_step_leaves_no_thread(tmp_path: Path) -> None:
    running: list[str] = []

    def step(done: int) -> None:
        if done == 3:
            running.extend(alive())
            raise KeyboardInterrupt

    reporter = Reporter()
    reporter.step = step  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        begin("simcse", tmp_path, reporter).run()
    assert len(running) == 1 and not alive()


@pytest.mark.parametrize("recipe", ["simcse", "simcse-supervised", "hicl", "is-cse", "cards"])
def test_no_step_tokenises(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    own = type(begin(recipe, tmp_path / "first").assembly.online.tokenizer.hf)
    in_loop = False

    def counted(kind: type, name: str) -> None:
        plain: Callable[..., Any] = getattr(kind, name)

        def call(self: Any, *given: Any, **named: Any) -> Any:
            if in_loop:
                calls.append(name)
            return plain(self, *given, **named)

        monkeypatch.setattr(kind, name, call)

    class Loop(Reporter):
        def begin(self, round_number: int, steps: int, done: int) -> None:
            nonlocal in_loop
            in_loop = True

        def end(self) -> None:
            nonlocal in_loop
            in_loop = False

    counted(TextTokenizer, "_encodings")
    counted(own, "__call__")
    run = begin(recipe, tmp_path / "run", Loop())
    assert run.run().steps == 8
    assert calls == []


def test_a_text_augmenter_s_texts_are_tokenised_in_the_step_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    plain = TextTokenizer._encodings

    def encodings(self: TextTokenizer, texts: list[str], longest: int | None) -> list[Any]:
        assert threading.current_thread() is threading.main_thread()
        asked.append(texts)
        return plain(self, texts, longest)

    monkeypatch.setattr(TextTokenizer, "_encodings", encodings)
    run = begin("sncse", tmp_path)
    run.run()
    corpus = {*run.corpus.column("text"), ""}  # an empty text is wrapped before anything is written
    steps = [texts for texts in asked if not set(texts) <= corpus]
    others = [texts for texts in asked if set(texts) <= corpus and texts != [""]]
    assert len(steps) == 8 and len(others) <= 3


def nobody_asks(*_: Any) -> Any:
    raise AssertionError


def test_a_text_augmenter_of_a_view_with_tokens_is_called(tmp_path: Path) -> None:
    run = begin("cards", tmp_path)
    builder = ViewBuilder(run.assembly, run.rounds.begin(TrainingRound()))
    view = next(v for v in run.composition.views if v.made_by == "negatives.retrieved")
    loud = SimpleNamespace(path="aug.loud")
    shout = BoundAugmenter(loud, lambda x, *_: ["kite"] * len(x), "text", None, (view.name,))  # type: ignore[arg-type]
    texts, sentence_encoder = ["anna paints", "ben"], run.assembly.online
    given = View(view.name, view.role, "online", texts, sentence_encoder.tokenizer.content(texts))
    ctx = StepContext(0, 1, 0, 0, torch.arange(2), CPU, *[nobody_asks] * 5)
    for augmenters, expected in (([], texts), ([shout], ["kite", "kite"])):
        run.assembly.augmenters[:] = augmenters
        found = builder.prepare(given, torch.arange(2), 0, ctx, sentence_encoder).tokens
        wanted = sentence_encoder.rows(sentence_encoder.tokenizer.content(expected), view.role)
        assert torch.equal(found.ids, wanted.ids)


def test_rows_prepared_ahead_are_those_of_the_step_and_a_prompt_is_asked_for_once(
    encoder: str, folder: Path
) -> None:
    bench = Bench(encoder, folder)
    builder, online = bench.engine.builder, bench.assembly.online
    builder.tokenise(Reporter())
    index, asked = torch.arange(8), []

    def prompt(role: str) -> tuple[str, str]:
        asked.append(role)
        return sentences(1)[0], ""

    online.pooler.prompt = prompt  # type: ignore[method-assign]
    ctx: Any = None  # only parts would look at it
    anchor = View("anchor", "anchor", "online")
    in_step = builder.prepare(anchor, index, 0, ctx, online)
    for _ in range(2):
        builder.expect(index)
        concurrent.futures.wait([builder.prefetcher._expected[1]])  # type: ignore[index]
        ready = builder.prefetcher.take(index)
        found = builder.prepare(anchor, index, 0, ctx, online, ready["anchor"])
        assert found.tokens.ids is ready["anchor"].ids
        assert torch.equal(found.tokens.ids, in_step.tokens.ids)
    assert sorted(asked) == ["anchor", "positive"]
    builder.prefetcher.close()


def test_only_the_expected_batch_is_taken_and_only_of_tokenised_columns(
    encoder: str, folder: Path
) -> None:
    bench = Bench(encoder, folder)
    builder = bench.engine.builder
    builder.expect(torch.arange(8))
    assert builder.prefetcher.take(torch.arange(8)) == {} and not alive()
    builder.tokenise(Reporter())
    for asked, found in ((torch.arange(8), {"anchor", "positive"}), (torch.arange(7), set())):
        builder.expect(torch.arange(8))
        concurrent.futures.wait([builder.prefetcher._expected[1]])  # type: ignore[index]
        assert set(builder.prefetcher.take(asked)) == found
    assert builder.prefetcher.take(torch.arange(8)) == {}
    builder.prefetcher.close()
    builder.prefetcher.close()
    assert not alive()


def test_rows_for_a_gpu_are_laid_into_pinned_memory(
    encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Bench(encoder, folder).assembly.online.tokenizer
    parts = [tokenizer.content(texts) for texts in (sentences(3), sentences(5, seed=1))]
    made: list[bool] = []
    plain = torch.empty

    def empty(*size: int, dtype: torch.dtype, pin_memory: bool) -> Tensor:
        made.append(pin_memory)  # such memory needs a GPU
        return plain(*size, dtype=dtype)

    for some in (parts, parts[:1]):
        expected = TokenBatch.join(some)
        with monkeypatch.context() as patch:
            patch.setattr(torch, "empty", empty)
            found = TokenBatch.join(some, pinned=True)
        for name, value in vars(expected).items():
            assert getattr(found, name).dtype == value.dtype
            assert torch.equal(getattr(found, name), value), name
    assert made == [True] * 14


def in_two(folder: Path, job: dict[str, Any], before: str) -> list[dict[str, Tensor]]:
    """Train a run in two processes; return the weights of both."""
    folder.mkdir()
    path = folder / "job.json"
    path.write_text(json.dumps({**job, "folder": str(folder), "out": str(folder / "run")}))
    call = f"{before}\nfrom tests.fixtures.process import main\nmain({str(path)!r})"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", call], cwd=ROOT,
            env={**os.environ, **rank, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in two_ranks()
    ]  # fmt: skip
    try:
        said = [each.communicate(timeout=300)[0] for each in running]
    finally:
        for each in running:
            each.kill()
    assert [each.returncode for each in running] == [0, 0], "\n".join(s[-3000:] for s in said)
    return [load_file(folder / f"rank-{rank}" / "weights.safetensors") for rank in range(2)]


@pytest.mark.slow
def test_two_processes_are_the_same_too(encoder: str, folder: Path) -> None:
    recipe = (
        '[[pool]]\nuse = "cls"\n[[aug]]\nuse = "double"\n[[negatives]]\nuse = "extra-view"\n'
        '[[loss]]\nuse = "infonce"\n'
    )
    job = {
        "encoder": encoder, "recipe": recipe, "columns": {"text": sentences(17)},
        "sets": ["train.lr=1e-3", "train.epochs=2"],
    }  # fmt: skip
    off = "from cse_core.engine.prefetch import Prefetcher\nPrefetcher.expect = lambda *_: None"
    ahead, in_step = (in_two(folder / name, job, call) for name, call in (("a", ""), ("b", off)))
    for one, other in zip([*ahead, ahead[0]], [*in_step, ahead[1]], strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(value, other[name]) for name, value in one.items())
