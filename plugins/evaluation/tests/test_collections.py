"""Judged queries: both layouts, measures against a slow loop and another library, BM25, prompts."""

import gzip
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_evaluation.collection_files import DEV_SPLITS, find_collections, is_collection
from cse_evaluation.collections import Collection, read_collection
from cse_evaluation.ranking import (
    MEASURES,
    CollectionDevSet,
    Ranker,
    mean_scores,
    measure_vectors,
    score_collection,
    score_words,
)
from cse_evaluation.suites import Collections
from cse_study.measures import read_items
from cse_study.results.bootstrap import hits_of
from cse_testkit import compose
from cse_testkit.runs import Rig, installed_registry

import cse as api
from cse_core.errors import CseError
from cse_core.loading import package_path
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.dev_sets import dev_sets
from cse_engine.run.selection import Scorer
from tests.fixtures.command_line import Cse, refused
from tests.shared import shared_path

DOCUMENTS = {
    "1": ("Boats", "a boat on the sea"),
    "2": ("", "the sea is cold"),
    "10": ("Lamps", "a lamp in the garden"),
    "9": ("Lamps", "a lamp in the garden"),
    "x y": ("Bells", "the bell rang"),
    "ä": ("", "der Garten"),
}
QUERIES = {"q1": "cold sea", "q2": "garden lamp", "q3": "bell", "q4": "nobody judged this"}
JUDGED = {"q1": {"1": 1, "2": 2}, "q2": {"9": 1, "10": 0, "ä": 3}, "q3": {"x y": 1, "1": 0}}


