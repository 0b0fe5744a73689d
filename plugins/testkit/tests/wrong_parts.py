"""Wrong parts: each is a sound one with a line changed, and breaks one promise.

What the core looks at in every run is in ``tests/reliability/test_culprits.py``.
"""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from cse_core.options import LossOptions
from cse_core.records import Record
from cse_core.registry.plugin_info import PluginInfo
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_defaults.basics import plugin as basics
from cse_defaults.texts import plugin as texts
from cse_defaults.transformers import plugin as transformers
from plugins.testkit.tests import sound_parts as sound

RUNS = "it_runs_and_pure_methods_change_nothing"
ROWS = "it_keeps_rows_and_their_order"
DRAWS = "it_draws_for_its_own_rows_or_for_all"
SEED = "another_seed_draws_otherwise"
STATE = "its_state_round_trips"
TRAINS = "trains_with_finite_numbers_and_its_parameters_move"
CHUNKS = "chunks_give_the_same_loss"
REACHES = "its_gradient_reaches_the_vectors"
BATCH = "takes_any_batch"
MASKED = "a_masked_candidate_does_not_count"
USED = "its_candidates_can_be_used"
GROUPS = "its_groups_can_be_used"
WEIGHS = "weigh_only_weighs"
FILES = "it_finds_its_files"
SCORES = "its_scores_are_finite_and_repeat"
DEV = "it_reads_dev_sets_as_its_record_says"
HEARS = "it_hears_a_run"
FACTORY = "its_factory_makes_a_part_of_its_kind"


INFO = PluginInfo(
    key="cse-wrong:it", name="it", distribution="cse-wrong", version="0.1.0", summary="wrong",
    module="plugins.testkit.tests.wrong_parts",
)  # fmt: skip


class SilentOptions(LossOptions):
    rate: float = 0.1


class WrongDefault(LossOptions):
    mode: Literal["a", "b"] = "c"  # type: ignore[assignment]
    """Which."""


def knows_one(options: LossOptions, facts: RunInfo) -> LossOptions:
    """Look up what only the tiny encoder's size has."""
    return {32: options}[facts.hidden or 0]


