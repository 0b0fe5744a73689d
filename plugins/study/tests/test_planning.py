"""Plans: every point is composed before anything runs, and a run has one key wherever it is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cse_study.definition.reading import find_study, read_study
from cse_study.definition.schema import Scores
from cse_study.execution.folder import StudyFolder, write_json
from cse_study.measures import by_gold, settings
from cse_study.planning import composing
from cse_study.planning.composing import Composer, Inputs, Wish, digest, filled
from cse_study.planning.plan import Plan, plan_study
from cse_study.planning.scoring import plan_scoring, showing
from cse_study.results.comparisons import baseline_of
from cse_study.results.rows import find_shown, rows_of
from cse_study.results.table import Results

from cse_core.errors import CseError
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.studies import plan_of, plugins

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
TUNED = """
summary = "Two methods, each at the best of two learning rates"
seeds = [1, 2, 3]
[settings]
dev = "@dev"
"train.max_steps" = 2
"data.limit" = 64
[[axes]]
name = "method"
values = { recipe = ["simcse", "esimcse"] }
[[axes]]
name = "lr"
values = { "train.lr" = [1e-5, 1e-4] }
[tune]
over = ["lr"]
"""
Planned = Callable[..., Plan]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("texts") / "texts.txt"
    file.write_text("".join(f"the {n} of them are here\n" for n in range(40)), encoding="utf-8")
    return file


@pytest.fixture
def planned(tmp_path: Path, texts: Path) -> Planned:
    def make(text: str = STUDY, wish: Wish | None = None) -> Plan:
        file = tmp_path / "mine.toml"
        file.write_text(text, encoding="utf-8")
        data = {"": [str(texts)]} if "@sentences" in text else {}
        given = Inputs(data=data, dev=["none"] if "@dev" in text else [])
        return plan_of(read_study(file), wish or Wish(inputs=given))

    return make


def test_every_point_has_a_run_for_each_seed_whose_key_is_of_its_content(
    planned: Planned, tmp_path: Path
) -> None:
    def inputs(name: str, content: str) -> Inputs:
        file = tmp_path / name
        file.write_text(content, encoding="utf-8")
        return Inputs(data={"": [str(file)]}, dev=["none"])

    first = inputs("a.txt", "one text\nanother text\n")
    plan = planned(wish=Wish(seeds=3, inputs=first))
    assert plan.seeds == (3, 4, 5)
    assert len(plan.cells) == len(plan.runs) == 6
    assert plan.cells[0].run.options["loss.infonce.temperature"] == 0.05
    assert plan.cells[1].run.options["train.seed"] == 4
    equal = inputs("b.txt", "one text\nanother text\n")
    again = planned(wish=Wish(seeds=(4,), inputs=equal))
    assert {cell.run.key for cell in again.cells} < set(plan.runs), "wherever its texts lie"
    other = planned(wish=Wish(seeds=3, inputs=inputs("a.txt", "one text\nanother word\n")))
    assert not set(other.runs) & set(plan.runs)


def test_collections_and_tables_with_options_count_by_their_content(tmp_path: Path) -> None:
    for name, text in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "corpus.jsonl").write_text(text)
        (tmp_path / f"{name}.tsv").write_text(text)
    for ending in ("", ".tsv", ".tsv?quotes=yes"):
        same, equal, other = (digest(str(tmp_path / f"{name}{ending}")) for name in "abc")
        assert same == equal != other
    assert digest(str(tmp_path / "a.tsv")) != digest(str(tmp_path / "a.tsv?quotes=yes"))


def test_what_changes_no_weight_is_not_in_a_key(planned: Planned) -> None:
    shared = planned(STUDY.replace("[0.05, 0.1]", "[0.05, 0.05]"))
    assert len(shared.cells) == 2 and len(shared.runs) == 1
    plain = planned()
    watched = STUDY.replace("[[axes]]", '"train.threads" = 1\n"train.log_steps" = 1\n[[axes]]')
    assert list(planned(watched).runs) == list(plain.runs)
    other = STUDY.replace("[[axes]]", '"train.lr" = 1e-3\n[[axes]]')
    assert not set(planned(other).runs) & set(plain.runs)


def test_an_option_that_is_new_leaves_keys_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that others have made are found again by the next version of the toolkit.

    If this fails, an option has come that every recipe file names: say in composing.py with which
    value it changes nothing, so that it is left out there. If the same settings give other weights
    now, write the new key here.
    """
    monkeypatch.setattr(composing, "model_digest", lambda *_: "model")
    file = tmp_path / "study.toml"
    file.write_text('summary = "One run"\nseeds = [1]\n[settings]\nrecipe = "simcse"\n')
    plan = plan_of(find_study(str(file), plugins()))
    assert list(plan.runs) == ["df47af237541c058"]


