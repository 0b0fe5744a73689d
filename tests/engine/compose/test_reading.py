import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cse_cli.training.plan import data_flow
from cse_core.errors import CseError
from cse_engine.compose.expressions import evaluate, evaluate_number
from cse_engine.compose.reading import read_recipe
from cse_engine.run.recipe_file import as_recipe, dump_recipe
from tests.fixtures.parts import BERT, ROBERTA, compose, made_up_registry, paths, recipe, refused

PLAIN = """
name = "plain"
summary = "as it is"
[params]
alpha = 0.15
[train]
lr = 1e-4
[[pool]]
use = "mean"
[[loss]]
use = "infonce"
weight = "1 - alpha"
[[loss]]
use = "infonce"
name = "second"
weight = "linear(alpha, 2*alpha)"
temperature = 0.1
[[when]]
family = "roberta"
[when.train]
lr = 2e-4
batch_size = 128
[[when]]
family = ["roberta", "bert"]
hidden = 256
say = "a small encoder learns faster"
[when.train]
lr = 5e-4
"""
LAYERED = """
extends = "plain"
remove = ["loss.second"]
[train]
batch_size = 32
[[loss]]
use = "infonce"
temperature = 0.2
[[aug]]
use = "nudge"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a package with the made-up recipes on the path."""
    folder = tmp_path / "site" / "recipes_of_tests"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "plain.toml").write_text(PLAIN)
    (folder / "layered.toml").write_text(LAYERED)
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.delitem(sys.modules, "recipes_of_tests", raising=False)
    return folder


def option(composition: Any, path: str) -> Any:
    kind, name, key = path.split(".")
    part = next(part for part in composition.of(kind) if part.name == name)
    return getattr(part.options, key)


def test_expressions_are_arithmetic_over_params_alone() -> None:
    values = {"1 - alpha": 0.85, "alpha": 0.15, "2*beta": 6.0, "-(alpha + beta) / 3": -1.05,
              "1e-3": 1e-3, "+.5": 0.5}  # fmt: skip
    for text, value in values.items():
        assert evaluate(text, {"alpha": 0.15, "beta": 3.0}) == pytest.approx(value, abs=1e-15)
    no_arithmetic = [
        "alpha**2", "f(1)", "alpha.real", "1 if 1 else 2", "[1]", "'x'", "True", "", "1 +",
        "x := 1", "(" * 120 + "1" + ")" * 120, "1+" * 300 + "1", "alpha if", "\x00",
    ]  # fmt: skip
    for text in no_arithmetic:
        with pytest.raises(CseError, match="neither a number nor an expression"):
            evaluate(text, {"alpha": 1.0}, where="loss.x.weight")
    for text, params, said in (
        ("1 - alhpa", {"alpha": 1.0}, r"^a\.b: unknown parameter .*mean alpha\?$"),
        ("1/(alpha-1)", {"alpha": 1.0}, "divides by zero"),
        ("1e308*10", {}, "not a finite number"),
        ("alpha", {}, "no parameters are set; write a number"),
    ):
        with pytest.raises(CseError, match=said):
            evaluate(text, params, where="a.b")
    assert evaluate_number("linear(alpha, 1-alpha)", {"alpha": 0.25}) == "linear(0.25,0.75)"
    assert evaluate_number("cosine(0, alpha)", {"alpha": 0.5}) == "cosine(0,0.5)"
    with pytest.raises(CseError, match="expects two numbers"):
        evaluate_number("cosine(1)", {})


def test_an_installed_recipe_replaces_the_default_lists(installed: Path, tmp_path: Path) -> None:
    made = compose("plain", facts=ROBERTA)
    assert made.recipe == "plain"
    assert paths(made) == ["pool.mean", "loss.infonce", "loss.second", "branch.online"]
    assert option(made, "loss.infonce.weight").start == pytest.approx(0.85)
    assert str(option(made, "loss.second.weight")) == "linear(0.15,0.3)"
    assert option(made, "loss.infonce.temperature") == 0.05
    assert option(made, "loss.second.temperature") == 0.1
    made = compose(recipe(tmp_path, '[[aug]]\nuse = "nudge"'))
    assert paths(made) == ["aug.nudge", "pool.cls", "pool.mlp", "loss.infonce", "branch.online"]
    assert refused(recipe(tmp_path, "pool = []"))[0].startswith("pool: no row pooler")


