"""A run names the part and the distribution that broke a promise, before work is lost."""

from pathlib import Path

import pytest

from tests.fixtures.command_line import Cse
from tests.fixtures.tiny import make_encoder
from tests.reliability.inputs import TEXTS
from tests.reliability.outcomes import Answer, Outcome, classify

BROKEN = Path(__file__).with_name("broken")
"""A folder with an installed distribution, cse-broken."""
PAIRS = "sentence1\tsentence2\tscore\nba be\tba bi\t1\nbo bu\tda de\t2\nfa fe\tfi fo\t3\n"
NOT_FINITE = "made numbers that are not finite at step"
CULPRITS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("--aug raises", 1, ("aug.raises", "KeyError: 'a key'")),
    ("--aug loses-text", 1, ("aug.loses-text", "8 texts of the same rows, returned list of 7")),
    ("--aug no-text", 1, ("aug.no-text", "8 texts of the same rows, returned list of 8 None")),
    ("--aug drops-row", 1, ("aug.drops-row", "same rows")),
    ("--aug writes", 1, ("aug.writes", "wrote into a tensor")),
    ("--check-parts --aug writes-late", 1, ("aug.writes-late", "wrote into a tensor")),
    ("--aug reshapes", 1, ("aug.reshapes", "promised [")),
    ("--aug not-a-number", 2, ("aug.not-a-number", f"{NOT_FINITE} 3", "not-finite-step-3.json")),
    ("--pool cls --pool +wide-head", 1, ("pool.wide-head", "forward promised [")),
    ("--pool cls --pool +raising-head", 1, ("pool.raising-head", "ValueError: no vectors today")),
    ("--positives flat-group", 1, ("positives.flat-group", "promised vectors [8, P, 32]")),
    ("--positives no-groups", 1, ("positives.no-groups", "promised dict[str, Positives]")),
    *(
        (f"--positives rounds --positives.rounds.how {how}", 1, ("positives.rounds", said))
        for how, said in {
            "no-text": "next_round promised a column text, returned positive",
            "own-texts": 'promise them in the record: columns=("text",)',
            "two-lengths": "of one length, returned {'text': 8, 'positive': 7}",
            "row-below": "integers from 0 to 19, or texts not blank, as positive, returned -1",
            "row-above": "integers from 0 to 19, or texts not blank, as positive, returned 1000000",
            "float-rows": "integers from 0 to 19, or texts not blank, as positive, returned 0.0",
            "no-texts": "texts not blank, as positive, returned None",
            "no-loss": "names of losses (infonce), returned ('infonse',)",
            "without-loss": "names of losses (infonce), returned ()",
            "no-option": "returned train.step: Extra inputs are not permitted",
            "over": "would train at rate 0: return train={'max_steps': N} in its rounds",
            "no-patience": "returned train.patience: Value error, must be a number of evaluations",
        }.items()
    ),
    ("--negatives short-view", 1, ("negatives.short-view", "promised 8 texts, returned 7")),
    ("--negatives float-mask", 1, ("negatives.float-mask", "mask of bool")),
    ("--negatives short-rows", 1, ("negatives.short-rows", "promised row [2]")),
    ("--negatives keeps-graph", 1, ("negatives.keeps-graph", "graph of a step alive in seen")),
    ("--negatives cannot-be-made", 1, ("negatives.cannot-be-made", "LookupError: nothing")),
    ("--negatives fails-late", 1, ("negatives.fails-late", "after_step raised AssertionError")),
    ("--negatives exits-late", 1, ("negatives.exits-late", "after_step raised SystemExit: 0")),
    ("--negatives state-no-table", 1, ("negatives.state-no-table", "state_dict")),
    ("--negatives state-of-lambda", 1, ("negatives.state-of-lambda", "state_dict")),
    ("--negatives sparse-state", 1, ("negatives.sparse-state", "state_dict")),
    ("--pool remembers", 1, ("pool.remembers", "remembers what no saved model holds")),
    ("--loss two-states", 1, ("loss.two-states", "one and two: only one may have a state_dict")),
    ("--loss module-remembers", 1, ("loss.module-remembers", "leave remembers out")),
    ("--loss holds-layer", 1, ("loss.holds-layer", "layer has parameters that no optimiser has")),
    (
        "--loss.infonce.weight over(0,1)",
        1,
        ("schedule.over", "over(0,1) promised a number between its bounds, returned 1.25"),
    ),
    ("--loss signature", 1, ("loss.signature", "takes other arguments")),
    ("--loss no-loss", 1, ("loss.no-loss", "Loss")),
    ("--loss notes-no-list", 1, ("loss.notes-no-list", "plan_notes")),
    ("--loss notes-raise", 1, ("loss.notes-raise", "plan_notes")),
    ("--loss derive-raises", 1, ("loss.derive-raises", "resolve_options")),
    ("--loss derive-other", 1, ("loss.derive-other", "resolve_options")),
    *(
        (f"--loss wrong --loss.wrong.how {how}", 1, ("loss.wrong", "__call__", said))
        for how, said in {
            "nothing": "promised LossOutput, returned None",
            "per-anchor": "promised a scalar tensor [], returned [8]",
            "detached": "without gradient",
            "complex": "promised real numbers on cpu, returned [] of complex64",
            "meta": "promised real numbers on cpu, returned [] of float32 on meta",
            "list-of-parts": "returned LossOutput that cannot be read: AttributeError",
            "text-as-part": "returned LossOutput that cannot be read: AttributeError",
            "logs-vector": "logs [3] of float32 on cpu as wrong.all",
            "logs-text": "logs str as wrong.text",
            "logs-loss": "logs loss, a name of the core: use wrong.loss",
            "gradients-off": "left gradients switched on or off",
            "interrupts": "raised KeyboardInterrupt",
            "generator-exit": "raised GeneratorExit",
            "unsayable": "raised _Unsayable",
        }.items()
    ),
    (
        "--loss wrong --loss.wrong.how not-finite",
        2,
        ("loss.wrong", f"{NOT_FINITE} 1", "not-finite-step-1.json"),
    ),
    ("--loss wrong --loss.wrong.how logs-nan", 2, ("loss.wrong", "wrong.gap", NOT_FINITE)),
    ("--loss exits", 1, ("loss.exits of", "calls sys.exit(0) on import")),
    *(
        (f"--pool cls --pool +bent --pool.bent.how {how}", 1, ("pool.bent", "forward", said))
        for how, said in {
            "detaches": "of float32 on cpu without gradient: nothing would learn",
            "numpy": "of float32 on cpu without gradient: nothing would learn",
            "tuple": "promised Tensor, returned tuple of 2",
            "none": "promised Tensor, returned None",
            "complex": "promised real numbers on cpu",
        }.items()
    ),
    ("--adapter frozen", 1, ("adapter.frozen", "wrap left no weight of the encoder to train")),
    ("--metric uncounted --dev dev.tsv", 1, ("metric.uncounted", "promised dict[str, float]")),
    ("--data rows", 1, ("Rows.rows raised ValueError: no rows today",)),
)


