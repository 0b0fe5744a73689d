"""The encoder calls and keys of a step, and what it reads of tables and what it tokenises."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cse_testkit import make_setup
from cse_testkit.runs import Rig, compose
from cse_testkit.tiny import tiny_corpus
from torch import Tensor

from cse_core.options import AugmenterOptions
from cse_core.parts import Augmenter
from cse_core.types import SLOTS_PER_TEXT, StepContext, TokenBatch, View
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.runtime.seeds import StepPosition
from cse_engine.step.assembly import BoundAugmenter
from cse_engine.step.passes import Encoded, Passes
from cse_engine.step.row_keys import KeysOnDevice
from cse_engine.step.token_table import TokenTable
from cse_engine.step.views import PreparedView, ViewBuilder
from tests.engine.step.test_branches import EMA
from tests.engine.step.test_chunks import RECIPES
from tests.engine.step.test_views_and_levels import CUT, LOCAL, prepared
from tests.fixtures.tiny import Build, sentences

PLANNED = {
    **RECIPES,
    "branches": EMA + '[[negatives]]\nuse = "queue"\nbranch = "momentum"\nview = "anchor"\n',
    "pushed positives": EMA
    + '[[aug]]\nuse = "push"\ngradient = "fresh"\nsize = 0.5\nviews = ["positive"]\n'
    + '[[loss]]\nuse = "infonce"\n',
}


@pytest.mark.parametrize("recipe", PLANNED)
def test_calls_are_those_of_a_plan(
    recipe: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = build(PLANNED[recipe])
    made: Counter[tuple[str, tuple[str, ...], bool]] = Counter()
    plain = Passes.call

    def call(
        self: Passes, encoded: Encoded, branch: str, names: list[str], *given: Any, **how: Any
    ) -> Any:
        made[branch, tuple(sorted(names)), torch.is_grad_enabled()] += 1
        return plain(self, encoded, branch, names, *given, **how)

    monkeypatch.setattr(Passes, "call", call)
    bench.step(0)
    shown: Counter[tuple[str, tuple[str, ...], bool]] = Counter()
    own = {view.name: view.branch for view in bench.composition.views}
    for planned in bench.composition.passes:
        together = tuple(sorted(v for v in planned.views if own[v] == planned.branch))
        if together:
            shown[planned.branch, together, planned.gradient] += 1
        for view in planned.views:
            if own[view] != planned.branch:
                shown[planned.branch, (view,), False] += 1
    assert made == shown


def test_keys_of_rows_and_texts(build: Build) -> None:
    work = prepared(build(CUT + LOCAL))
    anchor, positive = work.keys["anchor"], work.keys["positive"]
    assert set(anchor) == {"segment", "sentence", "input"}
    assert all(anchor[level] is positive[level] for level in anchor)
    assert anchor["sentence"].owner.tolist() == list(range(8))
    assert anchor["segment"].slot.tolist() != [0] * len(anchor["segment"].slot)
    keys, owner, slot = KeysOnDevice(torch.device("cpu")), torch.arange(3), torch.zeros(3).long()
    assert keys.of(owner, slot) is keys.of(owner.clone(), slot.clone())
    assert keys.of(owner, slot) is not keys.of(owner, slot + 1)
    table = TokenTable(torch.arange(6), torch.zeros(6).long(), torch.tensor([0, 2, 3, 6]))
    rows = table.rows(torch.arange(3))
    more = View("more", "aux", "online", owner=torch.tensor([4, 1, 4]))
    view = PreparedView.of(more, rows, 10)
    assert view.tokens.owner.tolist() == [14, 11, 14]
    assert view.tokens.slot.tolist() == [0, 0, SLOTS_PER_TEXT] and view.texts == 3
    part = view.between(14, 15)
    assert part.text.tolist() == [0, 2] and part.texts == 2
    assert [key.tolist() for key in part.text_keys()] == [[14, 14], [0, SLOTS_PER_TEXT]]
    assert view.between(11, 15) is view and not view.between(0, 5).tokens.rows


SETS = {"hicl": ["pool.segments.length=5"], "cards": ["negatives.retrieved.knn=5"]}


def begin(recipe: str) -> Rig:
    corpus = tiny_corpus(14, ("positive", "negative") if recipe == "simcse-supervised" else ())
    sets = [*SETS.get(recipe, ()), "train.max_steps=8", "train.device=cpu", "train.precision=fp32"]
    return Rig(compose(recipe=recipe, corpus=corpus, sets=sets))


@pytest.mark.parametrize("recipe", ["simcse-supervised", "hicl", "cards"])
def test_no_step_tokenises(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(recipe)
    own = run.session.prepare().tokenizer().hf
    monkeypatch.setattr(TextTokenizer, "_encodings", nobody_asks)
    monkeypatch.setattr(type(own), "__call__", nobody_asks)
    assert len(run.step(8)) == 8


def test_a_step_tokenises_texts_of_augmenters_alone(seen: list[list[str]]) -> None:
    run = begin("sncse")
    run.step(8)
    # An empty text is wrapped before anything is written.
    corpus = {*run.session.corpus.column("text"), ""}
    steps = [texts for texts in seen if not set(texts) <= corpus]
    others = [texts for texts in seen if set(texts) <= corpus and texts != [""]]
    assert len(steps) == 8 and len(others) <= 3


def nobody_asks(*_: Any) -> Any:
    raise AssertionError


class Shout(Augmenter):
    def __call__(self, x: Any, tokens: Any, view: View, ctx: StepContext) -> Any:
        return ["kite"] * len(x)


def test_a_text_augmenter_of_a_view_with_tokens_is_called() -> None:
    session = begin("cards").session.prepare()
    assembly = session._loop.assembly
    builder = ViewBuilder(assembly, session._loop.rows)
    view = next(v for v in session.composition.views if v.made_by == "negatives.retrieved")
    part = Shout(AugmenterOptions(), make_setup("loud"))
    loud: Any = SimpleNamespace(path="aug.loud")
    shout = BoundAugmenter(loud, part, "text", None, (view.name,))
    texts, sentence_encoder = ["anna paints", "ben"], assembly.online
    given = View(view.name, view.role, "online", texts, sentence_encoder.tokenizer.content(texts))
    position = StepPosition(step=0, total_steps=1, epoch=0, round=0)
    ctx = session._loop.engine.passes.prepare(torch.arange(2), position, {}).ctx
    for augmenters, expected in (([], texts), ([shout], ["kite", "kite"])):
        assembly.augmenters[:] = augmenters
        found = builder.prepare(given, ctx, sentence_encoder).tokens
        wanted = sentence_encoder.rows(sentence_encoder.tokenizer.content(expected), view.name)
        assert torch.equal(found.ids, wanted.ids)


def test_rows_for_a_gpu_lie_in_pinned_memory(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
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
        for name in set(vars(expected)) - {"labels"}:
            value = getattr(expected, name)
            assert getattr(found, name).dtype == value.dtype
            assert torch.equal(getattr(found, name), value), name
    assert made == [True] * 14
