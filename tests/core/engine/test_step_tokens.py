"""What a step reads of tables and what it tokenises; rows on their way to a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cse_testkit.runs import compose
from cse_testkit.tiny import shared_encoder, tiny_corpus
from torch import Tensor

from cse_core.engine.assembly import BoundAugmenter, build
from cse_core.engine.views import ViewBuilder
from cse_core.reporter import Reporter
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.training.rounds import TrainingRound
from cse_core.training.run_folder import RunFolder
from cse_core.training.selection import Scorer
from cse_core.training.trainer import Trainer
from cse_core.types import StepContext, TokenBatch, View
from tests.fixtures.tiny import CPU, FP32, Build, sentences

SETS = {"hicl": ["pool.segments.length=5"], "cards": ["negatives.retrieved.knn=5"]}


def begin(recipe: str, out: Path, reporter: Reporter | None = None) -> Trainer:
    corpus = tiny_corpus(14, ("positive", "negative") if recipe == "simcse-supervised" else ())
    composition = compose(
        recipe=recipe, corpus=corpus,
        sets=[*SETS.get(recipe, ()), "train.max_steps=8", "train.dev=none", "train.log_steps=1",
              "train.save_steps=0", "train.device=cpu"],
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    own = str(shared_encoder())
    assembly = build(composition, corpus=corpus, device=CPU, resolve_model=lambda name: own)
    heard, none = reporter or Reporter(), Scorer([], None)
    run = Trainer(assembly, corpus, none, RunFolder(out), FP32, heard, {})
    run.prepare()
    return run


@pytest.mark.parametrize("recipe", ["simcse-supervised", "hicl", "cards"])
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
    ctx = StepContext(0, 1, 0, 0, torch.arange(2), CPU, *[nobody_asks] * 8)
    for augmenters, expected in (([], texts), ([shout], ["kite", "kite"])):
        run.assembly.augmenters[:] = augmenters
        found = builder.prepare(given, torch.arange(2), 0, ctx, sentence_encoder).tokens
        wanted = sentence_encoder.rows(sentence_encoder.tokenizer.content(expected), view.name)
        assert torch.equal(found.ids, wanted.ids)


def test_rows_for_a_gpu_are_laid_into_pinned_memory(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = build().assembly.online.tokenizer
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