def lines(path: Path, records: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(
        each if isinstance(each, str) else json.dumps(each) + "\n" for each in records
    )
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(content)


def beir(folder: Path, end: str = "", judged: Mapping[str, Mapping[str, int]] = JUDGED) -> Path:
    lines(
        folder / f"corpus.jsonl{end}",
        [{"_id": k, "title": t, "text": x, "metadata": {}} for k, (t, x) in DOCUMENTS.items()],
    )
    lines(folder / f"queries.jsonl{end}", [{"_id": k, "text": x} for k, x in QUERIES.items()])
    rows = [f"{q}\t{d}\t{n}\n" for q, own in judged.items() for d, n in own.items()]
    lines(folder / "qrels" / f"test.tsv{end}", ["query-id\tcorpus-id\tscore\n", *rows])
    return folder


def letters(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    rows = [[text.lower().count(chr(c)) for c in range(97, 123)] for text in texts]
    return np.array(rows, dtype=np.float32)


def slow(scores: Mapping[str, Mapping[str, float]], judged: Any) -> list[list[float]]:
    """Return ``MEASURES`` of each query by a loop over its ranking."""
    found = []
    for query, own in scores.items():
        order = sorted(own, key=lambda d: (own[d], d.encode()), reverse=True)[:1000]
        gains = [max(judged[query].get(d, 0), 0) for d in order]
        relevant = sum(n > 0 for n in judged[query].values())
        ideal = sorted((max(n, 0) for n in judged[query].values()), reverse=True)
        dcg = [sum(g / math.log2(r + 2) for r, g in enumerate(x[:10])) for x in (gains, ideal)]
        hits = [rank for rank, gain in enumerate(gains, 1) if gain]
        found.append([
            dcg[0] / dcg[1],
            sum(rank <= 10 for rank in hits) / relevant,
            sum(rank <= 100 for rank in hits) / relevant,
            1 / hits[0] if hits and hits[0] <= 10 else 0.0,
            sum(n / rank for n, rank in enumerate(hits, 1)) / relevant,
        ])  # fmt: skip
    return found


def test_measures_equal_a_slow_loop() -> None:
    draw = np.random.default_rng(3)
    ids = [str(n) for n in range(1300)]
    documents = {each: f"text {int(each) % 1250}" for each in ids}
    queries = {f"q{n}": f"query {n}" for n in range(12)}
    judged = {
        query: {str(d): int(draw.integers(-1, 4)) for d in draw.integers(0, 1310, 40)} | {"7": 1}
        for query in queries
    }
    ranker = Ranker(Collection("a.test", documents, queries, judged))
    assert len(ranker.texts) == 1250
    scores = draw.integers(0, 300, (12, 1250)).astype(np.float32)
    scores[3] = 1.0  # all are equal
    scores[4, 40:] = -np.inf  # few are ranked
    scores[5] = -np.inf
    by_text = {text: place for place, text in enumerate(ranker.texts)}
    whole = {
        query: {d: row[by_text[t]] for d, t in documents.items() if row[by_text[t]] > -np.inf}
        for query, row in zip(queries, scores, strict=True)
    }
    found = ranker.measure(block for block in (scores[:5], scores[5:]))
    assert found.shape == (12, len(MEASURES)) and not found[5].any()
    assert np.allclose(found, slow(whole, judged), atol=1e-9)


@pytest.mark.parametrize("end", ["", ".gz"])
def test_the_layout_of_beir(tmp_path: Path, end: str) -> None:
    found = read_collection(beir(tmp_path / "small", end))
    assert found.name == "small.test" and found.split == "test"
    assert found.documents["1"] == "Boats a boat on the sea"
    assert found.documents["2"] == "the sea is cold"
    assert list(found.queries) == ["q1", "q2", "q3"] and found.judgements == JUDGED
    assert found.counts == {"queries without judgements left out": 1}
    assert found.note == "small.test: 1 queries without judgements left out"


@pytest.mark.parametrize("form", ["header", "bare", "jsonl"])
def test_the_layout_of_trec(tmp_path: Path, form: str) -> None:
    rows = [f"{k.replace(' ', '-')}\t{t}\t{x}\n" for k, (t, x) in DOCUMENTS.items()]
    if form == "jsonl":
        own = [{"docno": int(k) if k.isdigit() else k.replace(" ", "-"), "title": t, "contents": x}
               for k, (t, x) in DOCUMENTS.items()]  # fmt: skip
        lines(tmp_path / "docs.jsonl", own)
        topics = [f"<top>\n<num> Number: {k}\n<title> {x}\n\n<desc> Description:\nlong\n</top>\n"
                  for k, x in QUERIES.items()]  # fmt: skip
        lines(tmp_path / "topics.txt", topics)
    else:
        head = ["docid\ttitle\ttext\n"] if form == "header" else []
        lines(tmp_path / "documents.tsv", [*head, *rows])
        lines(tmp_path / "topics.tsv", [f"{k}\t{x}\n" for k, x in QUERIES.items()])
    judged = [f"{q} 0 {d.replace(' ', '-')} {n}\n" for q, o in JUDGED.items() for d, n in o.items()]
    if form == "bare":
        judged = [each.replace(" ", "\t") for each in judged]
    lines(tmp_path / "qrels.txt", judged)
    found, other = read_collection(tmp_path), read_collection(beir(tmp_path / "beir"))
    assert found.queries == other.queries
    assert found.documents == {k.replace(" ", "-"): v for k, v in other.documents.items()}
    assert found.judgements["q2"] == JUDGED["q2"]


def test_a_first_line_with_a_known_name_is_a_head(tmp_path: Path) -> None:
    lines(tmp_path / "documents.tsv", ["id\ttitle\turl\n", "1\tCats\thttp://a\n"])
    lines(tmp_path / "topics.tsv", ["q\tcats\n"])
    lines(tmp_path / "qrels.txt", ["q 0 1 1\n"])
    assert read_collection(tmp_path).documents == {"1": "Cats"}
    lines(tmp_path / "topics.tsv", ["qid\tquery_text\n", "q\tcats\n"])
    with pytest.raises(CseError, match=r"topics.tsv, line 1: no column of texts .*; call one"):
        read_collection(tmp_path)


def test_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    folder = beir(tmp_path, judged={**JUDGED, "q4": {"1": 0}, "gone": {"1": 1}})
    more = ["q1\tnowhere\t1\n", "q1\t1\t0\n", "q1\t2\t2\n"]
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.writelines(more)
    with (folder / "corpus.jsonl").open("a") as file:
        file.write(json.dumps({"_id": 1, "text": "again"}) + "\n")
    found = read_collection(folder)
    assert found.documents["1"] == "again" and found.judgements["q1"]["1"] == 0
    assert found.counts == {
        "documents whose id stands again further down, where the last counts": 1,
        "judgements that contradict an earlier one, where the last counts": 1,
        "queries without a relevant document left out": 1,
        "judged queries that are not there": 1,
        "judgements of documents that are not there, which count as not found": 1,
    }
    first = score_collection(letters, found).items
    assert first is not None and first[0, 2] == 0.5  # one of two relevant documents is there


def test_splits_and_subfolders(tmp_path: Path) -> None:
    beir(tmp_path / "retrieval" / "one")
    two = beir(tmp_path / "retrieval" / "two")
    lines(two / "qrels" / "dev.tsv", ["query-id\tcorpus-id\tscore\n", "q3\tx y\t1\n"])
    (two / "qrels" / "README.md").write_text("about")
    assert list(find_collections(tmp_path / "retrieval")) == ["one", "two"]
    assert list(Collections().locate(tmp_path).there) == ["one", "two"]
    assert Collections().locate(tmp_path / "none").missing == ("any test collection",)
    assert read_collection(two).name == "two.test"
    assert read_collection(two, DEV_SPLITS).name == "two.dev"
    assert list(read_collection(two / "qrels" / "dev.tsv").queries) == ["q3"]
    assert is_collection(two / "qrels" / "dev.tsv") and not is_collection(two / "corpus.jsonl")


def test_one_of_several_judgements_must_be_named(tmp_path: Path) -> None:
    folder = beir(tmp_path)
    judged = (folder / "qrels" / "test.tsv").read_text()
    (folder / "qrels" / "2024.tsv").write_text(judged)
    assert "files of judgements are not scored (2024.tsv)" in read_collection(folder).note
    assert read_collection(folder / "qrels" / "2024.tsv").name.endswith(".2024")
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "2023.tsv")
    with pytest.raises(CseError, match="several files of judgements: 2023, 2024"):
        read_collection(folder)


def test_a_query_that_is_a_document_does_not_find_itself(tmp_path: Path) -> None:
    """As BEIR scores ArguAna: equal ids; an id that is equal by chance has another text."""
    folder = beir(tmp_path)
    queries = {"1": "a boat on the sea", "2": "cold sea"}
    lines(folder / "queries.jsonl", [{"_id": k, "text": x} for k, x in queries.items()])
    judged = ["1\t2\t1\n", "2\t2\t1\n"]
    lines(folder / "qrels" / "test.tsv", ["query-id\tcorpus-id\tscore\n", *judged])
    collection = read_collection(folder)
    assert collection.own_documents == {"1"}
    assert "1 queries that are documents themselves" in collection.note
    ranker = Ranker(collection)
    same = np.array([[float(text == "Boats a boat on the sea") + 0.1 * ("cold" in text)
                      for text in ranker.texts]] * 2)  # fmt: skip
    assert ranker.measure(iter([same])).tolist()[0][3] == 1  # the next document is its first
    # Its own text scales neither cosines nor words: only "cold sea" has a word of it.
    own = ranker.texts.index("Boats a boat on the sea")
    assert [*ranker.own_columns(["1", "2"])] == [(0, own)]
    near = np.array([[5.0 * (row == own) - 0.1 * row] for row in range(len(ranker.texts))])
    found = measure_vectors("dot", np.ones((2, 1)), near, ranker, collection)
    assert found[0, 3] == 1


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("qrels/test.tsv", "q1\t1\t4294967296\n", "at most 1,000"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\t1\thigh\n", "must be an integer"),
        ("qrels/test.tsv", "q1 1\n", "2 words"),
        ("qrels/test.tsv", "q1\tzzz\t1\n", "none of its documents"),
        ("qrels/test.tsv", "zzz\t1\t1\n", "no query has a relevant"),
        ("queries.jsonl", '{"_id": "q1", "text": " "}\n', "a query without a text"),
        ("queries.jsonl", '{"text": "a"}\n', "no id"),
        ("corpus.jsonl", '{"_id": true, "text": "a"}\n', "no id"),
        ("corpus.jsonl", '{"_id": "1", "body text": "a"}\n', "no text of the document"),
        ("corpus.jsonl", '{"_id": "1", "text": ["a"]}\n', "must be texts"),
        ("corpus.jsonl", '{"_id": "\\ud800", "text": "a"}\n', "half of a surrogate pair"),
        ("corpus.jsonl", None, "has no documents"),
        ("corpus.jsonl", '{"_id": "1", "title": NaN}\n', "no text of the document"),
    ],
)
def test_broken_collections_are_refused(
    tmp_path: Path, file: str, content: str | None, said: str
) -> None:
    folder = beir(tmp_path)
    (folder / file).unlink() if content is None else (folder / file).write_text(content)
    with pytest.raises(CseError, match=said) as refused:
        read_collection(folder)
    assert refused.value.where is not None and "\n" not in str(refused.value)