def test_places_files_beside_a_study_and_runs_without_training(
    planned: Planned, tmp_path: Path
) -> None:
    text = STUDY.replace("[[axes]]", '"train.lr" = 1e-4\n[[axes]]').partition("[[axes]]")[0]
    axis = '[[axes]]\nvalues = { "train.lr" = [1e-3, "@default"] }\n'
    lrs = [cell.run.options["train.lr"] for cell in planned(text + axis).cells]
    assert lrs == [1e-3, 1e-4]
    cells = planned(
        text.replace('recipe = "simcse"\n', "").replace("[3]", "[1, 2]")
        + '[[axes]]\nvalues = { recipe = ["@none", "simcse"] }\n'
    ).cells
    assert [cell.run.untrained for cell in cells] == [True, True, False, False]
    assert cells[0].run.key == cells[1].run.key and cells[0].run.steps == 0
    assert cells[0].run.recipe == {"model": {"name": "starter"}}
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "mine.toml").write_text('extends = "simcse"\n[train]\nbatch_size = 7\n')
    beside = planned(STUDY.replace('"simcse"', '"@file:parts/mine.toml"'))
    assert beside.cells[0].run.options["train.batch_size"] == 7


def test_runs_to_start_from_are_made_once_for_each_seed(planned: Planned, tmp_path: Path) -> None:
    text = STUDY.replace('model = "@model"', 'model = "@run:start"')
    plan = planned(text + '[runs.start]\nrecipe = "consert"\nmodel = "@model"\n')
    (run,) = plan.starts
    assert [cell.run.needs for cell in plan.cells] == [(run.key,)] * 2
    assert plan.cells[0].run.recipe["model"]["name"] == f"@run:{run.key}"
    assert next(iter(plan.runs)) == run.key
    in_round = text.replace("@run:start", "@run:start/rounds/2")
    with pytest.raises(CseError, match="has no rounds .*; write @run:start"):
        planned(in_round + '[runs.start]\nrecipe = "consert"\nmodel = "@model"\n')
    rows = [{"text": f"text {n} of many more", "document": n // 8} for n in range(40)]
    documents = tmp_path / "documents.jsonl"
    documents.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    of_round = planned(in_round + '[runs.start]\nrecipe = "infocse"\nmodel = "@model"\n'
                       f'data = "{documents}"\n"positives.idc.pairs" = 8\n')  # fmt: skip
    (mined,) = of_round.starts
    assert of_round.cells[0].run.needs == (mined.key,)
    assert of_round.cells[0].run.recipe["model"]["name"] == f"@run:{mined.key}/rounds/2"
    other = planned(text + '[runs.start]\nrecipe = "simcse"\nmodel = "@model"\n')
    assert not {cell.run.key for cell in other.cells} & {cell.run.key for cell in plan.cells}
    with pytest.raises(CseError, match="start from each other"):
        planned(text + '[runs.start]\nmodel = "@run:b"\n[runs.b]\nmodel = "@run:start"\n')


def test_all_points_that_cannot_be_composed_are_named(planned: Planned) -> None:
    with pytest.raises(CseError) as caught:
        planned(STUDY.replace("temperature", "temprature"))
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "mine, point 1 (temprature=0.05): loss.infonce.temprature" in lines[0]
    places = [("simcse", "a"), ("inverse-cloze", "b"), ("esimcse", "c"), ("mirror-bert", "d")]
    axis = "".join(f'[[axes.places]]\nlabel = "{n}"\nrecipe = "{r}"\n' for r, n in places)
    text = STUDY.replace('recipe = "simcse"\n', "").partition("[[axes]]")[0]
    with pytest.raises(CseError) as caught:
        planned(f'{text}[[axes]]\nname = "method"\n{axis}')
    lines = str(caught.value).splitlines()
    assert 'in its file: "data.columns.document" = "COLUMN"' in lines[0] and "--set" not in lines[0]
    assert lines[-1].endswith("3 of 4 points can be composed; run only those: --points 1,3,4")


def test_a_new_study_is_written_whole_and_checked(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("study", "new", "--methods", "simcse,consert", "--seeds", "2")
    for axis, line in (
        ("lr", "--axis: is not an option with values (got 'lr'); write OPTION=VALUE,VALUE"),
        ("rl=1", "--axis: is not an option with values (got 'rl=1'); did you mean train."),
        ("lr=2", "study, point 1 (method=simcse; lr=2): train.lr"),
        ("pool=mean,", "study, point 2 (method=simcse; pool="),
    ):
        printed = cse(*words, "--axis", axis)
        assert printed.code == 2 and printed.err.startswith(f"error: {line}"), printed.err
    assert not [*tmp_path.iterdir()]
    axes = ("--axis", "lr=1e-5,3e-5", "--axis", "train.precision=fp32,bf16")
    printed = cse(*words, *axes, "-o", "mine.toml")
    assert printed.code == 0, printed.err
    assert "mine.toml: 8 points, 16 runs" in printed.out
    study = read_study(tmp_path / "mine.toml")
    assert study.labels[:3] == ["simcse, 1e-5, fp32", "simcse, 1e-5, bf16", "simcse, 3e-5, fp32"]
    assert (study.study.within, study.study.seeds) == (["lr", "precision"], [1, 2])
    bases = [baseline_of(study, study.points, point).number for point in study.points]
    assert bases == [1, 2, 3, 4, 1, 2, 3, 4], "the first method at the same rate and format"
    assert study.points[4].settings == {
        "recipe": "consert", "train.lr": 1e-5, "train.precision": "fp32"
    }  # fmt: skip
    refused(cse(*words, *axes, "-o", "mine.toml"), "--out: is there already")
    alone = cse(*words, "-o", "alone.toml")
    assert "2 points, 4 runs" in alone.out and not read_study(tmp_path / "alone.toml").study.within


def test_an_option_of_one_method_is_shown_its_table(planned: Planned) -> None:
    text = STUDY.replace('recipe = "simcse"', '"negatives.queue.size" = 512')
    text = text.partition("[[axes]]")[0] + "[[axes]]\n"
    places = '[[axes.places]]\nlabel = "S"\nrecipe = "simcse"\n'
    queue = '[[axes.places]]\nlabel = "Q"\nrecipe = "mocose"\n'
    move = "move it from [settings] to a place that has it: [[axes.places]]"
    line = '"negatives.queue.size" = 512'
    for axis, hint in (
        (f'name = "method"\n{places}{queue}', f'{move} label = "Q", {line}'),
        ('values = { recipe = ["simcse", "mocose"] }',
         f'{move} label = "mocose", {line}, recipe = "mocose"'),
        (f'name = "method"\n{places}', 'in its file: negatives = ["+queue"]'),
    ):  # fmt: skip
        with pytest.raises(CseError) as caught:
            planned(text + axis)
        assert str(caught.value).splitlines()[0].endswith(f"named queue; {hint}")


def test_more_runs_than_a_study_can_have_are_refused_before_any_is_composed(
    planned: Planned,
) -> None:
    axis = '[[axes]]\nname = "{}"\nvalues = {{ "{}" = {} }}\n'
    many = axis.format("lr", "train.lr", [i / 1e6 for i in range(1, 1202)])
    for text, seeds, said in (
        (STUDY, 10**23, "100,000,000,000,000,000,000,000 seeds, and a study has at most 2,000"),
        (STUDY, 1_500, "3,000 runs"),
        (STUDY + many, None, "2,402 points"),
        (STUDY + many + many.replace("lr", "weight_decay"), None, "2,884,802 points"),
    ):
        with pytest.raises(CseError, match=f"cse study: {said}"):
            planned(text, wish=Wish(seeds=seeds))


def test_a_command_has_its_words_before_anything_runs(
    planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    plan = planned(text, Wish(inputs=Inputs(data={"": ["a.txt", "b.txt"]}), steps=2))
    calls = [cell.run for cell in plan.cells]
    start = ["bench", "--recipe", "simcse", "--data", "a.txt", "--data", "b.txt", "--steps=2"]
    assert list(calls[0].command) == start
    assert calls[1].command[-3:-1] == ("--seed", "2")
    function = 'summary = "x"\nkind = "function"\ncall = "cse_study.planning.composing:nothing"\n'
    for wrong, line in (
        (text.replace("{recipe}", "{recip}"), "no setting of this name"),
        (text.replace('"bench"', '"bensh"'), "no such command"),
        (function, "has no nothing"),
    ):
        with pytest.raises(CseError, match=line):
            planned(wrong)
    monkeypatch.chdir(tmp_path)
    found = set()
    for content in ("one", "two"):
        (tmp_path / "a.txt").write_text(content)
        inputs = Inputs.of((), ["a.txt"], ()).whole(plugins())
        found.add(planned(text, Wish(inputs=inputs)).cells[0].run.key)
    assert len(found) == 2, "a key is of what texts say"


def test_names_for_roles_are_checked(planned: Planned) -> None:
    text = STUDY.replace('data = "@sentences"', 'data = "@title"')
    for models, data, words in (
        (["a", "b"], [], "two models without a role"),
        (["large=a"], [], "no such role"),
        ([], ["titles=a.txt"], "did you mean"),
    ):
        with pytest.raises(CseError, match=words):
            planned(text, Wish(inputs=Inputs.of(models, data, ())))
    for inputs, words in (
        (Inputs(data={"other": ["a"]}), "no texts are named for @title; --data title=FILE"),
        (Inputs(models={"large": "a"}), "no model is named for @model; --model NAME"),
    ):
        with pytest.raises(CseError, match=words):
            filled(["@title", "@model"] if inputs.data else "@model", inputs)
    text = STUDY.replace("@model", "starter").replace("@sentences", "starter")
    for given in ((["a"], [], []), ([], ["a.txt"], []), ([], [], ["a.tsv"])):
        with pytest.raises(CseError, match="its file names what it reads.*got 'a"):
            planned(text.replace('"@dev"', '"none"'), Wish(inputs=Inputs.of(*given)))
    assert Inputs.of((), ["a.tsv?quotes=yes", "texts=b=c.tsv"], ()).data == {
        "": ["a.tsv?quotes=yes"], "texts": ["b=c.tsv"]
    }  # fmt: skip


def test_what_is_not_here_is_scored_on_the_starter(tmp_path: Path, texts: Path) -> None:
    scores = Scores(suites=["sts"], options={"pairs": ["stsb.dev"]})
    (tmp_path / "empty").mkdir()
    found = plan_scoring(scores, Wish(data_dir=tmp_path / "empty"), plugins())
    assert found.words == ("--data", "starter", "--no-baselines")
    assert len(found.notes) == 2
    (tmp_path / "stsb.dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    here = plan_scoring(scores, Wish(data_dir=tmp_path), plugins())
    assert here.words[:2] == ("--suite", "sts")
    assert str(tmp_path / "stsb.dev.tsv") in here.words
    assert here.key != found.key
    # Texts without a role train, and are not taken for titles.
    scores = Scores(options={"documents": "@titles", "labelled": "@sentences"})
    inputs = Inputs(data={"": [str(texts)]})
    found = plan_scoring(scores, Wish(inputs=inputs), plugins(), ["@sentences"])
    assert "--documents" not in found.words and "--labelled" in found.words
    assert found.notes == ("documents: left out; --data titles=FILE names texts for it",)
    named = Inputs(data={"": [str(texts)], "titles": ["mine.jsonl"]})
    assert inputs.has("@model", ()) and named.has("@titles", ())
    pairs = str(tmp_path / "stsb.dev.tsv")
    named = Inputs(data={"": [str(texts)], "titles": [str(texts)]})
    found = plan_scoring(scores, Wish(inputs=named, pairs=[pairs]), plugins(), ["@sentences"])
    assert "--pairs" in found.words and "--documents" in found.words, "both were asked for"
    assert "--labelled" not in found.words
    # The sets of named files are shown.
    study = find_study("cse/adapt", plugins())
    pairs = Inputs(data={"pairs": ["here/ours.tsv.gz", "more.csv"]})
    assert showing(study, pairs).study.scores.shown[2:] == ["ours", "more", "sts.mean"]
    assert showing(study, Inputs()).study.scores.shown[2:] == ["sts.mean"]
    two = Inputs(data={"collections": ["here/cisi", "there/cranfield"]})
    papers = showing(find_study("cse/papers", plugins()), two).study
    assert papers.scores.shown[2:] == ["cisi", "cranfield"]
    claims = [claim.score for claim in papers.claims if claim.better == "TSDAE"]
    assert claims == ["cisi", "cranfield"], "a claim of a role is one of each of its sets"
    found = find_shown("cisi", {"cisi.test.map": 1.0, "cisi.test.ndcg@10": 2.0}, {})
    assert found is not None and found.name == "cisi.test.ndcg@10"


def test_the_plan_is_shown_and_nothing_is_written(
    cse: Cse, tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY, encoding="utf-8")
    words = ("study", "mine.toml", "--dry-run", "--data", str(texts), "--dev", "none")
    printed = cse(*words)
    assert printed.code == 0, printed.err
    assert "2 new" in printed.out and "temperature=0.05" in printed.out
    found = json.loads(cse(*words, "--json").out)
    assert len(found["new"]) == 2
    assert [point["label"] for point in found["points"]] == ["0.05", "0.1"]
    assert not (tmp_path / "studies").exists()
    listed = json.loads(cse("study", "--list", "--json").out)["studies"]
    assert all({"name", "paper", "runs"} <= each.keys() for each in listed)
    assert [each["name"] for each in listed if each["error"]] == []
    entered = {each["name"]: (each["numbers"], each["missing"]) for each in listed}
    assert entered["mocose/table-7"] == (22, "") and entered["hicl/table-15"] == (192, "")
    assert entered["ifcl/supplement"][0] == 0 and "not published" in entered["ifcl/supplement"][1]


def test_all_seeds_follow_for_the_best_trial_of_each_method(
    planned: Planned, tmp_path: Path
) -> None:
    file, folder = tmp_path / "mine.toml", StudyFolder(tmp_path)
    composer = Composer(Wish(), plugins())
    file.write_text(TUNED)

    def plan() -> Plan:
        return plan_study(read_study(file), composer, folder)

    def end(number: int, score: float | None) -> None:
        for cell in plan().cells:
            if cell.point.number == number and score is None:
                write_json(folder.beside(cell.run.key, "failed.json"), {})
            elif cell.point.number == number:
                result = {"chosen_by": "mean", "score": score, "scores": {"a.dev.spearman": score}}
                write_json(folder.run(cell.run.key) / "result.json", result)

    first = plan()
    assert [(c.point.number, c.seed) for c in first.cells] == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert (first.undecided, first.shown, first.scored) == (2, first.points, frozenset())
    end(3, None)
    end(4, None)
    assert (plan().kept, plan().undecided) == (frozenset(), 2), "all failed: nothing is chosen"
    for number, score in ((1, 60.0), (2, 61.0), (3, 59.0)):
        end(number, score)
    found = plan()
    assert (found.kept, found.undecided) == ({2, 3}, 0)
    assert [point.label for point in found.shown] == ["simcse, 1e-4", "esimcse, 1e-5"]
    seeds = {n: [c.seed for c in found.cells if c.point.number == n] for n in (1, 2, 3, 4)}
    assert seeds == {1: [1], 2: [1, 2, 3], 3: [1, 2, 3], 4: [1]}
    assert found.scored == {c.run.key for c in found.cells if c.point.number in (2, 3)}
    # A model without training has no tuned setting.
    file.write_text(TUNED.replace('"simcse", "esimcse"', '"@none", "simcse"'))
    found = plan()
    results = Results(found.definition, found.points, rows_of(found, folder, None), folder, None)
    labels = [line.label for line in next(iter(results.tables.values()))]
    assert labels == ["none", "none", "simcse, 1e-5", "simcse, 1e-4"]
    (tmp_path / "own.txt").write_text("".join(f"the {n} of them are here\n" for n in range(64)))
    for dev in ('dev = "none"', f'data = "{tmp_path}/own.txt"'):
        with pytest.raises(CseError, match="no dev set"):
            planned(TUNED.replace('dev = "@dev"', dev), Wish())


def test_settings_of_a_recipe_for_encoders_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cse.plans.Installed", lambda left_out: plugins())  # texts are read once
    point = {
        "recipe": "is-cse",
        "options": ["train.batch_size", "train.lr", "loss.smoothed.weight"],
    }
    for family, hidden, values in (
        ("bert", 768, [64, 3e-5, 0.1]),
        ("bert", 1024, [64, 1e-5, "quarter-cosine(0.005,0.05)"]),
        ("roberta", 768, [512, 1e-5, 0.1]),
    ):
        found = settings({**point, "family": family, "hidden": hidden})
        assert list(found.values()) == values
    with pytest.raises(CseError, match="no such setting.*train.batchsize.*did you mean"):
        settings({**point, "family": "bert", "hidden": 768, "options": ["train.batchsize"]})


def test_cosines_in_groups_of_the_gold_score(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    rows = [("a", 0, 0.1), ("a", 0.9, 0.3), ("a", 2.5, 0.5), ("a", 4.1, 0.8), ("a", 5, 1.0)]
    lines = [f'{name}\t{gold}\t{cosine}\t"' for name, gold, cosine in rows]
    file.write_text("\n".join(["set\tgold\tcosine\tsentence1", *lines]) + "\n", encoding="utf-8")
    assert by_gold({"pairs": str(file), "groups": 5}) == pytest.approx({
        "range of cosines": 0.9, "group 1: mean": 0.2, "group 1: variance": 0.01,
        "group 3: mean": 0.5, "group 3: variance": 0, "group 5: mean": 0.9,
        "group 5: variance": 0.01,
    })  # fmt: skip
    assert by_gold({"pairs": str(tmp_path / "none.tsv"), "groups": 5}) == {}
