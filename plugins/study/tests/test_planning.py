"""Plans: every point is composed before anything runs, and a run has one key wherever it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cse_study.definition.reading import find_study, read_study
from cse_study.definition.schema import Scores
from cse_study.planning import keys
from cse_study.planning.composing import Composer
from cse_study.planning.inputs import Inputs
from cse_study.planning.plan import Plan, Wish, plan_study
from cse_study.planning.scoring import ScoreWish, plan_scoring, showing

from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError
from tests.fixtures.command_line import Cse

STUDY = """
summary = "x"
seeds = [3]
[settings]
recipe = "simcse"
model = "@model"
data = "@sentences"
dev = "@dev"
[[axes]]
values = { "loss.infonce.temperature" = [0.05, 0.1] }
"""
Planned = Callable[..., Plan]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("texts") / "texts.txt"
    file.write_text("".join(f"the {n} of them are here\n" for n in range(40)), encoding="utf-8")
    return file


@pytest.fixture
def planned(tmp_path: Path, texts: Path) -> Planned:
    def make(text: str = STUDY, wish: Wish | None = None, **inputs: object) -> Plan:
        file = tmp_path / "mine.toml"
        file.write_text(text, encoding="utf-8")
        given = Inputs(data={"": [str(texts)]}, dev=["none"])
        return plan_study(read_study(file), wish or Wish(inputs=given))

    return make


def test_every_point_has_a_run_for_each_seed(planned: Planned, texts: Path) -> None:
    inputs = Inputs(data={"": [str(texts)]}, dev=["none"])
    plan = planned(wish=Wish(seeds=3, inputs=inputs))
    assert plan.seeds == (3, 4, 5)
    assert len(plan.cells) == len(plan.runs) == 6
    assert plan.cells[0].run.options["loss.infonce.temperature"] == 0.05
    assert plan.cells[1].run.options["train.seed"] == 4
    again = planned(wish=Wish(seeds=(4,), inputs=inputs))
    assert {cell.run.key for cell in again.cells} < set(plan.runs)


def test_points_with_equal_settings_share_a_run(planned: Planned) -> None:
    plan = planned(STUDY.replace("[0.05, 0.1]", "[0.05, 0.05]"))
    assert len(plan.cells) == 2 and len(plan.runs) == 1 and plan.shared == 1


def test_a_key_is_of_content_and_not_of_places(planned: Planned, tmp_path: Path) -> None:
    def keys(name: str, content: str) -> list[str]:
        file = tmp_path / name
        file.write_text(content, encoding="utf-8")
        plan = planned(wish=Wish(inputs=Inputs(data={"": [str(file)]}, dev=["none"])))
        return list(plan.runs)

    first = keys("a.txt", "one text\nanother text\n")
    assert keys("b.txt", "one text\nanother text\n") == first
    assert not set(keys("a.txt", "one text\nanother word\n")) & set(first)


def test_how_a_run_is_watched_is_not_in_its_key(planned: Planned) -> None:
    watched = STUDY.replace("[[axes]]", '"train.threads" = 1\n"train.log_steps" = 1\n[[axes]]')
    assert list(planned(watched).runs) == list(planned().runs)
    other = STUDY.replace("[[axes]]", '"train.lr" = 1e-3\n[[axes]]')
    assert not set(planned(other).runs) & set(planned().runs)


def test_runs_to_start_from_are_made_once_for_each_seed(planned: Planned) -> None:
    text = STUDY.replace('model = "@model"', 'model = "@run:start"')
    plan = planned(text + '[runs.start]\nrecipe = "consert"\nmodel = "@model"\n')
    assert len(plan.starts) == 1
    start = plan.starts[0].key
    assert [cell.run.start for cell in plan.cells] == [start, start]
    assert plan.cells[0].run.recipe["model"]["name"] == f"@run:{start}"
    assert next(iter(plan.runs)) == start
    other = planned(text + '[runs.start]\nrecipe = "simcse"\nmodel = "@model"\n')
    assert not {cell.run.key for cell in other.cells} & {cell.run.key for cell in plan.cells}


def test_runs_that_start_from_each_other_are_refused(planned: Planned) -> None:
    text = STUDY.replace('model = "@model"', 'model = "@run:a"')
    with pytest.raises(CseError, match="start from each other"):
        planned(text + '[runs.a]\nmodel = "@run:b"\n[runs.b]\nmodel = "@run:a"\n')


def test_all_points_that_cannot_be_composed_are_named(planned: Planned) -> None:
    text = STUDY.replace("temperature", "temprature")
    with pytest.raises(CseError) as caught:
        planned(text)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "mine, point 1 (temprature=0.05): loss.infonce.temprature" in lines[0]


def test_the_points_that_can_be_composed_are_named_beside_those_that_cannot(
    planned: Planned,
) -> None:
    places = [("simcse", "a"), ("inverse-cloze", "b"), ("esimcse", "c"), ("mirror-bert", "d")]
    axis = "".join(f'[[axes.places]]\nlabel = "{n}"\nrecipe = "{r}"\n' for r, n in places)
    text = STUDY.replace('recipe = "simcse"\n', "").partition("[[axes]]")[0]
    with pytest.raises(CseError) as caught:
        planned(f'{text}[[axes]]\nname = "method"\n{axis}')
    lines = str(caught.value).splitlines()
    assert 'in its file: "data.columns.document" = "COLUMN"' in lines[0] and "--set" not in lines[0]
    assert lines[-1].endswith("3 of 4 points can be composed; run those alone: --points 1,3-4")


def test_a_command_has_its_words_before_anything_runs(planned: Planned) -> None:
    text = """