def test_when_blocks_hold_by_facts_the_most_specific_last(installed: Path) -> None:
    roberta, bert = compose("plain", facts=ROBERTA), compose("plain", facts=BERT)
    assert (roberta.train.lr, roberta.train.batch_size) == (2e-4, 128)
    assert (bert.train.lr, bert.train.batch_size) == (5e-4, 64)
    assert roberta.notes == (
        "recipe plain: when family roberta: train.lr = 0.0002; train.batch_size = 128",
    )
    assert bert.notes == (
        "recipe plain: when family roberta or bert, hidden 256: train.lr = 0.0005",
        "a small encoder learns faster",
    )


def test_the_later_of_equal_blocks_wins_and_unknown_facts_hold_none(tmp_path: Path) -> None:
    text = "".join(
        f"[[when]]\n{condition}\n[when.train]\nlr = {lr}\n"
        for condition, lr in (
            ('family = "bert"\nhidden = 256', 0.3),
            ('family = "bert"', 0.1),
            ('origin = "starter"', 0.2),
            ("cased = true", 0.4),
        )
    )
    path = recipe(tmp_path, text)
    assert compose(path).train.lr == 0.3
    assert compose(path, facts=replace(BERT, hidden=8)).train.lr == 0.2
    unknown = compose(path, facts=replace(BERT, family=None, hidden=None, origin=None))
    assert unknown.train.lr == 3e-5
    assert "nothing is known of the model starter" in unknown.warnings[0]


def test_any_holds_for_what_is_known_and_params_may_use_the_hidden_size(tmp_path: Path) -> None:
    path = recipe(
        tmp_path,
        """
        [params]
        size = 768
        half = "size / 2"
        [train]
        batch_size = "half"
        [[when]]
        hidden = "any"
        [when.params]
        size = "hidden"
        """,
    )
    assert compose(path).train.batch_size == 128
    assert compose(path).params == {"size": 256, "half": 128}
    assert compose(path, "params.size=10").train.batch_size == 5
    assert compose(path, facts=replace(BERT, hidden=None)).train.batch_size == 384
    (line,) = refused(recipe(tmp_path, '[params]\nsize = "hiden"'))
    assert line.startswith("params.size: unknown parameter")


def test_when_takes_parts_out_updates_them_by_name_and_adds(tmp_path: Path) -> None:
    path = recipe(
        tmp_path,
        """
        [[aug]]
        use = "recase"
        [[aug]]
        use = "nudge"
        epsilon = 0.2
        gradient = "previous"
        [[when]]
        cased = false
        remove = ["aug.recase"]
        say = "recase is left out: the vocabulary has no capitals"
        [[when.aug]]
        name = "nudge"
        epsilon = 0.3
        [[when.aug]]
        use = "cse-alpha/repeat"
        """,
    )
    made = compose(path)
    assert paths(made, ["aug"]) == ["aug.nudge", "aug.repeat"]
    assert option(made, "aug.nudge.epsilon") == 0.3
    assert option(made, "aug.nudge.gradient") == "previous"
    assert "recase is left out: the vocabulary has no capitals" in made.notes
    assert any("aug.recase removed; aug.nudge.epsilon = 0.3" in note for note in made.notes)
    assert paths(compose(path, facts=ROBERTA), ["aug"]) == ["aug.recase", "aug.nudge"]


def test_a_recipe_extends_another_with_its_when_blocks(installed: Path) -> None:
    made = compose("layered", facts=ROBERTA)
    assert paths(made) == ["aug.nudge", "pool.mean", "loss.infonce", "branch.online"]
    assert (made.train.lr, made.train.batch_size) == (2e-4, 32)
    assert option(made, "loss.infonce.temperature") == 0.2
    assert option(made, "loss.infonce.weight").start == pytest.approx(0.85)
    base, top = read_recipe("layered", made_up_registry())
    assert (base.name, base.overlay, top.name, top.overlay) == ("plain", False, "layered", True)


def test_files_extend_others_and_runs_are_recipes(tmp_path: Path) -> None:
    recipe(tmp_path, "[train]\nlr = 0.5", "base.toml")
    made = compose(recipe(tmp_path, 'extends = "base.toml"\n[train]\nseed = 7', "top.toml"))
    assert (made.train.lr, made.train.seed, made.recipe) == (0.5, 7, "top")
    circle = recipe(tmp_path, 'extends = "circle.toml"', "circle.toml")
    assert "extends itself" in refused(circle)[0]
    gone = recipe(tmp_path, 'extends = "gone.toml"')
    assert "installed recipes: layered, plain" in refused(gone)[0]
    recipe(
        tmp_path,
        '[train]\nseed = 5\n[[aug]]\nuse = "nudge"\n[run]\ndevice = "cpu"\n'
        '[versions]\ncse-alpha = "0.0.9"\ncse-toolkit = "0.1.0"\n',
        "run.toml",
    )
    made = compose(str(tmp_path))
    assert (made.train.seed, made.recipe) == (5, tmp_path.name)
    assert compose(tmp_path / "run.toml").recipe == tmp_path.name
    assert made.warnings == ("cse-alpha was 0.0.9 in that run, and is 0.1.0",)


