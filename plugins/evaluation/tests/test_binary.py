from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from cse_evaluation.binary import BinaryScore, binary_score
from cse_evaluation.dev import PairDevSet
from cse_evaluation.pairs import PairSet, pairs_from_rows, spearman
from cse_evaluation.report import comparison_table, results_json, results_tables
from cse_evaluation.sts import evaluate_sts
from numpy.typing import NDArray
from rich.console import Console

from cse_core.errors import CseError
from cse_core.training.selection import Scorer

LABELS = [1, 0, 1, 1, 0, 0, 0, 1, 0, 0]


def labelled(name: str = "lcqmc.test") -> PairSet:
    """Chinese pairs labelled 1 where they share all but a character."""
    letters = "天地玄黄宇宙洪荒日月"
    rows = [
        {
            "text_a": f"{letters[i]}的问题是什么",
            "text_b": f"{letters[i]}的问题是什么呢" if label else f"怎么去{letters[i]}",
            "label": str(label),
        }
        for i, label in enumerate(LABELS)
    ]
    return pairs_from_rows(name, rows)


def slow_scores(labels: Sequence[int], values: NDArray[np.float64]) -> tuple[float, float]:
    """Average precision and ROC AUC by their definitions, for values without ties."""
    order = sorted(range(len(labels)), key=lambda i: -values[i])
    hits, precisions = 0, []
    for rank, i in enumerate(order, 1):
        if labels[i]:
            hits += 1
            precisions.append(hits / rank)
    above = [
        values[i] > values[j]
        for i in range(len(labels)) for j in range(len(labels)) if labels[i] and not labels[j]
    ]  # fmt: skip
    return 100 * sum(precisions) / hits, 100 * sum(above) / len(above)


def test_both_numbers_equal_their_definitions() -> None:
    values = np.random.default_rng(0).normal(size=len(LABELS))
    score = binary_score(LABELS, values)
    assert score is not None and score.positives == 4
    assert (score.average_precision, score.roc_auc) == pytest.approx(slow_scores(LABELS, values))
    perfect = np.array(LABELS) + 0.1 * np.arange(10)
    assert binary_score(LABELS, perfect) == BinaryScore(100.0, 100.0, 4)
    reached = spearman(LABELS, perfect)
    assert reached is not None and 80 < reached < 90  # ties keep it below 100


@pytest.mark.parametrize("gold", [[0.0, 0.5, 1.0], [1.0, 2.0, 1.0], [0.0, 5.0, 0.0]])
def test_graded_pairs_have_none(gold: list[float]) -> None:
    assert binary_score(gold, np.arange(3.0)) is None


def test_equal_values_are_a_random_ranking() -> None:
    score = binary_score(LABELS, np.zeros(10))
    assert score is not None and (score.average_precision, score.roc_auc) == pytest.approx((40, 50))


def test_results_dev_scores_and_tables_have_them(encoder: Any) -> None:
    results = evaluate_sts(encoder, [labelled()])
    said = results_json(results)["results"]["lcqmc.test"]
    assert said["binary"]["positives"] == 4
    assert said["binary"]["tfidf"]["roc_auc"] == 100.0
    assert said["lexical"]["units"] == "character 1-2-grams"
    dev = PairDevSet.of(labelled("lcqmc.dev")).score(encoder)
    assert dev["average_precision"] == pytest.approx(said["binary"]["average_precision"], abs=1e-3)
    for table in (*results_tables(results), comparison_table(results, results)):
        console = Console(width=300, record=True, file=open(os.devnull, "w"))
        console.print(table)
        text = " ".join(console.export_text().split())
        assert "TF-IDF and Jaccard: character 1-2-grams" in text
        assert "labels 0 and 1, 4 of 10 are 1" in text
        assert text.count("TF-IDF: average precision 100.00") == 1


def test_labelled_pairs_may_choose_by_average_precision() -> None:
    graded = pairs_from_rows(
        "dev", [{"sentence1": "a", "sentence2": b, "score": grade} for grade, b in enumerate("bcd")]
    )
    sets = [PairDevSet.of(labelled()), PairDevSet.of(graded)]
    assert Scorer(sets, "lcqmc.test").select == "lcqmc.test.spearman"
    scorer = Scorer(sets, "lcqmc.test.average_precision")

    def encode(texts: Sequence[str]) -> torch.Tensor:
        return torch.tensor([[len(text), text.count("问"), 1.0] for text in texts])

    scores, better = scorer.score(encode, 1, 0, None, {})
    assert better and scorer.of_round.score == scores["lcqmc.test.average_precision"]
    with pytest.raises(CseError, match="is not a dev score"):
        Scorer(sets, "dev.average_precision")
