"""What is composed of a recipe and words of the command line, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cse_cli.options.paths import option_paths
from cse_cli.training.plan import data_flow
from cse_core.errors import CseError, CseErrors
from cse_core.records import AugmenterSpec, LossSpec
from cse_core.texts import DataOptions
from cse_engine.compose.compose import resolve
from cse_engine.run.recipe_file import as_recipe
from tests.fixtures.parts import (
    BERT,
    chosen,
    compose,
    made,
    made_up_registry,
    paths,
    recipe,
    refused,
)
from tests.fixtures.tiny import Known

HARD = {"columns": ("text", "negative")}
PAIRS = {"columns": ("text", "positive")}


def options(composition: Any, path: str) -> Any:
    return next(part for part in composition.parts if part.path == path).options


def lines_of(words: str, **facts: Any) -> list[str]:
    sets, kinds = chosen(words)
    return refused(None, *sets, kinds=kinds, facts=replace(BERT, **facts))


def test_without_a_recipe_the_default_is_composed(tmp_path: Path) -> None:
    default = compose()
    assert paths(default) == ["pool.cls", "pool.mlp", "loss.infonce", "branch.online"]
    assert (default.recipe, default.model.name) == (None, "starter")
    assert default.data.path == ("starter",) and default.warnings == ()
    assert options(default, "pool.mlp").keep == "train"
    assert default.notes == (
        "the default recipe: when origin starter: train.lr = 0.0001; inference.pool = mean",
    )
    assert default.inference_pool is not None and default.inference_pool.use == "mean"
    other = compose(recipe(tmp_path, '[[loss]]\nuse = "infonce"\n'))
    assert (other.inference.pool, other.notes) == (None, ()), "recipes do not take this over"


def test_a_need_of_a_plugins_own_is_met_by_the_part_that_provides_it() -> None:
    for word in ("topics", "topics:fine"):
        needy = LossSpec(name="topical", summary="s", factory="m:C", requires=(word,))
        source = AugmenterSpec(name="topics", summary="s", factory="m:C", provides=(word,))
        registry = made_up_registry(needy, source)
        kinds: dict[Any, list[str]] = {"loss": ["topical"]}
        with pytest.raises(CseError, match="loss.topical: needs .*; add --aug .topics"):
            resolve(registry, kinds=kinds, facts=BERT)
        found = resolve(registry, kinds={**kinds, "aug": ["+topics"]}, facts=BERT)
        assert "aug.topics" in paths(found)


def test_recorded_prompts_are_texts_whatever_else_is_typed(tmp_path: Path) -> None:
    record = '[versions]\ncse-toolkit = "0"\n[model]\nprompt = "query"\n[[loss]]\nuse = "infonce"\n'
    file = recipe(tmp_path, record)
    assert compose(file, "views.positive.prompt='x: '").model.prompt == "query"
    (line,) = refused(file, "model.prompt=query")
    assert line.startswith("model.prompt: is none of the model's prompts")


def test_a_kind_flag_replaces_adds_and_takes_away() -> None:
    for words, kinds, wanted in (
        ("--loss margin --aug negate,nudge", ["aug", "loss"], "aug.negate aug.nudge loss.margin"),
        ("--loss +infonce:second --aug +nudge", ["aug", "loss"],
         "aug.nudge loss.infonce loss.second"),
        ("--pool ~mlp", ["pool"], "pool.cls"),
        ("--pool ~cls,+mean,+extra", ["pool"], "pool.mean pool.mlp pool.extra"),
        ("--pool mean,+extra", ["pool"], "pool.mean pool.extra"),
        ("--pool +window", ["pool"], "pool.window pool.cls pool.mlp"),
        ("--negatives ring,noise", ["branch"], "branch.online branch.ema branch.frozen"),
    ):  # fmt: skip
        assert paths(made(words), kinds) == wanted.split(), words
    assert "--loss replaces infonce of the recipe" in made("--loss margin --aug negate").notes
    assert not any("replaces" in note for note in made("--loss +infonce:second").notes)
    other = made("--pool cls")
    assert other.inference_pool is None
    assert "--pool drops inference.pool = mean of the recipe" in other.notes
    assert made("--pool +extra").inference_pool is not None


def test_names_of_two_distributions_are_qualified(tmp_path: Path) -> None:
    (part,) = made("--aug cse-alpha/repeat").of("aug")
    assert (part.use, part.distribution) == ("repeat", "cse-alpha")
    assert as_recipe(made("--aug cse-alpha/repeat"))["aug"][0]["use"] == "cse-alpha/repeat"
    written = as_recipe(made("--aug cse-beta/repeat"))
    assert [item["use"] for item in written["aug"]] == ["cse-beta/repeat"]
    assert [item["use"] for item in written["loss"]] == ["infonce"]
    text = '[versions]\ncse-gone = "0.3"\n[[aug]]\nuse = "cse-gone/fade"\n'
    assert refused(recipe(tmp_path, text)) == [
        "aug.fade: part of cse-gone 0.3, which is not installed (got 'cse-gone/fade'); "
        "install cse-gone 0.3"
    ]


def test_settings_are_read_by_the_type_of_their_option(tmp_path: Path) -> None:
    path = recipe(tmp_path, '[[aug]]\nuse = "cse-alpha/repeat"\n[[negatives]]\nuse = "ring"')
    typed = compose(
        path, "train.lr=1e-4", "train.batch_size = 8", "train.betas=[0.9, 0.98]",
        "train.chunk_size=4", "train.dev=a.tsv", "data.path=[a.txt, b.txt]",
        "data.columns.text=sentence1", "data.columns.positive=2", "data.shuffle=false",
        "aug.repeat.words=the", "aug.repeat.limits=[2,4]", "negatives.ring.label=2024",
        "negatives.ring.branch=none", "loss.infonce.negatives=ring",
        "loss.infonce.weight=linear(0, 1)", "views.positive.column=text", "model.dropout=none",
        "train.select=none",
    )  # fmt: skip
    train = typed.train
    assert (train.lr, train.batch_size, train.chunk_size) == (1e-4, 8, 4)
    assert (train.betas, train.dev, train.select) == ((0.9, 0.98), ("a.tsv",), None)
    assert typed.data.path == ("a.txt", "b.txt")
    assert typed.data.columns == {"text": "sentence1", "positive": "2"}
    assert typed.data.shuffle is False
    repeat, ring = options(typed, "aug.repeat"), options(typed, "negatives.ring")
    assert (repeat.words, repeat.limits) == (("the",), (2, 4))
    assert (ring.label, ring.branch) == ("2024", None)
    loss = options(typed, "loss.infonce")
    assert (loss.negatives, str(loss.weight)) == (("ring",), "linear(0,1)")
    own = compose(None, "train.seed=3", model="x/y", data=["a", "b"], dev=["d"])
    assert (own.model.name, own.data.path, own.train.dev) == ("x/y", ("a", "b"), ("d",))
    assert compose(None, "model.name=z", model="x/y").model.name == "z"


REFUSED: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    # Settings
    ("train.lr", {}, ("--set: is not PATH=VALUE (got 'train.lr')",)),
    ("trian.lr=1", {}, ("trian.lr: unknown option; did you mean train.lr",)),
    ("train=1", {}, ("train: names no option; write train.OPTION=VALUE",)),
    ("loss.infonce=1", {}, ("is not an option of a part",)),
    ("train.leaning=1", {}, ("train.leaning: unknown option (got '1')",)),
    ("train.batch-size=1", {}, ("did you mean batch_size?",)),
    ("model.batch_size=1", {}, ("unknown option (got '1'); did you mean train.batch_size?",)),
    ("loss.infonse.temperature=1", {}, ("did you mean loss.infonce.temperature?",)),
    ("loss.infonce.temprature=1", {}, ("temprature: unknown option", "did you mean temperature?")),
    ("negatives.ring.size=1", {}, ("no negative store named ring; add it: --negatives +ring",)),
    ("negatives.rung.size=1", {}, ("has no negative store: add one with --negatives NAME",)),
    ("params.alpha=1", {}, ("params.alpha: the recipe has no such parameter",)),
    ("views.positve.branch=online", {}, ("views.positve: this run has", "did you mean positive?")),
    ("train.lr=-1", {}, ("train.lr: must be a number >= 0 and <= 1 (got '-1')",)),
    ("train.lr=fast", {}, ("train.lr: must be a number >= 0 and <= 1 (got 'fast')",)),
    ("train.lr=true", {}, ("a flag without a value means true: type --train.lr VALUE",)),
    ("train.lr=inf", {}, ("train.lr: must be a finite number",)),
    ("train.batch_size=1.5", {}, ("train.batch_size: must be an integer >= 1",)),
    ("train.batch_size=0", {}, ("train.batch_size: must be an integer >= 1 (got '0')",)),
    ("train.schedule=liner", {}, ("must be one of linear, cosine, constant (got 'liner')",)),
    ("train.betas=[0.9]", {}, ("train.betas: must be 2 numbers",)),
    ("train.eps=0", {}, ("train.eps: must be a number > 0",)),
    ("model.dropout=1", {}, ("model.dropout: must be a number >= 0 and < 1",)),
    ("data.shuffle=maybe", {}, ("data.shuffle: must be true or false (got 'maybe')",)),
    ("loss.infonce.temperature=0", {}, ("loss.infonce.temperature: must be a number >= 0.0001",)),
    ("loss.infonce.weight=steep(0,1)", {}, ("loss.infonce.weight: must be a number or schedule",)),
    ("loss.infonce.weight=rising(1,0)", {}, ("needs a <= b",)),
    ("data.columns=3", {}, ("data.columns: must be a table",)),
    ("branch.ema.decay=2", {}, ("branch.ema.decay: must stay between 0 and 1",)),
    ("branch.frozen.embeddings=shared --branch frozen --negatives ring", {},
     ("branch.frozen.embeddings: cannot be shared: a frozen branch keeps",)),
    ("branch.online.embeddings=shared --branch online --negatives ring", {},
     ("branch.online.embeddings: has no effect: an online branch is the encoder",)),
    ("branch.online.copies=encoder --branch online --negatives ring", {},
     ("branch.online.copies: has no effect: an online branch is the encoder",)),
    # Names
    ("--aug repeat", {}, ("write cse-alpha:it/repeat or cse-beta:it/repeat",)),
    ("--loss ~infonce", {}, ("loss: nothing is minimised; add one: --loss infonce",)),
    ("loss.infonce.target=postive", {}, ("neither a view of this run nor a group that a miner",
                                         "did you mean positive?")),
    ("aug.nudge.views=[positve] --aug nudge", {},
     ("aug.nudge.views: this run has no such view (got 'positve')", "did you mean positive?")),
    ("negatives.ring.view=twin --negatives ring", {},
     ("negatives.ring.view: this run has no such view (got 'twin')",)),
    ("views.positive.branch=emma", {},
     ("views.positive.branch: unknown branch (got 'emma')", "did you mean ema?")),
    ("views.anchor.branch=ema views.positive.branch=ema", {},
     ("views.anchor.branch: no view of a loss is encoded by a branch that trains, so nothing would "
      "change (got 'ema'); --views.anchor.branch online",)),
    ("--loss ~infonc", {}, ("no loss of this name to remove (got 'infonc')", "mean infonce?")),
    ("--loss +infonce", {}, ("another loss has this name (got 'infonce')", "+infonce:second")),
    ("--loss infonce:a,+infonce:a", {}, ("(got 'a')", '+infonce:second, or [[loss]] use = "info')),
    ("--loss infonec", {}, ("did you mean infonce?",)),
    ("--aug queue", {}, ("--aug: unknown ", "(got 'queue')")),
    # Poolers and inference
    ("--pool mlp", {}, ("no row pooler turns token states into vectors", "--pool +cls")),
    ("--pool +mean", {}, ("one row pooler, not cls and mean; remove 1, for instance --pool ~cls",)),
    ("--pool +window,+window:other", {}, ("one slice stage, not window and other",)),
    ("inference.pool=maen", {}, ("did you mean mean?",)),
    ("inference.pool=mlp", {}, ("unknown row pooler",)),
    ("inference.slice=true", {}, ("inference.slice: nothing in this run slices", "--pool +window")),
    # What parts require and provide
    ("--loss margin", {}, ("loss.margin: needs the view 'soft_negative' or the view 'negative', wh",
                           "--aug +deny (cse-beta 0.1.0) or --aug +negate (cse-alpha 0.1.0)",
                           "--aug +negation (install cse-sncse)")),
    ("loss.infonce.level=segment", {},
     ("loss.infonce.level: no part of this run makes rows of this level",
      "--pool +window (cse-alpha 0.1.0)")),
    ("loss.infonce.level=sentense", {}, ("did you mean sentence?",)),
    ("--aug foreign", {}, ("needs the column 'fraternal', which this run does not have",
                           "of text it is: --set data.columns.fraternal=COLUMN, or write it")),
    ("--aug recase", {}, ("a vocabulary that keeps capital letters, which", "--aug ~recase")),
    ("--pool prompt", {"mask_token": False}, ("needs a mask token in the vocabulary, which",)),
    ("--loss pull", {}, ("needs pairs of texts", "--positives +pairs (cse-alpha 0.1.0)")),
    ("views.positive.column=postive", PAIRS,
     ("views.positive.column: the data has no column 'postive'", "did you mean positive?")),
    ("views.positive.column=positive", {},
     ("say which column holds it: --set data.columns.positive=COLUMN",)),
    ("", {"columns": ("sentence1", "score")},
     ("data.columns.text: the data has no column 'text'; it has sentence1, score; say which column "
      "holds it: --set data.columns.text=COLUMN",)),
    ("--aug negate,deny", {}, ("aug.negate and aug.deny both make the view 'soft_negative'",)),
    ("--positives near,near:again", {},
     ("positives.near and positives.again both make the positives 'neighbours'",
      "remove one, for instance --positives ~again")),
    ("positives.near.group=soft_negative --positives near --aug negate", {},
     ("aug.negate makes a view and positives.near a group",)),
    ("loss.infonce.target=neighbours loss.infonce.level=segment --positives near --pool +window",
     {}, ("loss.infonce.level: it is never computed: positives.near finds 'neighbours' at level "
          "sentence (got 'segment'); --loss.infonce.level sentence, or --positives.near.level "
          "segment",)),
    ("views.soft_negative.column=text --aug negate", {},
     ("views.soft_negative.column: aug.negate makes this view, which reads no column (got 'text')",
      "remove it, or the part: --aug ~NAME")),
    # Negatives and sizes
    ("loss.infonce.negatives=none", {}, ("negatives: a contrastive loss needs negatives",)),
    ("loss.infonce.negatives=stored", {}, ("no store of this run serves this loss",)),
    ("loss.infonce.negatives=stored loss.infonce.directions=both --negatives ring", {},
     ("negatives: positives as anchors have no stored negatives",)),
    ("train.batch_size=1", {}, ("batch_size: a batch of one sentence gives loss.infonce no",)),
    ("", {"rows": 1}, ("data.path: a batch of one",)),
    ("loss.infonce.negatives=[rin] --negatives ring", {},
     ("unknown negative store (got 'rin'); did you mean ring",)),
    ("loss.infonce.negatives=ring,rin --negatives ring", {},
     ("unknown negative store (got 'rin'); did you mean ring",)),
    ("loss.infonce.negatives=stord", {}, ("did you mean stored?",)),
    ("loss.infonce.dimensions=64,512", {}, ("infonce.dimensions: is more than the vectors have (got"
                                            " 512); name sizes of at most 256",)),
    ("loss.infonce.dimensions=64 pool.mlp.dimension=32", {}, ("name sizes of at most 32",)),
    ("loss.infonce.dimension_weights=1,2", {}, ("2 dimension_weights for 0 dimensions",)),
    ("model.max_length=513", {}, ("model.max_length: exceeds the 512 positions of starter (got "
                                  "513); --set model.max_length=512",)),
    ("inference.max_length=513", {}, ("inference.max_length: exceeds the 512 positions of starter "
                                      "(got 513); --set inference.max_length=512",)),
)  # fmt: skip
"""Words of the command line, facts that differ, and what the one line says."""


def test_what_is_refused_accepted_and_warned_of() -> None:
    for words, facts, said in REFUSED:
        lines = lines_of(words, **facts)
        assert len(lines) == 1, words
        for part in said:
            assert part in lines[0], (words, lines[0])
        for library in ("pydantic", "http", "Input"):
            assert library not in lines[0], words
    for words, facts in ACCEPTED:
        assert made(words, **facts).passes, words
    for words, facts, said in WARNED:
        assert any(said in line for line in made(words, **facts).warnings), words
    for words, facts in (("--positives pairs", {}), ("--negatives hard", HARD)):
        assert made(words, **facts).warnings == (), words
    used = made("loss.infonce.target=neighbours --positives near")
    assert not any("serves no loss" in line for line in used.warnings)


ACCEPTED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--loss margin", HARD),
    ("--loss margin --aug negate", {}),
    ("loss.infonce.level=segment --pool +window", {}),
    ("--aug foreign", {"columns": None}),
    ("--aug foreign", {"columns": ("text", "fraternal")}),
    ("--aug recase", {"cased": True}),
    ("--aug recase", {"cased": None}),
    ("--pool prompt", {}),
    ("--loss pull --positives pairs", {}),
    ("--loss pull", PAIRS),
    ("inference.pool=mean", {}),
    ("inference.slice=true inference.max_length=9999 --pool +window", {}),
    ("positives.b.group=others --positives near,near:b", {}),
    ("loss.infonce.target=neighbours loss.infonce.level=segment positives.near.level=segment "
     "--positives near --pool +window", {}),
    ("loss.infonce.negatives=stored --negatives ring", {}),
    ("train.batch_size=1 --negatives ring", {}),
    ("train.batch_size=1 views.negative.column=negative", HARD),
    ("train.batch_size=1 loss.margin.negatives=none --loss margin --aug negate", {}),
    ("loss.infonce.dimensions=512 pool.mlp.dimension=512", {}),
    ("loss.infonce.dimensions=512 --pool +extra", {}),
    ("views.anchor.branch=ema", {}),
    ("model.max_length=512", {}),
    ("model.max_length=9999", {"positions": None}),
    ("model.max_length=9999 --pool +window", {}),
    ("branch.frozen.embeddings=copied --branch frozen --negatives ring", {}),
    ("branch.online.embeddings=copied branch.online.copies=encoder+heads --branch online", {}),
)  # fmt: skip


WARNED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("loss.infonce.target=identical --aug nudge", {},
     "view positive is encoded only because aug.nudge changes it"),
    ("--branch ema", {}, "branch.ema encodes nothing"),
    ("loss.infonce.negatives=in-batch --negatives ring", {},
     "negatives.ring serves no loss: no loss takes stored negatives"),
    ("loss.infonce.negatives=noise --negatives ring,noise", {},
     "negatives.ring serves no loss: loss.infonce.negatives does not name it"),
    ("negatives.ring.level=segment --negatives ring --pool +window", {},
     "its level is segment, those of the losses sentence"),
    ("--positives near", {}, "positives.near serves no loss: none has target = neighbours; "
     "--loss +infonce:more --loss.more.target neighbours adds one"),
    ("", HARD, "--set views.negative.column=negative"),
)  # fmt: skip


def test_mistakes_are_told_at_once_with_their_paths(tmp_path: Path) -> None:
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
    for said in (
        "params.alpha: unknown parameter (got 'gama')",
        "train.lr: unknown parameter (got 'fast')",
        "train.epochs: must be a number > 0 (got '0')",
        "aug.nudge.epsilon: must be a number > 0 and <= 1 (got 2)",
        "aug.nudge.epsilom: unknown option (got '1'); did you mean epsilon?",
        "negatives.ring: first must not be above size",
        "unknown loss (got 'unheard')",
    ):
        assert said in printed
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
    first = compose(path)
    assert first.params == {"alpha": 0.25, "beta": 0.75}
    train, loss = first.train, options(first, "loss.infonce")
    assert (train.batch_size, train.lr, train.betas) == (64, 2.5e-4, (0.75, 0.98))
    assert (str(loss.weight), loss.temperature) == ("cosine(0.25,0.75)", 0.05)
    changed = compose(path, "params.alpha=0.5", "loss.infonce.temperature=alpha*2")
    assert changed.params == {"alpha": 0.5, "beta": 0.5}
    assert options(changed, "loss.infonce").temperature == 1.0
    for setting, line in (
        ("batch_size=alpha*3", "must be an integer >= 1 (got 'alpha*3 = 0.75')"),
        ("lr=alpha-1", "must be a number >= 0 and <= 1 (got 'alpha-1 = -0.75')"),
        ("lr=alpa", "unknown parameter (got 'alpa'); did you mean alpha?"),
    ):
        name = setting.partition("=")[0]
        assert refused(path, f"train.{setting}") == [f"train.{name}: {line}"]


def test_views_levels_and_groups_that_parts_bring() -> None:
    margin = made("--loss margin --aug negate")
    assert [view.name for view in margin.views] == [
        "anchor", "positive", "identical", "soft_negative"
    ]  # fmt: skip
    assert made("--loss margin", **HARD).view("negative") is not None
    flow = data_flow(made("loss.infonce.level=segment --pool +window"))
    assert "positive -> loss.infonce (level segment, in-batch: target)" in flow
    positive = made("--positives pairs").view("positive")
    assert positive is not None and positive.column == "positive"
    near = made("loss.infonce.target=neighbours --positives near")
    assert [view.name for view in near.views] == ["anchor"]
    assert "positives.near (group neighbours) -> loss.infonce (in-batch: target)" in data_flow(near)
    assert made("loss.infonce.target=identical").view("positive") is None
    words = "positives.near.group={name} positives.again.group={name} loss.infonce.target=again"
    assert set(made(f"{words} --positives near,near:again").groups) == {"near", "again"}
    pooled = made("inference.pool=mean").inference_pool
    assert pooled is not None and pooled.path == "pool.mean"
    assert made("inference.pool=cls").inference_pool is None


def test_a_branch_is_added_where_its_record_is_asked_for(tmp_path: Path) -> None:
    added = made("--negatives ring,noise")
    assert "branch.ema added with its defaults, for negatives.ring.branch" in added.notes
    assert "branch.frozen added with its defaults, for negatives.noise" in added.notes
    given = made("branch.ema.decay=0.5 --negatives ring")
    assert options(given, "branch.ema").decay.start == 0.5
    assert not any("added" in note for note in given.notes)
    (line,) = refused(recipe(tmp_path, '[[branch]]\nuse = "ema"\nname = "online"'))
    assert "online is the encoder in training" in line


def test_facts_are_completed_by_the_data_and_the_settings() -> None:
    asked: list[DataOptions] = []

    def lookup(data: DataOptions) -> Known:
        asked.append(data)
        return Known(("text", "title"), 1001)

    unknown = replace(BERT, rows=None, columns=None)
    facts = compose(None, "data.unit=document", facts=unknown, lookup=lookup).facts
    assert (facts.rows, facts.columns, facts.steps) == (1001, ("text", "title"), 16)
    assert asked[0].unit == "document"
    facts = made("train.epochs=1.5 train.precision=fp32").facts
    assert (facts.steps, facts.precision) == (24, "fp32")
    assert made("train.max_steps=7").facts.steps == 7
    assert compose(facts=unknown).facts.steps is None


def test_every_option_has_a_path_that_can_be_set() -> None:
    first = made("train.lr=1e-4 --negatives ring")
    found = {each.path: each for each in option_paths(first)}
    rate, ring = found["train.lr"], found["negatives.ring.size"]
    assert (rate.default, rate.type) == ("0.0001", "number >= 0 and <= 1")
    assert (ring.type, ring.default) == ("integer >= 1", "64")
    assert (ring.panel, ring.description) == (
        "negatives.ring (cse-alpha 0.1.0)",
        "Vectors that it keeps.",
    )
    assert found["views.positive.branch"].default == "online"
    assert found["negatives.ring.branch"].default == "ema"
    assert all(each.type and each.description for each in found.values())
    sets = [f"{each.path}={each.default}" for each in found.values()]
    again = compose(None, *sets, kinds={"negatives": ["ring"]})
    assert [part.options for part in again.parts] == [part.options for part in first.parts]
    assert (again.train, again.model, again.data) == (first.train, first.model, first.data)
    assert "train.lr" in {each.path for each in option_paths()}


def test_a_part_says_which_number_format_it_needs() -> None:
    run = made("--negatives exact")
    assert run.train.precision == "fp32" == run.facts.precision
    assert "train.precision = fp32, which negatives.exact needs" in run.notes
    other = made("--negatives exact train.precision=bf16")
    assert other.train.precision == "bf16", "it was asked for"
    warning = "negatives.exact needs train.precision = fp32, and this run has bf16"
    assert warning in other.warnings and warning not in run.warnings
