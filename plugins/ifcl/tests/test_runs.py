"""IFCL as a user runs it: its recipes, resuming, mistakes, Chinese, parts of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import (
    ENCODERS,
    Rig,
    compose,
    installed_registry,
    run_steps,
    shared_encoder,
    tiny_corpus,
    tiny_encoder,
    write_corpus,
)
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from cse_cli.main import run as cse
from cse_cli.training.plan import data_flow
from cse_core.errors import CseError
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tiny_corpus(columns=("fraternal",))
    return write_corpus(corpus, tmp_path_factory.mktemp("data") / "parallel.csv")


def words(data: Path, out: Path, *more: str, recipe: str = "ifcl") -> list[str]:
    return [
        "train", "--recipe", recipe, "--model", str(shared_encoder()), "--data", str(data),
        "--dev", "none", "--out", str(out), "-q", "--train.batch_size", "4",
        "--train.precision", "fp32", "--train.device", "cpu", *more,
    ]  # fmt: skip


def lines(run: Path) -> list[dict[str, Any]]:
    text = (run / "metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


# -- the recipe ----------------------------------------------------------------------------------


def test_the_recipe_trains_and_logs_its_terms(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert cse(words(data, out, "--train.max_steps", "4", "--aug.fusion.epsilon", "0.5")) == 0
    first, *_, last = lines(out)
    for name in ("identical", "fraternal", "margin", "cos_identical", "innate_margin"):
        assert f"twins.{name}" in last
    assert first["twins.negatives"] == 3.0 and last["twins.negatives"] > 11
    assert last["twins.innate_margin"] > 0, "fusion moves the input embeddings away"
    modules = (out / "model" / "1_Pooling" / "config.json").read_text(encoding="utf-8")
    assert '"pooling_mode_mean_tokens": true' in modules or '"mean"' in modules


def test_a_metric_is_scored_on_the_dev_pairs(data: Path, tmp_path: Path) -> None:
    dev = tmp_path / "dev.tsv"
    rows = [f"{score}\ttext {n}\tother {n}" for n, score in enumerate([5.0, 5.0, 5.0, 1.0, 0.0])]
    dev.write_text("\n".join(["score\tsentence1\tsentence2", *rows]), encoding="utf-8")
    out = tmp_path / "run"
    more = ["--metric", "mutual-information", "--dev", str(dev), "--train.max_steps", "3"]
    arguments = [each for each in words(data, out, *more) if each != "none"]
    arguments.remove("--dev")
    assert cse(arguments) == 0
    numbers = {key: value for line in lines(out) for key, value in line.items()}
    for name, count in (("task", 3), ("identical", 12), ("fraternal", 12)):
        assert numbers[f"dev.mutual-information.{name}_n"] == count
        assert f"dev.mutual-information.{name}" in numbers


def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    corpus = tiny_corpus(columns=("fraternal",))
    sets = ["negatives.hippocampus.batches=3", "metric.mutual-information.rows=10"]
    made = compose(
        recipe="ifcl", kinds={"metric": ["+mutual-information"]}, sets=sets, corpus=corpus
    )
    whole, broken, resumed = (Rig(made, corpus) for _ in range(3))
    wanted = whole.step(7)
    broken.step(4)
    broken.save(tmp_path / "step-4")
    resumed.restore(tmp_path / "step-4")
    found = resumed.step(3)
    for one, other in zip(wanted[4:], found, strict=True):
        assert torch.equal(one.loss, other.loss)
    for held, kept in zip(whole.state(), resumed.state(), strict=True):
        assert held.keys() == kept.keys()
        for name, value in held.items():
            same = torch.equal(value, kept[name]) if torch.is_tensor(value) else value == kept[name]
            assert same, name
    weights = resumed.weights()
    assert all(torch.equal(value, weights[name]) for name, value in whole.weights().items())


def test_a_resumed_run_with_another_second_model_is_refused(tmp_path: Path) -> None:
    corpus = tiny_corpus(columns=("fraternal",))
    second = tiny_encoder(tmp_path / "second", seed=1)
    made = compose(recipe="ifcl", sets=[f"aug.fusion.model={second}"], corpus=corpus)
    rig = Rig(made, corpus)
    rig.step(1)
    rig.save(tmp_path / "step-1")
    tiny_encoder(second, seed=2)
    with pytest.raises(CseError, match=r"aug\.fusion\.model: its embeddings are not the ones"):
        Rig(made, corpus).restore(tmp_path / "step-1")


# -- Chinese -------------------------------------------------------------------------------------

CHINESE = (
    "一只猫睡在窗户边上。",
    "老师正在教室里写字。",
    "火车明天早上离开车站。",
    "孩子们在河边放风筝。",
    "他把钥匙忘在了办公室。",
    "厨房里有新鲜的面包。",
    "下雨天我们留在家里看书。",
    "那位医生每天骑车上班。",
)


def chinese_encoder(folder: Path, texts: Sequence[str]) -> Path:
    """Write a tiny encoder whose vocabulary is the characters of some texts."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*marks, *sorted(set("".join(texts)) - {" "})]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(handle_chinese_chars=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), marks, strict=True))
    PreTrainedTokenizerFast(
        tokenizer_object=made, **{f"{name}_token": mark for name, mark in names.items()}
    ).save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = AutoConfig.for_model(
        "bert", vocab_size=len(pieces), intermediate_size=64, max_position_embeddings=64, **sizes
    )
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    return folder


