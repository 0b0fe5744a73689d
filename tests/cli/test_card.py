"""The card of a trained model: what the hub reads, what people read, nothing of the machine."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from cse_cli.cards.origins import encoder_source, text_source
from cse_cli.plugins.installed import Installed
from cse_core.records import ComponentSpec, Paper, RecipeSpec
from tests.fixtures.command_line import Cse

SHORT = ("--train.batch_size", "8", "--train.max_steps", "2", "--train.device", "cpu")
PAIRS = "sentence1\tsentence2\tscore\na b\ta c\t1\na d\tb c\t3\nred x\tred y\t5\n"


@pytest.fixture
def card(cse: Cse, sentences: Path, tmp_path: Path) -> ModelCard:
    """The card of a run on files of one's own, with the twins loss beside SimCSE's recipe."""
    (tmp_path / "own.tsv").write_text(PAIRS)
    seen = cse("train", "-r", "simcse", "--loss", "twins", "--model", "starter", "--data",
               str(sentences), "--dev", str(tmp_path / "own.tsv"), "-q", *SHORT, "--out",
               str(tmp_path / "runs/mine"))  # fmt: skip
    assert seen.code == 0 and seen.err == "", seen
    return ModelCard.load(tmp_path / "runs/mine/model/README.md")


def test_a_card_has_what_the_hub_reads_and_people_need(
    card: ModelCard, cse: Cse, sentences: Path, tmp_path: Path
) -> None:
    data = card.data
    assert data.library_name == "sentence-transformers" and data.model_name == "simcse-starter"
    assert data.pipeline_tag == "sentence-similarity"
    assert data.base_model is None and data.datasets is None, "neither is on the hub"
    (result,) = data.eval_results or ()
    assert (result.dataset_name, result.metric_type) == ("own", "cos_sim_spearman")
    assert isinstance(result.metric_value, float) and result.metric_args is not None
    assert result.metric_args["chose_the_checkpoint"] is True
    assert result.metric_args["max_length"] == 512 and result.metric_args["pooling"] == "cls"
    for words in ("| recipe | `simcse` |", "`loss.twins`", "(CC BY-SA 3.0)", "not known",
                  "own.spearman` chose the checkpoint", "2 steps, batches of 8",
                  "cse train --recipe recipe.toml", "@inproceedings{gao-etal-2021-simcse",
                  "@article{xiao-etal-2023-identical"):  # fmt: skip
        assert words in card.text, words
    assert card.text.count("@") == 2, "every paper once"

    files = [tmp_path / "runs/mine/model" / name for name in ("README.md", "recipe.toml")]
    for file in files:
        assert (
            str(tmp_path) not in file.read_text() and str(sentences.parent) not in file.read_text()
        )
    recipe = tomllib.loads(files[1].read_text())
    assert recipe["data"]["path"] == [sentences.name] and recipe["train"]["dev"] == ["own.tsv"]


def test_the_recipe_beside_a_card_repeats_the_run(
    card: ModelCard, cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(sentences.name).write_bytes(sentences.read_bytes())
    recipe = tmp_path / "runs/mine/model/recipe.toml"
    seen = cse("train", "--recipe", str(recipe), "--out", "runs/again", "-q")
    assert seen.code == 0, seen.err
    weights = [
        (tmp_path / "runs" / run / "model/model.safetensors").read_bytes()
        for run in ("mine", "again")
    ]
    assert weights[0] == weights[1]


def test_a_card_that_cannot_be_written_costs_a_warning(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cse_cli.cards.card.write_whole", full)
    seen = cse("train", "--data", str(sentences), "--dev", "none", *SHORT, "--out",
               str(tmp_path / "run"))  # fmt: skip
    assert seen.code == 0 and "saved without its card: OSError" in seen.err
    assert (tmp_path / "run/model/README.md").is_file(), "the short one"


def test_sources_say_what_is_on_the_hub_and_under_which_licence(tmp_path: Path) -> None:
    registry = Installed().registry
    own = tmp_path / "own.txt"
    own.touch()
    assert text_source(str(own), registry).described() == "`own.txt`"
    assert not text_source("gone/away.txt.gz", registry).on_hub
    starter = text_source("starter", registry)
    assert (starter.on_hub, starter.licence) == (False, "Apache-2.0")
    of_hub = text_source("owner/texts:en@dev", registry)
    assert (of_hub.name, of_hub.on_hub, of_hub.licence) == ("owner/texts", True, "")
    pinned = text_source(f"owner/texts#{'a' * 40}", registry)
    assert (pinned.name, pinned.on_hub) == ("owner/texts", True)
    assert encoder_source("bert-base-uncased", {}, registry).on_hub
    assert "CC BY-SA" in encoder_source("starter", {}, registry).licence
    trained = encoder_source(str(tmp_path), {"starter": True}, registry)
    assert trained.name == tmp_path.name and "CC BY-SA" in trained.licence


def test_a_licence_is_read_from_the_card_that_loading_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "README.md"
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache", lambda *_, **__: str(page), raising=True
    )
    registry = Installed().registry
    for licence, said in (("mit", "mit"), ("[mit, cc-by-4.0]", "mit, cc-by-4.0"), ("", "")):
        page.write_text(f"---\nlicense: {licence}\n---\n# Texts\n")
        assert text_source("owner/texts", registry).licence == said
    page.write_text("---\n- broken: [\n---\n")
    assert text_source("owner/texts", registry).licence == ""


def test_every_paper_of_a_part_or_recipe_has_its_bibtex() -> None:
    found = {
        record.paper
        for info in Installed().manager.infos
        for record in info.parts
        if isinstance(record, ComponentSpec | RecipeSpec) and record.paper
    }
    assert len(found) >= 17
    keys = []
    for paper in found:
        assert isinstance(paper, Paper), paper
        assert paper.bibtex.startswith("@") and paper.bibtex.endswith("}")
        assert paper.bibtex.count("{") == paper.bibtex.count("}")
        for field in ("title", "author", "year"):
            assert f"    {field} = " in paper.bibtex, paper
        keys.append(paper.bibtex.partition("{")[2].partition(",")[0])
    assert len(keys) == len(set(keys))


def test_scores_of_an_evaluation_are_added_to_an_edited_card(
    card: ModelCard, cse: Cse, tmp_path: Path
) -> None:
    run = tmp_path / "runs/mine"
    path = run / "model/README.md"
    path.write_text(path.read_text().replace("# A sentence encoder", "# My own words"))
    (tmp_path / "other.tsv").write_text(PAIRS)
    for words in ((), (), ("--max-length", "8")):  # the same one twice is one
        assert cse("eval", str(run), "--pairs", str(tmp_path / "other.tsv"), *words).code == 0
    now = ModelCard.load(path)
    results = now.data.eval_results or []
    assert [each.dataset_name for each in results] == ["own", "other", "other"]
    settings = [(each.metric_args or {}).get("encoder") for each in results]
    assert settings[0] is None and settings[1] != settings[2]
    assert "at most 8 tokens" in str(settings[2])
    assert "# My own words" in now.text and now.text.count("## Evaluation") == 1
    assert now.text.index("## Evaluation") < now.text.index("## Use it")
    assert now.text.count("@") == card.text.count("@") == 2

    path.write_text("---\nlicense: [\n---\n\n# Broken\n")
    answer = cse("eval", str(run), "--pairs", str(tmp_path / "other.tsv"))
    assert answer.code == 0 and "the scores are not in the card" in answer.err
    assert "# Broken" in path.read_text()