def test_a_part_that_breaks_a_promise_is_named(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BROKEN))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ok.txt").write_text(TEXTS, encoding="utf-8")
    (tmp_path / "dev.tsv").write_text(PAIRS, encoding="utf-8")
    make_encoder(tmp_path / "tiny")
    words = "train --data ok.txt --model ./tiny --dev none --train.batch_size 8 --train.max_steps 6"
    wrong: list[tuple[str, Outcome, Answer]] = []
    for number, (flags, code, says) in enumerate(CULPRITS):
        typed = f"{words} --train.device cpu {flags} --out run-{number}".split()
        printed = cse(*typed)
        answer = Answer(printed.code, printed.out, printed.err, False, 0.0)
        outcome = classify(answer, Outcome.CLEAR, ("cse-broken 1.2.0", *says), code)
        if outcome is not Outcome.CLEAR:
            wrong.append((flags, outcome, answer))
        if "not-finite" in says[-1]:
            written = (tmp_path / f"run-{number}" / says[-1]).read_text("utf-8")
            assert written.count("the ") in (4, 8), written
    assert wrong == []


def test_what_hides_a_run_that_learns_nothing_or_scatters_it(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BROKEN))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ok.txt").write_text(TEXTS, encoding="utf-8")
    make_encoder(tmp_path / "tiny")
    words = "train --data ok.txt --model ./tiny --dev none --train.batch_size 8 --train.max_steps 3"
    zeros = cse(*f"{words} --pool cls --pool +bent --pool.bent.how zeros --out zeros".split())
    assert zeros.code == 2 and "encoder: had no gradient in the first 3 steps" in zeros.errors[-1]
    assert cse(*f"{words} --aug writes-late --out late".split()).code == 0, "seen in the first step"
    moves = cse(*f"{words} --loss wrong --loss.wrong.how moves --out moves".split())
    assert moves.code == 0 and "model: moves/model" in moves.out
    assert (tmp_path / "moves/model/README.md").is_file() and not Path("/moves").exists()
