"""Scores of ``cse eval`` in the card of a run: the last of each set, beside what people wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.runtime.atomic_files import atomic_write
from cse_core.training.run_folder import EVALUATIONS

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

BASELINES = ("tfidf", "jaccard")
"""Scores of words alone, which say nothing of the model."""
BEGIN, END = "<!-- scores of cse eval -->", "<!-- end of scores -->"
_PLACE = re.compile(rf"{BEGIN}.*?{END}\n*", re.DOTALL)
_BEFORE = "## Use it"
_BY = "encoder"
"""The setting by which these results are known among the others of a card."""


def add_evaluations(run: Path) -> None:
    """Write what ``evaluations.jsonl`` of a run keeps into the card of its model.

    Results of training and every other line of the card stay as they are.

    Raises:
        OSError: If a file cannot be read or written.
        ValueError: If the card's metadata or a line of evaluations cannot be read.
    """
    from huggingface_hub import ModelCard

    path = run / "model" / "README.md"
    card = ModelCard(path.read_text(encoding="utf-8"))
    found = list(_results(run))
    kept = [
        each for each in card.data.get("eval_results") or () if _BY not in (each.metric_args or {})
    ]
    card.data["eval_results"] = [*kept, *found]
    card.data["model_name"] = card.data.get("model_name") or "cse"
    section = "\n".join([BEGIN, "## Evaluation", "", *_table(found), END, "", ""])
    text = _PLACE.sub("", card.text)
    head, mark, rest = text.partition(_BEFORE)
    card.text = f"{head}{section}{mark}{rest}" if mark else f"{text.rstrip()}\n\n{section}"
    atomic_write(path, str(card).rstrip("\n") + "\n")


def _results(run: Path) -> Iterator[EvalResult]:
    """Yield the last score of each set and number under each way to encode."""
    from huggingface_hub import EvalResult

    last: dict[tuple[str, str, str], EvalResult] = {}
    lines = (run / EVALUATIONS).read_text(encoding="utf-8").splitlines()
    for line in map(json.loads, lines):
        for name, scores in line["results"].items():
            setting = {
                _BY: line["encoder"],
                **{key: scores[key] for key in ("setting", "seeds") if scores.get(key)},
                "cse_version": line["version"],
            }
            for number, value in scores.items():
                if not isinstance(value, float) or number in BASELINES:
                    continue
                graded = number == "spearman"
                last[name, number, line["encoder"]] = EvalResult(
                    task_type="sentence-similarity" if graded else "feature-extraction",
                    dataset_type=name,
                    dataset_name=name,
                    dataset_split=scores.get("split") or None,
                    metric_type="cos_sim_spearman" if graded else number,
                    metric_name="Spearman x100 of cosines" if graded else number,
                    metric_value=round(value, 2),
                    metric_args=setting,
                )
    yield from last.values()


def _table(found: list[EvalResult]) -> Iterator[str]:
    yield "| set | split | number | value | setting |"
    yield "| --- | --- | --- | --- | --- |"
    for each in found:
        args: dict[str, Any] = each.metric_args or {}
        setting = "; ".join(
            [args[_BY], *(f"{key} {args[key]}" for key in ("setting", "seeds") if key in args)]
        )
        cells = (each.dataset_name, each.dataset_split or "", each.metric_name or each.metric_type)
        line = (*cells, f"{each.metric_value:.2f}", setting)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