WRONG = (
    ("[train\n", "is not valid TOML"),
    ("[trian]\nlr = 1", "a recipe has no key 'trian'; did you mean train?"),
    ("train = 3", "train is a table"),
    ("[loss]\nuse = 'infonce'", "write [[loss]]"),
    ("[[loss]]\ntemperature = 1", "a [[loss]] has no use"),
    ("[[loss]]\nuse = 3", "use is a text"),
    ("[[loss]]\nuse = 'infonce'\nname = 'a.b'", "a name is letters, digits, - and _"),
    ("[[loss]]\nuse = 'infonce'\n[[loss]]\nuse = 'infonce'", "another loss has this name"),
    ("[[when]]\n[when.train]\nlr = 1", "has no condition; add one of family, hidden"),
    ("[[when]]\nfamili = 'bert'", "a recipe has no key 'famili'; did you mean family?"),
    ("[[when]]\norigin = 'starter'\n[when.model]\nname = 'x'", "cannot choose model.name"),
    ("[when]\nfamily = 'bert'", "write [[when]]"),
    ("remove = ['loss.infoncee']\nextends = 'layered'", "did you mean infonce?"),
    ("remove = 'loss.x'", "remove is a list of parts"),
    ("remove = ['los.x']", "did you mean loss?"),
    ("extends = 3", "extends is the name or file of one recipe"),
    ("[views]\npositive = 3", "views.positive is a table"),
    ("summary = 3", "summary is a text"),
    ("extends = 'plain'\n[[loss]]\nname = 'secnd'\nweight = 1", "did you mean second?"),
    ('name = "x\\r[train]"', "name is one line of at most 100 printable characters (got 'x\\r["),
    (
        "".join(f"[[loss]]\nuse = 'infonce'\nname = 'l{n}'\n" for n in range(1001)),
        "loss has 1,001 entries",
    ),
)


def test_a_wrong_recipe_is_refused_in_one_line(installed: Path, tmp_path: Path) -> None:
    for text, line in WRONG:
        (printed,) = refused(recipe(tmp_path, text))
        assert line in printed, text
        assert str(tmp_path) in printed or "remove" in printed
    assert "did you mean plain?" in refused("plian")[0]
    assert "no such recipe file" in refused(tmp_path / "none.toml")[0]
    assert "is a folder without run.toml" in refused(str(tmp_path))[0]
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    assert "is not UTF-8 text" in refused(tmp_path / "latin.toml")[0]


ROUND_TRIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain flags": (
        PLAIN,
        {
            "kinds": {"negatives": ["ring"], "aug": ["cse-alpha/repeat", "nudge"]},
            "sets": ["params.alpha=0.1234567891", "aug.repeat.words=[a,b]", "train.clip=0"],
        },
    ),
    "views and a branch": (
        """
        [data]
        path = ["a.txt", "b \\"c\\".txt"]
        columns = { text = "sentence 1" }
        [views.positive]
        branch = "target"
        [inference]
        pool = "mean"
        [[branch]]
        use = "ema"
        name = "target"
        decay = "cosine(0.98765432101, 1)"
        [[negatives]]
        use = "ring"
        branch = "none"
        """,
        {},
    ),
}


@pytest.mark.parametrize("case", ROUND_TRIPS)
def test_the_resolved_recipe_resolves_to_the_same(tmp_path: Path, case: str) -> None:
    text, changes = ROUND_TRIPS[case]
    sets = changes.get("sets", ())
    first = compose(recipe(tmp_path, text), *sets, kinds=changes.get("kinds"), facts=ROBERTA)
    written = dump_recipe(first)
    again = compose(recipe(tmp_path, written, "run.toml"), facts=ROBERTA)
    for name in ("model", "data", "train", "inference", "params", "parts", "views", "passes"):
        assert getattr(again, name) == getattr(first, name), name
    assert (data_flow(again), again.inference_pool) == (data_flow(first), first.inference_pool)
    assert as_recipe(again) == as_recipe(first)
    assert dump_recipe(again) == written


def test_the_resolved_recipe_keeps_expressions_alive(installed: Path, tmp_path: Path) -> None:
    run = recipe(tmp_path, dump_recipe(compose("plain")), "run.toml")
    assert 'weight = "1 - alpha"' in run.read_text()
    made = compose(run, "params.alpha=0.5")
    assert option(made, "loss.infonce.weight").start == 0.5