class Prompted:
    """An encoder that knows queries from documents."""

    similarity = "dot"

    def with_role(self, role: str) -> Callable[[Sequence[str]], np.ndarray[Any, Any]]:
        return lambda texts: letters(texts) * (-1 if role == "query" else 1)

    def __call__(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        raise AssertionError("every text is a query or a document")


def test_queries_and_documents_have_their_prompts(tmp_path: Path) -> None:
    collection = read_collection(beir(tmp_path))
    scores = (
        letters(list(collection.queries.values())) @ letters(list(collection.documents.values())).T
    )
    whole = {
        query: dict(zip(collection.documents, map(float, -row), strict=True))
        for query, row in zip(collection.queries, scores, strict=True)
    }
    found = score_collection(Prompted(), collection)
    assert found.setting == "query to title and text, dot, the first 1,000 documents"
    assert found.items is not None and np.allclose(found.items, slow(whole, JUDGED))


def test_bm25_equals_a_slow_loop(tmp_path: Path) -> None:
    collection = read_collection(beir(tmp_path))
    bags = {d: text.lower().split() for d, text in collection.documents.items()}
    distinct = list({tuple(bag): bag for bag in bags.values()}.values())  # a text counts once
    mean = sum(map(len, distinct)) / len(distinct)
    whole: dict[str, dict[str, float]] = {}
    for query, text in collection.queries.items():
        for document, bag in bags.items():
            score = 0.0
            for word in text.lower().split():
                holds = sum(word in other for other in distinct)
                idf = math.log(1 + (len(distinct) - holds + 0.5) / (holds + 0.5))
                count = bag.count(word)
                score += idf * count / (count + 1.5 * (0.25 + 0.75 * len(bag) / mean))
            if score:
                whole.setdefault(query, {})[document] = score
    found = score_words(collection)
    assert found["bm25"] == pytest.approx(mean_scores(np.array(slow(whole, JUDGED))), abs=1e-4)
    assert found["lexical"] == {"method": "lucene", "k1": 1.5, "b": 0.75, "units": "words"}


def test_vectors_and_words_are_fused_as_a_slow_loop_does(tmp_path: Path) -> None:
    collection = read_collection(beir(tmp_path))
    texts = list(dict.fromkeys(collection.documents.values()))
    whole: dict[str, dict[str, float]] = {}
    for query, text in collection.queries.items():
        near = (letters([text]) * -1 @ letters(texts).T)[0]
        said = collection.words.scores(text)
        mean, fused = float(sum(near)) / len(texts), {}
        for own, one, other in zip(texts, near, said, strict=True):
            fused[own] = 0.7 * (float(one) - mean) / (float(max(near)) - mean)
            fused[own] += 0.3 * float(other) / float(max(said)) if other else 0.0
        whole[query] = {document: fused[own] for document, own in collection.documents.items()}
    found = score_collection(Prompted(), collection, score_words(collection)).facts["with_bm25"]
    expected = mean_scores(np.array(slow(whole, JUDGED)))
    assert found == {"share": 0.3} | {name: round(value, 4) for name, value in expected.items()}
    plain = score_collection(Prompted(), collection)
    assert found["ndcg@10"] != round(plain.scores["ndcg@10"], 4) and "with_bm25" not in plain.facts


def _sentence_transformer(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        str(folder), device="cpu", model_kwargs={"dtype": torch.float32}, local_files_only=True
    )


def test_the_command_equals_sentence_transformers(cse: Cse, tmp_path: Path) -> None:
    """The same numbers as its evaluator; judgements of 0 and 1, which is all that it knows."""
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    judged = {q: {d: min(n, 1) for d, n in own.items()} for q, own in JUDGED.items()}
    judged["q2"]["10"] = 1  # as 9, whose text is the same: ties are ordered in other ways there
    folder = beir(tmp_path / "small", judged=judged)
    out = tmp_path / "items.tsv"
    words = ("eval", "starter", "--collections", str(folder), "--items-out")
    for named in (folder, folder / "qrels" / "test.tsv"):
        tried = ("eval", "starter", "--collections", str(named), "--items-out")
        refused(cse(*tried, str(folder / "queries.jsonl")), "is read by this command")
    said = cse(*words, str(out), "--json")
    assert said.code == 0, said.err
    assert "1 queries without judgements left out" in said.err
    found = json.loads(said.out)["results"]["small.test"]
    assert found["queries"] == 3 and found["documents"] == 6 and set(found["bm25"]) == {*MEASURES}
    collection = read_collection(folder)
    evaluator = InformationRetrievalEvaluator(
        dict(collection.queries),
        dict(collection.documents),
        {q: {d for d, n in own.items() if n} for q, own in judged.items()},
        map_at_k=[1000], mrr_at_k=[10], ndcg_at_k=[10], precision_recall_at_k=[6], write_csv=False,
    )  # fmt: skip
    theirs = evaluator(_sentence_transformer(package_path("cse_starter:encoder")))
    assert theirs is not None
    for ours, other in (("ndcg@10", "ndcg@10"), ("mrr@10", "mrr@10"), ("map", "map@1000")):
        assert found[ours] == pytest.approx(100 * theirs[f"cosine_{other}"], abs=1e-3), ours
    items = read_items(out)["small.test"]
    for name in MEASURES:
        hits = hits_of(items, name)
        assert hits is not None and 100 * hits.mean() == pytest.approx(found[name], abs=1e-3)


def test_levels_and_models_of_queries_rank_as_a_slow_loop_does(cse: Cse, tmp_path: Path) -> None:
    for name, pool in (("late", ["mean", "+token-vectors"]), ("asking", ["cls"])):
        rig = Rig(compose(kinds={"pool": pool}))
        rig.step(1)
        rig.session.save(tmp_path / name)
    found, (model, asking) = read_collection(beir(tmp_path / "c")), ("late", "asking")
    late, other = (api.load(str(tmp_path / name), device="cpu") for name in (model, asking))

    def scores(near: Callable[[str, str], float]) -> list[float]:
        ranked = {
            query: {doc: near(asked, text) for doc, text in found.documents.items()}
            for query, asked in found.queries.items()
        }
        return [*mean_scores(np.array(slow(ranked, found.judgements))).values()]

    def by_tokens(asked: str, text: str) -> float:
        one, many = late.encode_several([asked, text], normalize=True)
        return sum(max(float(a @ b) for b in many) for a in one)

    def by_another(asked: str, text: str) -> float:
        return float(
            other.encode([asked], normalize=True)[0] @ late.encode([text], normalize=True)[0]
        )

    ask = ("eval", str(tmp_path / model), "--collections", str(tmp_path / "c"), "--json")
    for words, near in (
        (("--level", "token"), by_tokens),
        (("--queries-model", str(tmp_path / asking)), by_another),
    ):
        (got,) = json.loads(cse(*ask, *words).out)["results"].values()
        assert [got[name] for name in MEASURES] == pytest.approx(scores(near), abs=1e-3)
        refused(cse("eval", "starter", "--data", "starter", *words), "there are no judged queries")
    both = cse(*ask, "--level", "token", "--queries-model", str(tmp_path / asking))
    refused(both, "compares vectors of one model")


def test_a_folder_chooses_the_checkpoint(tmp_path: Path) -> None:
    folder = beir(tmp_path / "small")
    sets = dev_sets(TrainOptions(dev=(str(folder),)), (), installed_registry(), pytest.fail)
    assert isinstance(sets[0], CollectionDevSet) and sets[0].choices == MEASURES
    scorer = Scorer(sets, None, "dot")
    assert scorer.select == "small.test.ndcg@10"
    asked: list[tuple[str, ...]] = []

    def encode(texts: Sequence[str], *role: str) -> torch.Tensor:
        asked.append(role)
        return torch.from_numpy(letters(texts))

    scores, better = scorer.score(encode, 1, 0, {})
    assert better and 0 < scores["small.test.ndcg@10"] < 100
    assert scores["small.test.effective_rank"] > 1
    assert asked == [("document",), ("query",)]
    with pytest.raises(CseError, match="has no queries"):
        (folder / "queries.jsonl").unlink()
        dev_sets(TrainOptions(dev=(str(folder),)), (), installed_registry(), pytest.fail)


def test_prompts_of_a_model_are_those_of_sentence_transformers(
    starter_copy: Path, tmp_path: Path
) -> None:
    """``query`` before queries, the first of document, passage and corpus before documents."""
    model = _sentence_transformer(starter_copy)
    model.prompts = {"query": "question: ", "passage": "passage: ", "corpus": "no: "}
    folder = tmp_path / "prompted"
    model.save(str(folder))
    texts = ["a boat on the sea", "the bell rang"]
    ours = api.TextEncoder(api.load(folder).loaded)
    assert np.allclose(ours.with_role("query")(texts), model.encode_query(texts), atol=1e-5)
    assert np.allclose(ours.with_role("document")(texts), model.encode_document(texts), atol=1e-5)
    assert np.allclose(ours(texts), model.encode(texts), atol=1e-5)
    own = api.TextEncoder(api.load(folder, prompt="no: ").loaded)
    assert np.allclose(own.with_role("query")(texts), own(texts))


def test_bm25_of_the_shared_collections() -> None:
    """Plausible numbers: Cranfield's and CISI's, whose documents are short and many."""
    found = {
        each: score_words(read_collection(path))["bm25"]["ndcg@10"]
        for each, path in find_collections(shared_path("data/retrieval")).items()
    }
    assert found["cranfield"] == pytest.approx(35.03, abs=0.01)
    assert found["cisi"] == pytest.approx(33.68, abs=0.01)