@dataclass(frozen=True)
class Wrong:
    """A wrong part.

    Attributes:
        name: Of its record.
        part: The class of ``sound_parts`` that it is made of.
        old: What its source has once, or "".
        new: What stands there instead.
        promise: The first that it breaks.
        found: A part of what the kit says of it.
        fields: Of its record, where they are others.
    """

    name: str
    part: str
    old: str
    new: str
    promise: str
    found: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def record(self) -> Any:
        """Its record; the class is in a module of its own."""
        made = inspect.getsource(getattr(sound, self.part))
        assert not self.old or made.count(self.old) == 1, f"{self.name}: {self.old}"
        path = Path(sound.__file__)
        source = path.read_text(encoding="utf-8").replace(made, made.replace(self.old, self.new))
        module = ModuleType(f"wrong_{self.name.replace('-', '_')}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module
        exec(compile(source, path, "exec"), vars(module))
        fields = {"provides": (f"branch:{self.name}",)} if self.part == "Copy" else {}
        return replace(module.RECORDS[self.part], name=self.name, **fields, **self.fields)


_DRAW = "draws = ctx.generator(self.name, shared=False)"
_ROWS = "rows = x.ids.split(x.lengths.tolist())"
_TAKEN = "return x.take_tokens(torch.tensor(index), torch.tensor(lengths))"
_FIRST = "if not len(self.kept):\n            return None"
_ADDED = "self.rows = torch.cat([self.rows, batch.row])[-8:]"
_THERE = "~negatives.mask * negatives.log_weights.exp()"
_MASS = "(far.exp() * there).sum(dim=1, keepdim=True)"
_KEPT = 'remembers = ("kept", "rows")'
_WEIGHED = "log_weights=negatives.log_weights - 0.5"
_SCORE = "float(encode(read).std())"
_SCORED = '[SuiteScore(name="words", scores=score, split="all", setting="raw")]'
_DEVIATION = 'Deviation(path.stem, ("spread",), 2) if path.suffix == ".txt" else None'
_LAST = "self.last = len(line)"
_VALUE = "return LossOutput(value)"
_FROZEN = "self.encoder.requires_grad_(False)"
WRONG = [
    # tokens
    Wrong("ids-turned", "Repeat", _DRAW,
          f"{_ROWS}\n        rows = [torch.cat([r[:1], r[1:-1].flip(0), r[-1:]]) for r in rows]"
          "\n        return replace(x, ids=torch.cat(rows))",
          ROWS, "leaves source and word where they were"),
    Wrong("special-turned", "Repeat", _DRAW,
          f"{_ROWS}\n        return replace(x, ids=torch.cat([row.flip(0) for row in rows]))",
          ROWS, "changes the special or prompt tokens of row 0"),
    Wrong("rows-turned", "Repeat", _DRAW,
          "turned = x.take_rows(torch.arange(x.rows).flip(0))"
          "\n        return replace(turned, owner=x.owner, slot=x.slot)", ROWS, "row 0"),
    Wrong("doubles-special", "Repeat", "if not bool(x.special[t])", "if bool(x.special[t])",
          ROWS, "changes the special or prompt tokens of row 0"),
    Wrong("words-counted", "Repeat", _TAKEN, f"made = {_TAKEN.removeprefix('return ')}"
          "\n        return replace(made, word=made.word + 1)", ROWS, "(source, word)"),
    Wrong("global-random", "Repeat", _DRAW, "draws = torch.default_generator",
          RUNS, "draws from a global generator"),
    Wrong("own-random", "Repeat", _DRAW, "draws = torch.Generator()\n        draws.seed()",
          RUNS, "call, called again, returns another: ids"),
    Wrong("counts", "Repeat", _DRAW,
          "self.calls = getattr(self, 'calls', 0) + 1\n        return x",
          RUNS, "call changes what the part holds: calls"),
    # texts and embeddings
    Wrong("texts-turned", "Texts", "zip(x, draws", "zip(x[::-1], draws",
          ROWS, "row 0 is what row 3 was"),
    Wrong("ignores-draws", "Texts", "if float(d) < 0.5 else t", "",
          SEED, "the same for another seed"),
    Wrong("shared-draws", "Texts", ", shared=False", "", DRAWS, "write shared=False"),
    Wrong("owners-of-corpus", "Texts", 'ctx.texts("text")', 'ctx.texts("text"), owner=rows + 4',
          "its_views_have_owners", "not batch rows, 0 to 3"),
    Wrong("cuts-gradient", "Scales", "x * 1.5", "x.detach() * 1.5",
          "gradients_pass_through_it", "cuts the gradient"),
    Wrong("norm-of-batch", "Scales", "x * 1.5", "x / x.detach().norm() * x.shape[0] ** 0.5",
          CHUNKS, "a row depends on others"),
    # stores
    Wrong("stores-in-candidates", "Kept", _FIRST,
          "self.kept = torch.cat([self.kept, batch.anchors.detach()])[-8:]"
          f"\n        {_ADDED}\n        {_FIRST}",
          RUNS, "candidates changes what the part holds: kept"),
    Wrong("keeps-graph", "Kept", "torch.cat([self.kept, new])[-8:]",
          "torch.cat([self.kept, new])[-8:].requires_grad_(True) * 1", RUNS, "kept"),
    Wrong("keeps-graph-inside", "Kept", _ADDED,
          f"{_ADDED}\n        self.held = [self.kept.clone().requires_grad_(True) * 2]",
          "what_it_keeps_is_detached", "held.0"),
    Wrong("forgets-state", "Kept", _KEPT, "remembers = ()",
          STATE, "a resume after step 2 changes the loss"),
    Wrong("forgets-a-count", "Kept", _ADDED,
          f"{_ADDED}\n        self.seen = getattr(self, 'seen', 0) + 1",
          STATE, "a resume forgets seen"),
    Wrong("strange-state", "Kept", _KEPT, 'remembers = ("seen",)\n    seen = {1, 2}',
          RUNS, "promised tensors and JSON values, but of 'seen'"),
    Wrong("nan-weights", "Kept", "age=age)", "age=age, log_weights=mask / 0)",
          USED, "a log-weight is NaN"),
    Wrong("owner-for-row", "Kept", "[self.rows, batch.row]", "[self.rows, batch.owner]",
          "its_rows_are_those_of_its_vectors", "batch.row, not batch.owner"),
    Wrong("inverted-mask", "Kept", ".unsqueeze(1) == ", ".unsqueeze(1) != ",
          "anchors_see_candidates_of_others", "are masked"),
    Wrong("draws-apart", "Kept", _FIRST,
          'draws = ctx.generator("noise", shared=False)'
          "\n        noise = torch.randn(3, batch.anchors.shape[1], generator=draws)"
          "\n        return Negatives.of(noise, len(batch.anchors), name=self.name)",
          DRAWS, "write shared=True"),
    Wrong("weighs-vectors", "Kept", _WEIGHED, "vectors=negatives.vectors * 2",
          WEIGHS, "changes the vectors"),
    Wrong("opens-positives", "Kept", _WEIGHED, "mask=torch.zeros_like(negatives.mask)",
          WEIGHS, "negatives again"),
    Wrong("weigh-needs-candidates", "Kept", "negatives.log_weights - 0.5",
          "negatives.log_weights - negatives.log_weights.max(dim=1, keepdim=True).values",
          "weigh_takes_any_candidates", "IndexError"),
    Wrong("weighs-by-others", "Kept", "negatives.log_weights - 0.5",
          "negatives.log_weights - batch.anchors.detach().mean()",
          "weigh_judges_each_anchor_by_itself", "among fewer anchors"),
    # losses
    Wrong("mean-of-nothing", "Plain", _MASS, f"{_MASS} / there.sum(dim=1, keepdim=True)",
          BATCH, ": the value is nan"),
    Wrong("nan-gradient", "Plain", _MASS,
          "(far + negatives.log_weights).masked_fill(negatives.mask, -torch.inf)"
          ".logsumexp(dim=1, keepdim=True).exp()", BATCH, "the gradient of the"),
    Wrong("wants-four", "Plain", _VALUE,
          "return LossOutput(value + batch.anchors[[0, 1, 2, 3]].sum() * 0)", BATCH, "IndexError"),
    Wrong("one-positive", "Plain", _VALUE,
          "return LossOutput(value / (targets.vectors.shape[1] == 1))", BATCH, "three positives"),
    Wrong("nan-loss", "Plain", _VALUE, "return LossOutput(value * torch.nan)",
          REACHES, "the value is nan"),
    Wrong("no-gradient", "Plain", _VALUE,
          "return LossOutput(value.detach() + 0.0 * batch.anchors.sum())",
          REACHES, "leave no gradient"),
    Wrong("ignores-mask", "Plain", _THERE, "negatives.log_weights.exp()",
          MASKED, "that are masked"),
    Wrong("ignores-weights", "Plain", _THERE, "~negatives.mask", MASKED, "that are weightless"),
    Wrong("weights-as-mask", "Plain", "negatives.log_weights.exp()",
          "(negatives.log_weights > -torch.inf)", MASKED, "log_weights of -60"),
    Wrong("by-neighbour", "Plain", "far = anchors @ candidates.T",
          "close = close + 0.1 * (anchors * anchors.roll(1, 0)).sum(-1, keepdim=True)"
          "\n        far = anchors @ candidates.T", "it_joins_rows_by_key", "anchors in another"),
    Wrong("first-positive", "Plain",
          "torch.ones_like(close) if targets.weights is None else targets.weights",
          "torch.ones_like(close) * (torch.arange(close.shape[1]) < 1)",
          "a_positive_of_weight_zero_does_not_count", "weight 0"),
    Wrong("ignores-target-weights", "Plain", "if targets.weights is None else targets.weights", "",
          "a_positive_of_weight_zero_does_not_count", "weight 0"),
    Wrong("ignores-reduction", "Plain", 'self.options.reduction == "sum"', "False",
          "its_reduction_is_that_of_its_options", "for 4 anchors"),
    Wrong("scales-views", "Plain", _VALUE,
          f'batch.views["positive"]["sentence"].vectors.detach().data.mul_(0.9)\n        {_VALUE}',
          RUNS, "call changes its arguments: 0.targets.positive.vectors"),
    Wrong("by-position", "Plain", "close = (anchors.unsqueeze(1) * positives).sum(-1)",
          'rows = batch.views["positive"][batch.level].vectors'
          "\n        close = functional.cosine_similarity(batch.anchors, rows).unsqueeze(1)"
          "\n        close = close + 0 * positives.sum(-1)",
          "it_joins_rows_by_key", "by owner and slot"),
    Wrong("unmoved", "Plain", "self.scale * (", "self.scale.detach() * (",
          TRAINS, "leave scale as they were"),
    Wrong("narrow-teacher", "Graded", "wide @ wide.T", "wide @ batch.anchors.T",
          RUNS, "48"),
    # poolers
    Wrong("narrow", "Means", "row_means(hidden.last, tokens)",
          "hidden.last[tokens.offsets[1:] - 1, :8]", RUNS, "Means.dimension says 32"),
    Wrong("counts-steps", "Dense", "return mapped",
          "return mapped + self.steps\n\n    steps = 0"
          "\n\n    def after_step(self, batch: Any, ctx: Any) -> None:\n        self.steps += 1",
          "a_saved_model_encodes_as_the_run_does", "differ by up to 2: make it an nn.Module"),
    Wrong("fitted", "Dense", "return mapped",
          "return mapped + self.shift\n\n    shift = 0.0"
          "\n\n    def prepare(self, dataset: Any) -> None:\n        self.shift = 1.0",
          "a_saved_model_encodes_as_the_run_does", "differ by up to 1: make it an nn.Module"),
    Wrong("no-dimension", "Dense", "self.dimension = setup.dimension", "",
          RUNS, "promised Dense.dimension, an integer such as 32, has None"),
    Wrong("unseeded", "Dense", 'init.normal_(each, std=0.1, generator=setup.generator("layer"))',
          "init.normal_(each, std=0.1)", STATE, "inside `with setup.seeded(...)` (step 1"),
    Wrong("reads-others", "Means", "row_means(hidden.last, tokens)",
          "row_means(hidden.last, tokens) - hidden.last.mean(dim=0)",
          CHUNKS, "a row depends on others"),
    Wrong("batch-norm", "Dense", "nn.Linear(setup.dimension, setup.dimension)",
          "nn.BatchNorm1d(setup.dimension)", "a_head_maps_any_number_of_vectors", "ValueError"),
    Wrong("in-place", "Dense", "= self.layer(vectors)", "= self.layer(vectors.data.mul_(0.5))",
          RUNS, "forward changes its arguments"),
    Wrong("slots-from-one", "Halves", "torch.tensor(slots)", "torch.tensor(slots) + 1",
          "slices_keep_owners_and_count_slots", "the slots of sentence"),
    Wrong("joins-sorted", "Halves", "list(dict.fromkeys(rows.owner.tolist()))",
          "sorted(set(rows.owner.tolist()))",
          "join_makes_one_vector_a_sentence", "owners are [2, 5, 9]"),
    # miners, branches, metrics
    Wrong("other-group", "Neighbour", '{"neighbours"', '{"friends"', GROUPS, "positives:friends"),
    Wrong("negative-weights", "Neighbour", "torch.ones(", "-torch.ones(",
          GROUPS, "weights below zero"),
    Wrong("blank-pairs", "Pairs", "texts[1:]}", '[" ", *texts[2:]]}',
          RUNS, "texts not blank, as positive, returned ' '"),
    Wrong("moves-online", "Copy", _FROZEN,
          "self.encoder = online\n\n    @torch.no_grad()"
          "\n    def after_step(self, batch: Any, ctx: Any) -> None:"
          "\n        for parameter in self.encoder.parameters():\n            parameter.mul_(0.99)",
          RUNS, "after_step changes the online encoder"),
    Wrong("own-copy", "Copy", _FROZEN, "self.heads = setup.heads",
          RUNS, "made a part whose encoder has parameters that no", {"trainable": True}),
    Wrong("no-dropout", "Copy", _FROZEN,
          f"{_FROZEN}\n        for module in online.modules():"
          "\n            if hasattr(module, 'p'):\n                module.p = 0.0",
          "leaves_the_online_encoder_as_it_is", "is 0.0, not 0.1"),
    Wrong("nan-metric", "Spread", "encode(pairs.texts).std()", "'nan'",
          "its_numbers_are_finite_and_repeat", "spread is nan"),
    # suites and reporters
    Wrong("finds-anywhere", "Words", "path if path.is_file() else None", "path",
          FILES, "in an empty folder"),
    Wrong("no-suite", "Words", "", "", FILES, "missing 1 required positional argument",
          {"factory": f"{sound.__name__}:Quiet"}),
    Wrong("infinite", "Words", _SCORE, "float('inf')", SCORES, "spread of words is inf"),
    Wrong("random", "Words", _SCORE, "float(torch.rand(()))", SCORES, "is another"),
    Wrong("twice", "Words", _SCORED, f"2 * {_SCORED}",
          SCORES, "two sets have one name: words, words"),
    Wrong("no-json", "Words", 'setting="raw"', 'setting="raw", facts={"file": Path()}',
          SCORES, "its scores are not valid JSON"),
    Wrong("dev-unsaid", "Words", "", "", DEV, "read_dev is its own: dev=True", {"dev": False}),
    Wrong("dev-of-pairs", "Words", ' if path.suffix == ".txt" else None', "",
          DEV, "takes a file of graded pairs"),
    Wrong("dev-of-nothing", "Words", _DEVIATION, "None", DEV, "read_dev returns None"),
    Wrong("dev-without-choice", "Words", '("spread",)', '("spread", "recall")',
          DEV, "may choose by recall"),
    Wrong("raises", "Quiet", _LAST, 'self.last = line["dev.spearman"]',
          HEARS, "line raised KeyError"),
    Wrong("meddles", "Quiet", _LAST, 'line["seen"] = 1.0', HEARS, "changes"),
    Wrong("draws", "Quiet", _LAST, "self.last = torch.rand(1)", HEARS, "global generator"),
    Wrong("needs-a-new-folder", "Quiet", "self.last = folder",
          '(folder / "mine").mkdir(exist_ok=not (folder / "metrics.jsonl").is_file())',
          HEARS, "start of a run that goes on raised FileExistsError"),
    Wrong("no-reporter", "Quiet", "", "", HEARS, "takes no arguments",
          {"factory": f"{sound.__name__}:Words"}),
    # records
    Wrong("silent", "Plain", "", "", "its_options_are_described", "rate",
          {"options": f"{__name__}:SilentOptions"}),
    Wrong("default", "Plain", "", "", "its_default_options_are_valid", "mode",
          {"options": f"{__name__}:WrongDefault"}),
    Wrong("no-capability", "Plain", "", "", "its_capabilities_are_known", "views:x",
          {"requires": lambda options: ("views:x",)}),
    Wrong("no-class", "Plain", "", "", FACTORY, "has no Nobody",
          {"factory": f"{sound.__name__}:Nobody"}),
    Wrong("other-kind", "Plain", "", "", FACTORY, "not a subclass",
          {"factory": f"{sound.__name__}:Kept"}),
    Wrong("knows-one", "Plain", "", "", "it_is_planned_for_every_encoder",
          "resolve_options raised KeyError", {"resolve_options": knows_one}),
]  # fmt: skip


@cache
def made_registry() -> Registry:
    """Return the built-in parts, the wrong ones and the sound ones."""
    own: list[Record] = [
        *basics.cse_poolers(), *basics.cse_losses(), *basics.cse_branches(),
        *basics.cse_samplers(), *texts.cse_sources(), *transformers.cse_models(),
    ]  # fmt: skip
    brought = {
        "cse-toolkit": own,
        "cse-wrong": [each.record for each in WRONG],
        "cse-sound": [*sound.RECORDS.values()],
    }
    return Registry.from_plugins(
        replace(INFO, key=f"{name}:it", distribution=name, parts=tuple(records))
        for name, records in brought.items()
    )