def test_chinese_rows_train(tmp_path: Path) -> None:
    """Some steps of ifcl-zh; another wording in place of Cantonese, which nobody here has."""
    texts = list(CHINESE)
    other = [*texts[1:], texts[0]]
    encoder = chinese_encoder(tmp_path / "zh", [*texts, *other])
    data = tmp_path / "zh.tsv"
    rows = [f"{one}\t{two}" for one, two in zip(texts, other, strict=True)]
    data.write_text("\n".join(["text\tfraternal", *rows]), encoding="utf-8")
    out = tmp_path / "run"
    arguments = words(data, out, "--train.max_steps", "4", recipe="ifcl-zh")
    arguments[arguments.index("--model") + 1] = str(encoder)
    assert cse(arguments) == 0
    last = lines(out)[-1]
    assert 0 < last["loss"] < 20 and last["twins.negatives"] > 3
    assert cse(["encode", str(out), "--text", texts[0], "--out", str(tmp_path / "v.npy")]) == 0


# -- the plan ------------------------------------------------------------------------------------


def planned(recipe: str, encoder: str, *sets: str, **changes: Any) -> Composition:
    facts = replace(ENCODERS[encoder], **changes)
    return resolve(
        installed_registry(), recipe=recipe, model=facts.model, sets=list(sets), facts=facts
    )


@pytest.mark.parametrize("recipe", ["ifcl", "ifcl-zh"])
@pytest.mark.parametrize(
    ("encoder", "name", "sets", "warned"),
    [
        ("roberta-base", "roberta-base", (), True),
        ("roberta-large", "xlm-roberta-large", (), False),
        ("bert-base", "bert-base-uncased", (), False),
        ("bert-base", "bert-base-uncased", ("aug.fusion.model=none",), True),
        ("bert-base", "bert-base-multilingual-uncased", ("aug.fusion.model=none",), False),
        ("starter", "starter", (), False),
    ],
)
def test_a_vocabulary_not_made_for_the_other_language_is_warned_of(
    recipe: str, encoder: str, name: str, sets: tuple[str, ...], warned: bool
) -> None:
    found = [each for each in planned(recipe, encoder, *sets, model=name).warnings
             if each.startswith("aug.fusion: column fraternal is read by")]  # fmt: skip
    assert bool(found) == warned
    assert not warned or name in found[0]


def test_a_small_encoder_of_english_is_warned_of() -> None:
    made = planned("ifcl", "bert-base", model="all-MiniLM-L6-v2", hidden=384, embedding=384)
    assert any("all-MiniLM-L6-v2 itself" in each for each in made.warnings)


@pytest.mark.parametrize("view", ["positive", "anchor"])
def test_the_plan_says_which_twins_a_store_holds(view: str) -> None:
    corpus = tiny_corpus(columns=("fraternal",))
    made = compose(
        recipe="ifcl",
        kinds={"negatives": ["queue"]},
        sets=[f"negatives.queue.view={view}"],
        corpus=corpus,
    )
    printed = [note for note in made.notes if "the fraternal twins; the paper's queue" in note]
    assert len(printed) == (view == "positive")
    assert not printed or "--negatives.queue.view anchor" in printed[0]
    own = compose(recipe="ifcl", corpus=corpus)
    assert not [note for note in own.notes if "fraternal twins" in note]


# -- with the parts of others --------------------------------------------------------------------


def test_with_the_queue_and_perturbation_of_others() -> None:
    """`cse train --aug fgsm --negatives queue --loss twins`, where these parts are installed."""
    registry = installed_registry()
    for kind, name in (("aug", "fgsm"), ("negatives", "queue")):
        if name not in {each.name for each in registry.parts(kind)}:  # type: ignore[arg-type]
            pytest.skip(f"no {kind} {name} is installed")
    run = run_steps(kinds={"aug": ["fgsm"], "negatives": ["queue"], "loss": ["twins"]}, steps=3)
    views = {view.name: view for view in run.composition.views}
    assert views["positive"].augmenters == ("aug.fgsm",)
    assert not views["identical"].augmenters and views["identical"].branch == "online"
    assert {view.branch for view in run.composition.views} == {"online"}
    fed = data_flow(run.composition)
    assert "identical -> loss.twins (in-batch: target)" in fed
    assert "positive -> loss.twins (view)" in fed
    assert any(line.startswith("negatives.queue (positive by branch ") for line in fed)
    assert all(loss > 0 for loss in run.losses)
    assert run.scalars[-1]["twins.negatives"] > 3
    assert run.scalars[0]["twins.innate_margin"] != 0, "of the perturbed positive"
