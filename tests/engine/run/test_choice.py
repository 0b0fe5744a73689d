"""What a run keeps: its best weights, an average with the start's, or the start's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cse_core.parts import Metric
from cse_core.suites import DevSet, Encode, Verdict
from cse_defaults.texts import Corpus
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.checkpoint import Checkpoint, averaged
from cse_engine.run.fingerprints import folder_sums
from cse_engine.run.run_folder import RunFolder
from cse_engine.run.selection import Best, Choice, Scorer, choose
from cse_engine.run.signals import Stopped
from tests.engine.run.test_runs import stop_after
from tests.fixtures.tiny import composed, dev_scorer, metrics, sentences, trainer

AT: dict[str, float] = {}
"""What the model's only weight is now."""


class Peak(DevSet):
    """A score that is highest where the weight is ``size / 10``; its answer is the weight."""

    def measure(self, encode: Encode, metrics: Mapping[str, Metric]) -> dict[str, float]:
        return {"near": 100 - abs(AT["w"] - self.size / 10)}

    def answers(self, encode: Encode) -> NDArray[np.float64] | None:
        return np.array([AT["w"]]) if len(self.choices) == 1 else None

    def verdict(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> Verdict:
        return Verdict(f"{start[0]:g} to {end[0]:g}", bool(end[0] > start[0]))


class Silent(Peak):
    """A set that cannot tell."""

    def verdict(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> Verdict:
        return Verdict("cannot tell", None)


REJECTED: list[tuple[str, float]] = []
"""Why weights were rejected, and the weight."""


def chosen(
    peak: int,
    end: float,
    merge: Sequence[float] = (),
    *,
    start: bool = True,
    judges: bool = True,
    sets: Sequence[type[Peak]] = (Peak,),
) -> Choice:
    """Choose between a start of weight 1 and an end; the score is best at ``peak / 10``."""
    choices = ("near",) if judges else ("near", "far")
    scorer = Scorer([kind("set", choices, peak) for kind in sets], "set")
    REJECTED.clear()
    weights = {0: 1.0, 5: end}

    def best(step: int) -> Best:
        score = 100 - abs(weights[step] - peak / 10)
        return Best(score, step, 0, {"set.near": score})

    scorer.of_run, scorer.start = best(5), best(0)

    def read(place: Best) -> Checkpoint:
        return Checkpoint({"encoder.w": torch.tensor(weights[place.step])})

    def restore(checkpoint: Checkpoint) -> None:
        AT["w"] = float(checkpoint.tensors["encoder.w"])

    encode: Any = lambda texts: torch.zeros(len(texts), 1)  # noqa: E731
    options = TrainOptions(select_start=start, merge=(*merge,) if start else ())

    def reject(why: str) -> None:
        REJECTED.append((why, AT["w"]))

    given: Any = {"read": read, "restore": restore, "reject": reject, "encode": encode}
    return choose(scorer, options, metrics={}, **given)


def test_the_best_weights_are_kept_where_nothing_asks_for_more() -> None:
    choice = chosen(30, 3.0, (0.5,), start=False)
    assert (choice.best.step, choice.why, choice.verdicts) == (5, "step 5 by set.near = 100.00", ())
    assert AT["w"] == 3.0
    choice = chosen(30, 3.0, judges=False)
    assert (choice.best.step, choice.verdicts, AT["w"]) == (5, (), 3.0)


def test_the_average_with_the_best_score_is_kept() -> None:
    choice = chosen(20, 2.8, (0.25, 0.5, 0.75))
    assert AT["w"] == pytest.approx(1.9) and choice.best.score == pytest.approx(99.9)
    assert choice.best.scores == {"set.near": pytest.approx(99.9)}
    assert choice.why == "0.5 of step 5, 0.5 of the start by set.near = 99.90"
    assert choice.verdicts == ("1 to 1.9",)
    assert chosen(35, 3.5, (0.2, 0.4)).why == "step 5 by set.near = 100.00" and AT["w"] == 3.5


def test_the_start_is_kept_where_the_run_is_no_better() -> None:
    choice = chosen(10, 3.0, (0.5,))
    assert AT["w"] == 2.0 and choice.verdicts == ("1 to 2",), "what chooses may be at its ceiling"
    choice = chosen(10, 3.0, (0.5,), judges=False)
    why = "the start, set.near = 100.00"
    assert (choice.best.step, choice.why) == (0, why)
    assert choice.verdicts == (f"no better: no step scores above {why}",)
    assert AT["w"] == 1.0
    choice = chosen(-20, -2.0)
    why = "the start, set.near = 97.00"
    assert (choice.best.step, choice.why) == (0, why) and AT["w"] == 1.0
    assert choice.verdicts == ("1 to -2", f"kept {why}"), "the verdict asks what chose nothing"
    assert REJECTED == [("rejected: step 5 by set.near = 100.00", -2.0)]


def test_sets_that_cannot_tell_leave_the_choice_to_others() -> None:
    for sets, kept in (([Silent], 1.0), ([Silent, Silent], 1.0), ([Silent, Peak], 3.0)):
        choice = chosen(30, 3.0, sets=sets)
        assert AT["w"] == kept and choice.verdicts[0] == "cannot tell"
        assert bool(REJECTED) == (kept == 1.0)


def test_averages_are_of_the_encoder_alone() -> None:
    start, end = (
        Checkpoint({"encoder.w": torch.tensor([value, 2.0]), "part.pool.w": torch.tensor(value),
                    "encoder.n": torch.tensor(int(value))})
        for value in (1.0, 3.0)
    )  # fmt: skip
    found = averaged(start, end, 0.25).tensors
    assert found["encoder.w"].tolist() == [1.5, 2.0]
    assert (float(found["part.pool.w"]), int(found["encoder.n"])) == (3.0, 3)


def test_a_run_scores_its_start_and_resumes(encoder: str, folder: Path) -> None:
    texts = sentences(60)
    corpus, results = Corpus.from_columns({"text": texts}), []
    for name, rate, stop in (("kept", 0.0, 0), ("whole", 1e-2, 0), ("parts", 1e-2, 5)):
        sets = ["train.select_start=true", "train.merge=[0.5]", "train.eval_steps=4",
                "train.max_steps=8", f"train.lr={rate}"]  # fmt: skip
        made = composed(encoder, "", *sets, folder=folder, rows=60)
        run, _ = trainer(made, corpus, folder / name, scorer=dev_scorer(texts))
        if stop:
            stop_after(run, stop)
            with pytest.raises(Stopped):
                run.run()
            run, _ = trainer(made, corpus, folder / name, scorer=dev_scorer(texts))
        saved = RunFolder(folder / name).checkpoint(0, stop)
        results.append(run.run(Checkpoint.read(saved) if stop else None))
    kept, whole, parts = results
    assert kept.step == 0 and kept.verdicts[0].startswith(
        "no better: no step scores above the start"
    )
    assert kept.score == kept.start == whole.start
    assert metrics(folder / "parts") == metrics(folder / "whole")
    assert (parts.step, parts.score, parts.start) == (whole.step, whole.score, whole.start)


def test_members_of_an_ensemble_are_in_the_sums_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "members" / "one" / "1_Dense").mkdir(parents=True)
    names = {"cse.json", "members/one/model.safetensors", "members/one/1_Dense/config.json"}
    for name in names:
        (tmp_path / name).write_text("{}")
    assert {*folder_sums(tmp_path)} == names