summary = "x"
kind = "command"
command = ["bench", "--recipe", "{recipe}", "--data", "{data}", "{more}", "--steps={steps}"]
[settings]
data = "@sentences"
steps = 5
[[axes]]
values = { recipe = ["simcse", "mocose"], more = [[], ["--seed", "2"]] }
"""
    inputs = Inputs(data={"": ["a.txt", "b.txt"]})
    calls = planned(text, Wish(inputs=inputs, steps=2)).calls
    start = ["bench", "--recipe", "simcse", "--data", "a.txt", "--data", "b.txt", "--steps=2"]
    assert list(calls[0].command) == start
    assert calls[1].command[-3:-1] == ("--seed", "2")
    with pytest.raises(CseError, match="no setting of this name"):
        planned(text.replace("{recipe}", "{recip}"))
    with pytest.raises(CseError, match="no such command"):
        planned(text.replace('"bench"', '"bensh"'))


def test_a_command_s_key_is_of_what_its_texts_say(
    planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        'summary = "x"\nkind = "command"\ncommand = ["inspect", "{data}", "--json"]\n'
        '[settings]\ndata = "@sentences"\n'
    )
    monkeypatch.chdir(tmp_path)
    keys_seen = set()
    for content in ("one", "two"):
        (tmp_path / "a.txt").write_text(content)
        inputs = Inputs.of((), ["a.txt"], ()).whole(Installed().registry)
        keys_seen.add(planned(text, Wish(inputs=inputs)).calls[0].key)
    assert len(keys_seen) == 2


def test_a_function_that_is_not_there_is_refused(planned: Planned) -> None:
    text = 'summary = "x"\nkind = "function"\ncall = "cse_study.planning.keys:nothing"\n'
    with pytest.raises(CseError, match="has no nothing"):
        planned(text)


@pytest.mark.parametrize(
    ("models", "data", "words"),
    [
        (["a", "b"], [], "two models without a role"),
        (["large=a"], [], "no such role"),
        ([], ["titles=a.txt"], "did you mean"),
    ],
)
def test_names_for_roles_are_checked(
    planned: Planned, models: list[str], data: list[str], words: str
) -> None:
    with pytest.raises(CseError, match=words):
        planned(
            STUDY.replace('data = "@sentences"', 'data = "@title"'),
            Wish(inputs=Inputs.of(models, data, ())),
        )


def test_texts_are_read_once_for_many_studies(tmp_path: Path, texts: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(STUDY, encoding="utf-8")
    inputs = Inputs(data={"": [str(texts)]}, dev=["none"])
    composer = Composer(inputs)
    wish = Wish(inputs=inputs)
    first = plan_study(read_study(file), wish, composer)
    assert list(plan_study(read_study(file), wish, composer).runs) == list(first.runs)


def test_what_is_not_here_is_scored_on_the_starter(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(STUDY + '[scores]\nsuites = ["sts"]\noptions = { pairs = ["stsb.dev"] }\n')
    scores, plugins = read_study(file).study.scores, Installed()
    empty = tmp_path / "empty"
    empty.mkdir()
    wish = ScoreWish(data_dir=empty)
    found = plan_scoring(scores, wish, Inputs(), plugins)
    assert found.scoring.words == ("--data", "starter", "--no-baselines")
    assert len(found.notes) == 2
    (tmp_path / "stsb.dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    here = plan_scoring(scores, ScoreWish(data_dir=tmp_path), Inputs(), plugins)
    assert here.scoring.words[:2] == ("--suite", "sts")
    assert str(tmp_path / "stsb.dev.tsv") in here.scoring.words
    assert here.scoring.key != found.scoring.key


def test_texts_without_a_role_train_and_are_not_taken_for_titles(texts: Path) -> None:
    scores, plugins = Scores(options={"documents": "@titles", "idf": "@sentences"}), Installed()
    inputs = Inputs(data={"": [str(texts)]})
    found = plan_scoring(scores, ScoreWish(), inputs, plugins, ["@sentences"])
    assert "--documents" not in found.scoring.words and "--idf" in found.scoring.words
    assert found.notes == ("documents: left out; --data titles=FILE names texts for it",)
    named = Inputs(data={"": [str(texts)], "titles": ["mine.jsonl"]})
    assert inputs.has("@model", ()) and named.has("@titles", ())


def test_sets_of_named_files_are_shown() -> None:
    study = find_study("cse/adapt", Installed())
    pairs = Inputs(data={"pairs": ["here/ours.tsv.gz", "more.csv"]})
    assert showing(study, pairs).study.scores.columns[2:] == ["ours", "more", "sts.mean"]
    assert showing(study, Inputs()).study.scores.columns[2:] == ["sts.mean"]


def test_the_plan_is_shown_and_nothing_is_written(
    cse: Cse, tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(STUDY, encoding="utf-8")
    words = ("study", str(file), "--dry-run", "--data", str(texts), "--dev", "none")
    printed = cse(*words)
    assert printed.code == 0, printed.err
    assert "2 new" in printed.out and "temperature=0.05" in printed.out
    found = json.loads(cse(*words, "--json").out)
    assert len(found["new"]) == 2 and found["seconds"] is None
    assert [point["label"] for point in found["points"]] == ["0.05", "0.1"]
    assert not (tmp_path / "studies").exists()


def test_installed_studies_are_listed(cse: Cse) -> None:
    found = json.loads(cse("study", "--list", "--json").out)["studies"]
    assert all({"name", "paper", "runs"} <= each.keys() for each in found)
    assert [each["name"] for each in found if each["error"]] == []


def test_an_option_that_is_new_leaves_keys_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that others have made are found again by the next version of the toolkit.

    If this fails, an option has come that every recipe file names: say in keys.py with which value
    it changes nothing, so that it is left out there. If the same settings give other weights now,
    write the new key here.
    """
    monkeypatch.setattr(keys, "model_digest", lambda *_: "model")
    monkeypatch.setattr(keys, "_data", lambda *_: {})
    file = tmp_path / "study.toml"
    file.write_text('summary = "One run"\nseeds = [1]\n[settings]\nrecipe = "simcse"\n')
    plan = plan_study(find_study(str(file), Installed()), Wish())
    assert list(plan.runs) == ["9637f3e3f1f64781"]
