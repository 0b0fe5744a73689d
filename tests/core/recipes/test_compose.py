from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cse_cli.options.paths import option_paths
from cse_cli.training.feeds import feeds
from cse_core.errors import CseErrors
from cse_core.recipes.settings import DataOptions
from cse_core.training.recipe_file import as_recipe
from tests.fixtures.parts import BERT, ROBERTA, compose, paths, refused


def options(composition: Any, path: str) -> Any:
    return next(part for part in composition.parts if part.path == path).options


def recipe(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_without_a_recipe_the_default_is_composed() -> None:
    made = compose()
    assert paths(made) == ["pool.cls", "pool.mlp", "loss.infonce", "branch.online"]
    assert (made.recipe, made.model.name, made.data.path) == (None, "starter", ("starter",))
    assert options(made, "pool.mlp").keep == "train"
    (note,) = made.notes
    assert note == "the default recipe: when starter true: train.lr = 0.0001; inference.pool = mean"
    assert made.inference_pool is not None and made.inference_pool.use == "mean"
    assert made.warnings == ()


def test_what_the_default_says_of_the_starter_is_not_taken_over_by_recipes(tmp_path: Path) -> None:
    made = compose(recipe(tmp_path, '[[loss]]\nuse = "infonce"\n'))
    assert (made.inference.pool, made.notes) == (None, ())


def test_another_pooler_encodes_after_training_too() -> None:
    made = compose(kinds={"pool": ["cls"]})
    assert made.inference_pool is None
    assert "--pool drops inference.pool = mean of the recipe" in made.notes
    assert compose(kinds={"pool": ["+extra"]}).inference_pool is not None


# Kind flags


def test_a_kind_flag_replaces_adds_and_takes_away() -> None:
    replaced = compose(kinds={"loss": ["margin"], "aug": ["negate", "nudge"]})
    assert paths(replaced, ["aug", "loss"]) == ["aug.negate", "aug.nudge", "loss.margin"]
    assert "--loss replaces infonce of the recipe" in replaced.notes
    added = compose(kinds={"loss": ["+infonce:second"], "aug": ["+nudge"]})
    assert paths(added, ["aug", "loss"]) == ["aug.nudge", "loss.infonce", "loss.second"]
    assert not any("replaces" in note for note in added.notes)
    assert paths(compose(kinds={"pool": ["~mlp"]}), ["pool"]) == ["pool.cls"]
    swapped = compose(kinds={"pool": ["~cls", "+mean", "+extra"]})
    assert paths(swapped, ["pool"]) == ["pool.mean", "pool.mlp", "pool.extra"]
    mixed = compose(kinds={"pool": ["mean", "+extra"]})
    assert paths(mixed, ["pool"]) == ["pool.mean", "pool.extra"]


def test_a_name_of_two_distributions_must_be_qualified() -> None:
    made = compose(kinds={"aug": ["cse-alpha/repeat"]})
    assert (made.of("aug")[0].use, made.of("aug")[0].distribution) == ("repeat", "cse-alpha")
    assert as_recipe(made)["aug"][0]["use"] == "cse-alpha/repeat"
    (line,) = refused(kinds={"aug": ["repeat"]})
    assert "cse-alpha 0.1.0 and cse-beta 0.1.0" in line
    assert "write cse-alpha/repeat or cse-beta/repeat" in line


def test_wrong_kind_flags_are_all_told_at_once() -> None:
    lines = refused(kinds={"loss": ["~infonc", "+infonce"], "pool": ["~x"]})
    assert len(lines) == 3
    assert "no loss of this name to remove (got 'infonc'); did you mean infonce?" in lines[0]
    assert "another loss has this name (got 'infonce')" in lines[1]
    assert "--loss +infonce:second" in lines[1]
    lines = refused(kinds={"loss": ["infonec"], "aug": ["queue"]})
    assert lines[0].startswith("--aug: unknown ") and "(got 'queue')" in lines[0]
    assert "did you mean infonce?" in lines[1]


# Settings


def test_settings_are_read_by_the_type_of_their_option(tmp_path: Path) -> None:
    path = recipe(tmp_path, '[[aug]]\nuse = "cse-alpha/repeat"\n[[negatives]]\nuse = "ring"')
    made = compose(
        path,
        "train.lr=1e-4",
        "train.batch_size = 8",
        "train.betas=[0.9, 0.98]",
        "train.chunk_size=4",
        "train.dev=a.tsv",
        "data.path=[a.txt, b.txt]",
        "data.columns.text=sentence1",
        "data.columns.positive=2",
        "data.shuffle=false",
        "aug.repeat.words=the",
        "aug.repeat.limits=[2,4]",
        "negatives.ring.label=2024",
        "negatives.ring.branch=none",
        "loss.infonce.negatives=ring",
        "loss.infonce.weight=linear(0, 1)",
        "views.positive.column=text",
        "model.dropout=none",
        "train.select=none",
    )
    train = made.train
    assert (train.lr, train.batch_size, train.chunk_size) == (1e-4, 8, 4)
    assert (train.betas, train.dev, train.select) == ((0.9, 0.98), ("a.tsv",), None)
    assert made.data.path == ("a.txt", "b.txt")
    assert made.data.columns == {"text": "sentence1", "positive": "2"}
    assert made.data.shuffle is False
    assert (options(made, "aug.repeat").words, options(made, "aug.repeat").limits) == (
        ("the",),
        (2, 4),
    )
    ring = options(made, "negatives.ring")
    assert (ring.label, ring.branch) == ("2024", None)
    assert options(made, "loss.infonce").negatives == ("ring",)
    assert str(options(made, "loss.infonce").weight) == "linear(0,1)"


def test_flags_of_their_own_stand_before_settings() -> None:
    made = compose(None, "train.seed=3", model="x/y", data=["a", "b"], dev=["d"])
    assert (made.model.name, made.data.path, made.train.dev) == ("x/y", ("a", "b"), ("d",))
    assert compose(None, "model.name=z", model="x/y").model.name == "z"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("train.lr", "--set: is not PATH=VALUE (got 'train.lr')"),
        ("trian.lr=1", "trian.lr: unknown option; did you mean train.lr"),
        ("train=1", "train: names no option; write train.OPTION=VALUE"),
        ("loss.infonce=1", "is not an option of a part"),
        ("train.leaning=1", "train.leaning: unknown option (got '1')"),
        ("train.batch-size=1", "did you mean batch_size?"),
        ("model.batch_size=1", "model.batch_size: unknown option (got '1'); "
         "did you mean train.batch_size?"),
        ("loss.infonse.temperature=1", "did you mean loss.infonce.temperature?"),
        ("loss.infonce.temprature=1", "loss.infonce.temprature: unknown option (got '1'); "
         "did you mean temperature?"),
        ("negatives.ring.size=1", "this run has no negative store named ring; "
         "add it: --negatives +ring"),
        ("negatives.rung.size=1", "this run has no negative store: add one with --negatives NAME"),
        ("params.alpha=1", "params.alpha: the recipe has no such parameter"),
        ("views.positve.branch=online", "views.positve: this run has no such view; "
         "did you mean positive?"),
        ("train.lr=-1", "train.lr: must be a number >= 0 and <= 1 (got '-1')"),
        ("train.lr=fast", "train.lr: must be a number >= 0 and <= 1 (got 'fast')"),
        ("train.lr=true", "train.lr: must be a number >= 0 and <= 1 (got True); "
         "a flag without a value means true: type --train.lr VALUE"),
        ("train.lr=inf", "train.lr: must be a finite number"),
        ("train.batch_size=1.5", "train.batch_size: must be an integer >= 1"),
        ("train.batch_size=0", "train.batch_size: must be an integer >= 1 (got '0')"),
        ("train.schedule=liner", "must be one of linear, cosine, constant (got 'liner')"),
        ("train.betas=[0.9]", "train.betas: must be 2 numbers"),
        ("train.eps=0", "train.eps: must be a number > 0"),
        ("model.dropout=1", "model.dropout: must be a number >= 0 and < 1"),
        ("data.shuffle=maybe", "data.shuffle: must be true or false (got 'maybe')"),
        ("loss.infonce.temperature=0", "loss.infonce.temperature: must be a number >= 0.0001"),
        ("loss.infonce.weight=steep(0,1)", "loss.infonce.weight: must be a number or schedule"),
        ("loss.infonce.weight=quarter-cosine(1,0)", "needs a <= b"),
        ("data.columns=3", "data.columns: must be a table"),
        ("branch.ema.decay=2", "branch.ema.decay: must stay between 0 and 1"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_in_one_line(text: str, line: str) -> None:
    (printed,) = refused(None, text)
    assert line in printed
    assert "pydantic" not in printed and "http" not in printed and "Input" not in printed


def test_every_mistake_is_told_at_once_with_its_path(tmp_path: Path) -> None:
    path = recipe(
        tmp_path,
        """
        [params]
        alpha = "1 - gama"
        [train]
        lr = "fast"
        [[aug]]
        use = "nudge"
        epsilon = 2
        [[negatives]]
        use = "ring"
        size = 4
        first = 5
        [[loss]]
        use = "unheard"
        """,
    )
    lines = refused(path, "train.epochs=0", "aug.nudge.epsilom=1")
    printed = "\n".join(lines)
    assert len(lines) == 7
    assert "params.alpha: unknown parameter (got 'gama')" in printed
    assert "train.lr: unknown parameter (got 'fast')" in printed
    assert "train.epochs: must be a number > 0 (got '0')" in printed
    assert "aug.nudge.epsilon: must be a number > 0 and <= 1 (got 2)" in printed
    assert "aug.nudge.epsilom: unknown option (got '1'); did you mean epsilon?" in printed
    assert "negatives.ring: first must not be above size" in printed
    assert "unknown loss (got 'unheard')" in printed
    with pytest.raises(CseErrors):
        compose(path, "train.epochs=0")


def test_params_may_build_on_each_other_and_reach_every_number(tmp_path: Path) -> None:
    path = recipe(
        tmp_path,
        """
        [params]
        alpha = 0.25
        beta = "1 - alpha"
        [train]
        batch_size = "4 * 16"
        lr = "alpha / 1000"
        betas = ["beta", 0.98]
        [[loss]]
        use = "infonce"
        weight = "cosine(alpha, beta)"
        temperature = "alpha / 5"
        """,
    )
    made = compose(path)
    assert made.params == {"alpha": 0.25, "beta": 0.75}
    assert (made.train.batch_size, made.train.lr, made.train.betas) == (64, 2.5e-4, (0.75, 0.98))
    loss = options(made, "loss.infonce")
    assert (str(loss.weight), loss.temperature) == ("cosine(0.25,0.75)", 0.05)
    changed = compose(path, "params.alpha=0.5", "loss.infonce.temperature=alpha*2")
    assert changed.params == {"alpha": 0.5, "beta": 0.5}
    assert options(changed, "loss.infonce").temperature == 1.0
    (line,) = refused(path, "train.batch_size=alpha*3")
    assert line.startswith("train.batch_size: must be an integer >= 1")
    (line,) = refused(path, "train.lr=alpha-1")
    assert line == "train.lr: must be a number >= 0 and <= 1 (got 'alpha-1 = -0.75')"
    (line,) = refused(path, "train.lr=alpa")
    assert line.endswith("(got 'alpa'); did you mean alpha?")


# Poolers


def test_pooler_stages_are_counted_and_ordered() -> None:
    made = compose(kinds={"pool": ["+window"]})
    assert paths(made, ["pool"]) == ["pool.window", "pool.cls", "pool.mlp"]
    assert "no row pooler turns token states into vectors" in refused(kinds={"pool": ["mlp"]})[0]
    assert "--pool +cls" in refused(kinds={"pool": ["mlp"]})[0]
    (line,) = refused(kinds={"pool": ["+mean"]})
    assert "one row pooler, not cls and mean; remove 1, for instance --pool ~cls" in line
    (line,) = refused(kinds={"pool": ["+window", "+window:other"]})
    assert "one slice stage, not window and other" in line


def test_inference_names_an_installed_pooler_heads_and_slicing() -> None:
    made = compose(None, "inference.pool=mean", "inference.heads=mlp")
    assert made.inference_pool is not None and made.inference_pool.path == "pool.mean"
    assert compose(None, "inference.pool=cls").inference_pool is None
    assert compose(None, "inference.slice=true", kinds={"pool": ["+window"]}).inference.slice
    assert "did you mean mean?" in refused(None, "inference.pool=maen")[0]
    assert "unknown row pooler" in refused(None, "inference.pool=mlp")[0]
    assert "did you mean mlp?" in refused(None, "inference.heads=mpl")[0]
    (line,) = refused(None, "inference.slice=true")
    assert line.endswith("add --pool +window")


# What parts require and provide


def test_a_missing_view_names_who_would_make_it(tmp_path: Path) -> None:
    (line,) = refused(kinds={"loss": ["margin"]})
    assert line.startswith(
        "loss.margin: needs the view 'soft_negative' or the view 'negative', which"
    )
    assert "--aug +deny (cse-beta 0.1.0) or --aug +negate (cse-alpha 0.1.0)" in line
    assert "--aug +negation (pip install cse-sncse)" in line
    made = compose(kinds={"loss": ["margin"], "aug": ["negate"]})
    assert [view.name for view in made.views] == [
        "anchor", "positive", "identical", "soft_negative"
    ]  # fmt: skip
    negatives = replace(BERT, columns=("text", "negative"))
    assert compose(kinds={"loss": ["margin"]}, facts=negatives).view("negative") is not None


def test_a_missing_level_names_the_part_that_slices() -> None:
    (line,) = refused(None, "loss.infonce.level=segment")
    assert line.startswith("loss.infonce.level: no part of this run makes rows of this level")
    assert "--pool +window (cse-alpha 0.1.0)" in line
    made = compose(None, "loss.infonce.level=segment", kinds={"pool": ["+window"]})
    assert "positive -> loss.infonce (level segment, in-batch: target)" in feeds(made)
    assert "did you mean sentence?" in refused(None, "loss.infonce.level=sentense")[0]


def test_columns_are_checked_where_they_are_known() -> None:
    (line,) = refused(kinds={"aug": ["foreign"]})
    assert (
        "needs the column 'fraternal', which this run does not have; say which column of text"
        in line
    )
    assert line.endswith("--set data.columns.fraternal=COLUMN, or write it")
    for columns in (None, ("text", "fraternal")):
        compose(kinds={"aug": ["foreign"]}, facts=replace(BERT, columns=columns))
    (line,) = refused(None, "views.positive.column=postive",
                      facts=replace(BERT, columns=("text", "positive")))  # fmt: skip
    assert line.startswith("views.positive.column: the data has no column 'postive'")
    assert line.endswith("did you mean positive?")
    (line,) = refused(None, "views.positive.column=positive")
    assert line.endswith("say which column holds it: --set data.columns.positive=COLUMN")
    (line,) = refused(facts=replace(BERT, columns=("sentence1", "score")))
    assert line == (
        "data.columns.text: the data has no column 'text'; it has sentence1, score; "
        "say which column holds it: --set data.columns.text=COLUMN"
    )


def test_vocabularies_are_checked_where_they_are_known() -> None:
    (line,) = refused(kinds={"aug": ["recase"]})
    assert "needs a vocabulary that keeps capital letters, which this run does not have" in line
    assert "--aug ~recase" in line
    compose(kinds={"aug": ["recase"]}, facts=ROBERTA)
    compose(kinds={"aug": ["recase"]}, facts=replace(BERT, cased=None))
    (line,) = refused(kinds={"pool": ["prompt"]}, facts=replace(BERT, mask_token=False))
    assert "needs a mask token in the vocabulary, which this run does not have" in line
    compose(kinds={"pool": ["prompt"]})


def test_pairs_come_from_a_miner_of_rounds_or_a_column() -> None:
    (line,) = refused(kinds={"loss": ["pull"]})
    assert (
        "needs the pairs of the current round" in line
        and "--positives +pairs (cse-alpha 0.1.0)" in line
    )
    compose(kinds={"loss": ["pull"], "positives": ["pairs"]})
    compose(kinds={"loss": ["pull"]}, facts=replace(BERT, columns=("text", "positive")))
    positive = compose(kinds={"positives": ["pairs"]}).view("positive")
    assert positive is not None and positive.column == "positive"


def test_two_parts_that_make_one_thing_are_refused(tmp_path: Path) -> None:
    (line,) = refused(kinds={"aug": ["negate", "deny"]})
    assert "aug.negate and aug.deny both make the view 'soft_negative'" in line
    (line,) = refused(kinds={"positives": ["near", "near:again"]})
    assert "positives.near and positives.again both make the positives 'neighbours'" in line
    assert "remove one, for instance --positives ~again" in line
    made = compose(
        recipe(tmp_path, '[[positives]]\nuse="near"\n[[positives]]\nuse="near"\nname="b"'),
        "positives.b.group=others",
    )
    assert paths(made, ["positives"]) == ["positives.near", "positives.b"]
    (line,) = refused(
        None,
        "positives.near.group=soft_negative",
        kinds={"positives": ["near"], "aug": ["negate"]},
    )
    assert "aug.negate makes a view and positives.near a group" in line


def test_a_part_may_provide_what_has_the_name_of_its_instance() -> None:
    made = compose(
        None,
        "positives.near.group={name}",
        "positives.again.group={name}",
        "loss.infonce.target=again",
        kinds={"positives": ["near", "near:again"]},
    )
    assert set(made.groups) == {"near", "again"}


def test_a_loss_has_the_level_of_the_miner_of_its_target() -> None:
    kinds = {"positives": ["near"], "pool": ["+window"]}
    sets = ("loss.infonce.target=neighbours", "loss.infonce.level=segment")
    (line,) = refused(None, *sets, kinds=kinds)
    assert line == (
        "loss.infonce.level: it is never computed: positives.near finds 'neighbours' at level "
        "sentence (got 'segment'); --loss.infonce.level sentence, or --positives.near.level segment"
    )
    compose(None, *sets, "positives.near.level=segment", kinds=kinds)


def test_a_view_that_a_part_makes_reads_no_column() -> None:
    (line,) = refused(None, "views.soft_negative.column=text", kinds={"aug": ["negate"]})
    assert line == (
        "views.soft_negative.column: aug.negate makes this view, which reads no column (got "
        "'text'); remove it, or the part: --aug ~NAME"
    )


def test_a_recipe_of_a_run_keeps_whose_parts_it_has(tmp_path: Path) -> None:
    made = as_recipe(compose(kinds={"aug": ["cse-beta/repeat"]}))
    assert [item["use"] for item in made["aug"]] == ["cse-beta/repeat"]
    assert [item["use"] for item in made["loss"]] == ["infonce"]
    text = '[versions]\ncse-gone = "0.3"\n[[aug]]\nuse = "cse-gone/fade"\n'
    (line,) = refused(recipe(tmp_path, text))
    assert line == (
        "aug.fade: part of cse-gone 0.3, which is not installed (got 'cse-gone/fade'); "
        "pip install cse-gone==0.3"
    )


def test_targets_are_views_or_groups() -> None:
    made = compose(None, "loss.infonce.target=neighbours", kinds={"positives": ["near"]})
    assert [view.name for view in made.views] == ["anchor"]
    assert "positives.near (group neighbours) -> loss.infonce (in-batch: target)" in feeds(made)
    (line,) = refused(None, "loss.infonce.target=postive")
    assert "neither a view of this run nor a group that a miner finds" in line
    assert line.endswith("did you mean positive?")
    assert compose(None, "loss.infonce.target=identical").view("positive") is None


def test_views_that_augmenters_and_stores_name_must_be_there() -> None:
    (line,) = refused(None, "aug.nudge.views=[positve]", kinds={"aug": ["nudge"]})
    assert line.startswith("aug.nudge.views: this run has no such view (got 'positve')")
    assert line.endswith("did you mean positive?")
    (line,) = refused(None, "negatives.ring.view=twin", kinds={"negatives": ["ring"]})
    assert line.startswith("negatives.ring.view: this run has no such view (got 'twin')")
    made = compose(None, "loss.infonce.target=identical", kinds={"aug": ["nudge"]})
    assert "view positive is encoded only because aug.nudge changes it" in made.warnings[0]


# Branches


def test_a_branch_is_added_where_its_record_is_asked_for() -> None:
    made = compose(kinds={"negatives": ["ring", "noise"]})
    assert paths(made, ["branch"]) == ["branch.online", "branch.ema", "branch.frozen"]
    assert "branch.ema added with its defaults, for negatives.ring.branch" in made.notes
    assert "branch.frozen added with its defaults, for negatives.noise" in made.notes
    set_too = compose(None, "branch.ema.decay=0.5", kinds={"negatives": ["ring"]})
    assert options(set_too, "branch.ema").decay.start == 0.5
    assert not any("added" in note for note in set_too.notes)
    (line,) = refused(None, "views.positive.branch=emma")
    assert line.startswith("views.positive.branch: unknown branch (got 'emma')")
    assert line.endswith("did you mean ema?")


def test_branches_that_do_nothing_are_warned_of(tmp_path: Path) -> None:
    made = compose(kinds={"branch": ["ema"]})
    assert any("branch.ema encodes nothing" in line for line in made.warnings)
    (line,) = refused(recipe(tmp_path, '[[branch]]\nuse = "ema"\nname = "online"'))
    assert "online is the encoder in training" in line


# Negatives and sizes


def test_contrastive_losses_without_a_possible_negative_are_refused() -> None:
    (line,) = refused(None, "loss.infonce.negatives=none")
    assert "loss.infonce.negatives: a contrastive loss needs negatives" in line
    (line,) = refused(None, "loss.infonce.negatives=stored")
    assert "no store of this run serves this loss" in line
    compose(None, "loss.infonce.negatives=stored", kinds={"negatives": ["ring"]})
    (line,) = refused(None, "train.batch_size=1")
    assert line.startswith("train.batch_size: a batch of one sentence gives loss.infonce no")
    compose(None, "train.batch_size=1", kinds={"negatives": ["ring"]})
    assert refused(facts=replace(BERT, rows=1))[0].startswith("data.path: a batch of one")
    hard = replace(BERT, columns=("text", "negative"))
    compose(None, "train.batch_size=1", "views.negative.column=negative", facts=hard)
    compose(
        None, "train.batch_size=1", "loss.margin.negatives=none",
        kinds={"loss": ["margin"], "aug": ["negate"]},
    )  # fmt: skip
    (line,) = refused(None, "loss.infonce.negatives=[rin]", kinds={"negatives": ["ring"]})
    assert "unknown negative store (got 'rin'); did you mean ring" in line
    (line,) = refused(None, "loss.infonce.negatives=ring,rin", kinds={"negatives": ["ring"]})
    assert "unknown negative store (got 'rin'); did you mean ring" in line
    (line,) = refused(None, "loss.infonce.negatives=stord")
    assert "did you mean stored?" in line


def test_stores_that_serve_no_loss_are_warned_of() -> None:
    made = compose(None, "loss.infonce.negatives=in-batch", kinds={"negatives": ["ring"]})
    assert "negatives.ring serves no loss: no loss takes stored negatives" in made.warnings
    made = compose(
        None, "negatives.ring.level=segment", kinds={"negatives": ["ring"], "pool": ["+window"]}
    )
    assert any("its level is segment, those of the losses sentence" in w for w in made.warnings)


def test_miners_that_serve_no_loss_are_warned_of() -> None:
    made = compose(kinds={"positives": ["near"]})
    assert (
        "positives.near serves no loss: none has target = neighbours; "
        "--loss +infonce:more --loss.more.target neighbours adds one"
    ) in made.warnings
    made = compose(None, "loss.infonce.target=neighbours", kinds={"positives": ["near"]})
    assert not [line for line in made.warnings if "serves no loss" in line]
    assert not compose(kinds={"positives": ["pairs"]}).warnings


def test_sizes_are_checked_against_the_model_and_the_data() -> None:
    (line,) = refused(None, "model.max_length=513")
    assert line == (
        "model.max_length: exceeds the 512 positions of starter (got 513); "
        "--set model.max_length=512"
    )
    compose(None, "model.max_length=512")
    compose(None, "model.max_length=9999", facts=replace(BERT, positions=None))
    (line,) = refused(None, "inference.max_length=513")
    assert line == (
        "inference.max_length: exceeds the 512 positions of starter (got 513); "
        "--set inference.max_length=512"
    )
    sliced = ("inference.max_length=9999", "inference.slice=true")
    assert compose(None, *sliced, kinds={"pool": ["+window"]}).inference.max_length == 9999
    assert compose(None, "model.max_length=9999", kinds={"pool": ["+window"]}).model.max_length
    hard = replace(BERT, columns=("text", "negative"))
    assert "--set views.negative.column=negative" in compose(facts=hard).warnings[0]
    assert compose(facts=hard, kinds={"negatives": ["hard"]}).warnings == ()


def test_a_run_without_a_loss_is_refused() -> None:
    assert refused(kinds={"loss": ["~infonce"]}) == [
        "loss: nothing is minimised; add one: --loss infonce"
    ]


def test_problems_of_a_composition_are_told_at_once() -> None:
    lines = refused(
        None, "loss.margin.target=nowhere", "model.max_length=600",
        kinds={"loss": ["margin"], "pool": ["mlp"], "aug": ["recase"]},
    )  # fmt: skip
    assert len(lines) == 5


# RunInfo and options


def test_facts_are_completed_by_the_data_and_the_settings() -> None:
    asked: list[DataOptions] = []

    def lookup(data: DataOptions) -> tuple[int | None, tuple[str, ...] | None]:
        asked.append(data)
        return 1001, ("text", "title")

    facts = replace(BERT, rows=None, columns=None)
    made = compose(None, "data.unit=document", facts=facts, lookup=lookup)
    assert (made.facts.rows, made.facts.columns, made.facts.steps) == (1001, ("text", "title"), 16)
    assert asked[0].unit == "document"
    made = compose(None, "data.limit=128", "train.epochs=1.5", "train.precision=fp32")
    assert (made.facts.rows, made.facts.steps, made.facts.precision) == (128, 3, "fp32")
    assert compose(None, "train.max_steps=7").facts.steps == 7
    assert compose(facts=facts).facts.steps is None


def test_every_option_has_a_path_that_can_be_set() -> None:
    made = compose(None, "train.lr=1e-4", kinds={"negatives": ["ring"]})
    found = {each.path: each for each in option_paths(made)}
    assert (found["train.lr"].default, found["train.lr"].type) == (
        "0.0001",
        "number >= 0 and <= 1",
    )
    ring = found["negatives.ring.size"]
    assert (ring.type, ring.default, ring.panel) == (
        "integer >= 1",
        "64",
        "negatives.ring (cse-alpha 0.1.0)",
    )
    assert ring.description == "Vectors that it keeps."
    assert found["views.positive.branch"].default == "online"
    assert found["negatives.ring.branch"].default == "ema"
    assert all(each.type and each.description for each in found.values())
    sets = [f"{each.path}={each.default}" for each in found.values()]
    again = compose(None, *sets, kinds={"negatives": ["ring"]})
    assert [part.options for part in again.parts] == [part.options for part in made.parts]
    assert (again.train, again.model, again.data) == (made.train, made.model, made.data)
    assert "train.lr" in {each.path for each in option_paths()}


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from cse_core.recipes.compose import resolve; "
        "import cse_cli.training.plan_text, cse_cli.options.paths; "
        "heavy = {'torch', 'transformers', 'datasets', 'scipy', 'numpy', "
        "'huggingface_hub'} & set(sys.modules); sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("branch.frozen.embeddings=shared", "cannot be shared: a frozen branch keeps"),
        ("branch.online.embeddings=shared", "has no effect: an online branch is the encoder"),
        ("branch.online.copies=encoder", "has no effect: an online branch is the encoder"),
    ],
)
def test_an_option_that_a_branch_would_ignore_is_refused(setting: str, said: str) -> None:
    kinds: Any = {"branch": [setting.split(".")[1]], "negatives": ["ring"]}
    (line,) = refused(None, setting, kinds=kinds)
    assert line.startswith(f"{setting.partition('=')[0]}: {said}")
    name = setting.partition("=")[0]
    default = {"embeddings": "copied", "copies": "encoder+heads"}[name.rpartition(".")[2]]
    assert compose(None, f"{name}={default}", kinds=kinds)
