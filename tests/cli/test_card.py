"""The card of a trained model: what the hub reads, what people read, nothing of the machine."""

import re
import tomllib
from pathlib import Path

import pytest
from cse_study.results.table import Table
from cse_testkit import shared_encoder
from huggingface_hub import ModelCard

from cse_cli.cards.card import encoder_source, text_source
from cse_cli.cards.scores import keep_scores
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.markdown import code, markdown_table, plain
from cse_core.records import ComponentSpec, Paper, RecipeSpec
from tests.fixtures.command_line import Cse

SHORT = ("--train.batch_size", "8", "--train.max_steps", "2", "--train.device", "cpu", "-q")
PAIRS = "sentence1\tsentence2\tscore\na b\ta c\t1\na d\tb c\t3\nred x\tred y\t5\n"


def test_a_card_from_training_to_evaluation(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on files of one's own, with the twins loss beside SimCSE's recipe."""
    (tmp_path / "own.tsv").write_text(PAIRS)
    seen = cse("train", "-r", "simcse", "--loss", "twins", "--model", "starter", "--data",
               str(sentences), "--dev", str(tmp_path / "own.tsv"), *SHORT, "--out",
               str(tmp_path / "runs/mine"))  # fmt: skip
    assert seen.code == 0 and seen.err == "", seen
    run = tmp_path / "runs/mine"
    path = run / "model/README.md"
    card = ModelCard.load(path)
    data = card.data
    assert data.library_name == "sentence-transformers" and data.model_name == "simcse-starter"
    assert data.pipeline_tag == "sentence-similarity"
    assert data.base_model is None and data.datasets is None, "neither is on the hub"
    (result,) = data.eval_results or ()
    assert (result.dataset_name, result.metric_type) == ("own", "cos_sim_spearman")
    assert isinstance(result.metric_value, float)
    assert result.metric_args == {"max_length": 512, "pooling": "cls",
                                  "chose_the_checkpoint": True}  # fmt: skip
    for words in ("| recipe | `simcse` |", "`loss.twins`", "(CC BY-SA 3.0)", "not known",
                  "own.spearman` chose the checkpoint", "2 steps, batches of 8",
                  "cse train --recipe recipe.toml", "@inproceedings{gao-etal-2021-simcse",
                  "@article{xiao-etal-2023-identical"):  # fmt: skip
        assert words in card.text, words
    assert card.text.count("@") == 2, "every paper once"
    for file in (path, run / "model/recipe.toml"):
        assert str(tmp_path) not in file.read_text()
        assert str(sentences.parent) not in file.read_text()
    recipe = tomllib.loads((run / "model/recipe.toml").read_text())
    assert recipe["data"]["path"] == [sentences.name] and recipe["train"]["dev"] == ["own.tsv"]
    assert recipe["model"]["name"] == "starter"

    monkeypatch.chdir(tmp_path)
    text = re.sub(r"(?m)^lr = (.*)$", 'lr = "rate"', (run / "model/recipe.toml").read_text())
    Path("again.toml").write_text(f"{text}\n[params]\nrate = {recipe['train']['lr']}\n")
    seen = cse("train", "--recipe", "again.toml", "--out", "runs/again", "-q")
    assert seen.code == 0, seen.err
    assert "learning rate rate," in Path("runs/again/model/README.md").read_text()
    weights = [Path(f"runs/{r}/model/model.safetensors").read_bytes() for r in ("mine", "again")]
    assert weights[0] == weights[1], "the recipe beside the card repeats the run"

    path.write_text(path.read_text().replace("# A sentence encoder", "# My own words"))
    (tmp_path / "other.tsv").write_text(PAIRS)
    for flags in ((), (), ("--max-length", "8")):  # the same one twice is one
        assert cse("eval", str(run), "--pairs", str(tmp_path / "other.tsv"), *flags).code == 0
    now = ModelCard.load(path)
    results = now.data.eval_results or []
    assert [each.dataset_name for each in results] == ["own", "other", "other"]
    settings = [(each.metric_args or {}).get("encoder") for each in results]
    assert settings[0] is None and settings[1] != settings[2]
    assert "at most 8 tokens" in str(settings[2])
    assert "# My own words" in now.text and now.text.count("## Evaluation") == 1
    assert now.text.index("## Evaluation") < now.text.index("## Use it")
    assert now.text.count("@") == 2

    path.write_text("---\nlicense: [\n---\n\n# Broken\n")
    answer = cse("eval", str(run), "--pairs", str(tmp_path / "other.tsv"))
    assert answer.code == 0 and "the scores are not in the card" in answer.err
    assert "# Broken" in path.read_text()


def test_a_card_that_cannot_be_written_costs_a_warning(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cse_cli.cards.card.atomic_write", full)
    seen = cse("train", "--model", str(shared_encoder()), "--data", str(sentences), "--dev", "none",
               *SHORT[:-1], "--out", str(tmp_path / "run"))  # fmt: skip
    assert seen.code == 0 and "saved without its card: OSError" in seen.err
    for words in ("24 rows", "1 blank", "each step encodes online: anchor + positive"):
        assert words in seen.err
    model = tmp_path / "run/model"
    assert f"model: {model}" in seen.out and f"cse search {model.parent}" in seen.out
    assert (model / "modules.json").is_file()
    assert (tmp_path / "run/model/README.md").is_file(), "the short one"


def test_names_are_never_markup(tmp_path: Path) -> None:
    name = "x\n# Injected|<b>\x1b[31m`*_a_b"
    assert code(name) == "`x\\n# Injected|<b>\\x1b[31m*_a_b`"
    assert plain(name) == r"x\\n# Injected\|\<b>\\x1b[31m\`\*\_a_b"
    assert [plain(each) for each in ("# a", "- a", "+0.1 [a, b]", "[a](b)")] == [
        r"\# a", r"\- a", "+0.1 [a, b]", r"[a]\(b)"
    ]  # fmt: skip
    lines = Table([name], [[f"{name} **bold**"]]).markdown().split("\n")
    assert len(lines) == 3 and lines[2].endswith(" **bold** |")
    assert markdown_table(["a"], [[code(name)]]).count("\n") == 2
    evaluation = {"encoder": name, "version": "1", "results": {name: {"spearman": 1.0}}}
    (tmp_path / "model").mkdir()
    (tmp_path / "model/README.md").write_text("---\ntags: []\n---\n\n# Mine\n")
    (tmp_path / "run.toml").touch()
    keep_scores(tmp_path, evaluation)
    card = (tmp_path / "model/README.md").read_text()
    assert plain(name) in card and "\n# Injected" not in card.partition("# Mine")[2]
    for options, value in (({}, 80.0), ({"truncate_dim": 2}, 31.0), ({"truncate_dim": 2}, 32.0)):
        made = {"encoder": "e", "version": "1", "results": {"a": {"spearman": value}}}
        keep_scores(tmp_path, {**made, "options": options})
    card = (tmp_path / "model/README.md").read_text()
    assert "| 80.00 | e |" in card and "| 32.00 | e; truncate_dim 2 |" in card
    assert "31.00" not in card


def test_sources_and_their_licences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Installed().registry
    (tmp_path / "own.txt").touch()
    for name, source in (
        (str(tmp_path / "own.txt"), ("own.txt", False, "")),
        ("starter", ("starter", False, "Apache-2.0")),
        ("owner/texts:en@dev", ("owner/texts", True, "")),
        (f"owner/texts#{'a' * 40}", ("owner/texts", True, "")),
    ):
        assert text_source(name, registry) == source, name
    assert not text_source("gone/away.txt.gz", registry).on_hub
    assert encoder_source("bert-base-uncased", {}, registry).on_hub
    assert "CC BY-SA" in encoder_source("starter", {}, registry).licence
    trained = encoder_source(str(tmp_path), {"origin": "starter"}, registry)
    assert trained.name == tmp_path.name and "CC BY-SA" in trained.licence

    page = tmp_path / "README.md"  # the card that loading a data set left in the cache
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_, **__: str(page))
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
