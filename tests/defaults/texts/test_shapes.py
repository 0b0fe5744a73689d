"""Files as this field has them, after the public formats: the plan says what each column is for."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from cse_testkit import tiny_corpus
from cse_testkit.batches import tiny_tokenizer

import cse
from cse_cli.plugins.installed import Installed
from cse_defaults.texts import Corpus
from cse_engine.run.prepare import training_corpus
from tests.fixtures.methods import refusal

A, B, C, D = "A man is eating.", "A man eats food.", "Nobody is eating.", "The sky is dark."
PASSAGES = [{"docid": "d1", "title": "Food", "text": B}, {"docid": "d2", "title": "", "text": D}]
TRIPLET = {"text": A, "positive": B, "negative": C}
TITLED = TRIPLET | {"positive": f"Food\n{B}"}
PAIR = {"text": A, "positive": B}
ALONE = {"text": A}


def csv(header: str, *fields: str) -> str:
    quoted = ",".join(f'"{field}"' for field in fields)
    return f"{header}\n{quoted}\n"


def objects(**row: Any) -> str:
    return json.dumps(row) + "\n"


SHAPES: dict[str, tuple[str, str, dict[str, str], str]] = {
    "sentence-transformers, pairs": ("a.csv", csv("anchor,positive", A, B), PAIR, ""),
    "sentence-transformers, triplets": (
        "a.csv", csv("anchor,positive,negative", A, B, C), TRIPLET, ""),
    "sentence-transformers, n-tuples": (
        "a.csv", csv("anchor,positive,negative_1,negative_2", A, B, C, D), TRIPLET, ""),
    "negatives that recur": (
        "a.csv", csv("anchor,positive,negative_1,negative_2", A, B, C, "Rome")
        + "".join(f"{A} {n},{B} {n},{C} {n},Rome\n" for n in range(12)), TRIPLET, ""),
    "sentence-transformers, arrays": ("a.jsonl", json.dumps([A, B, C]) + "\n", TRIPLET, ""),
    "sentence-transformers, sets": ("a.jsonl", objects(set=[A, B, D]), PAIR, ""),
    "sentence-transformers, examples": ("a.jsonl", objects(texts=[A, B]), PAIR, ""),
    "sentence-transformers, examples with ids": (
        "a.jsonl", objects(id=7, guid="q7", texts=[A, B, C]), TRIPLET, ""),
    "sentence-transformers, graded examples": (
        "a.jsonl", objects(texts=[A, B], label=0.8), {}, "label grades"),
    "all-nli, triplets": ("a.csv", csv("anchor,entailment,contradiction", A, B, C), TRIPLET, ""),
    "gooaq": ("a.jsonl", objects(question=A, answer=B, id=4), PAIR, ""),
    "natural questions": ("a.csv", csv("query,answer", A, B), PAIR, ""),
    "ms marco": ("a.tsv", f"query\tpassage\n{A}\t{B}\n", PAIR, ""),
    "squad": ("a.jsonl", objects(id="5x", title="Food", context=B, question=A,
                                 answers={"text": ["man"], "answer_start": [2]}), PAIR, ""),
    "FlagEmbedding": ("a.jsonl", objects(query=A, pos=[B], neg=[C, D], pos_scores=[0.9],
                                         neg_scores=[0.1, 0.2], prompt=""), TRIPLET, ""),
    "tevatron": ("a.jsonl", objects(query_id="1", query=A, positive_passages=PASSAGES,
                                    negative_passages=[{"docid": "3", "title": "", "text": C}]),
                 TITLED, "titles stand before the texts of positive_passages"),
    "DPR": ("a.json", json.dumps([{"question": A, "answers": ["food"], "positive_ctxs": PASSAGES,
                                   "hard_negative_ctxs": [{"title": "", "text": C}]}]),
            TITLED, "(without them: --data.titles none)"),
    "BEIR, corpus": ("a.jsonl", objects(_id="d1", title="Food", text=A, metadata={}), ALONE, ""),
    "BEIR, judgements": ("a.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t1\n", {}, "no column text"),
    "SimCSE, supervised": ("a.csv", csv("sent0,sent1,hard_neg", A, B, C), TRIPLET, ""),
    "SimCSE, unsupervised": ("a.txt", f"{A}\n{B}\n", ALONE, ""),
    "NLI": ("a.tsv", f"premise\thypothesis\tlabel\n{A}\t{B}\tentailment\n", ALONE,
            "data.columns.positive=hypothesis takes every pair"),
    "SNLI": ("a.jsonl", objects(annotator_labels=["neutral"], gold_label="neutral", pairID="1c",
                                sentence1=A, sentence2=B), ALONE,
             "data.columns.positive=sentence2 takes every pair"),
    "Quora": ("a.csv", csv("id,qid1,qid2,question1,question2,is_duplicate",
                           "0", "1", "2", A, B, "1"), ALONE,
              "data.columns.positive=question2 takes every pair"),
    "STS": ("a.csv", csv("split,genre,score,sentence1,sentence2", "train", "news", "4.2", A, B),
            ALONE, "data.columns.positive=sentence2 takes every pair"),
    "SICK": ("a.tsv", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
             f"1\t{A}\t{B}\t4.5\tNEUTRAL\n", ALONE,
             "data.columns.positive=sentence_B takes every pair"),
    "instructions": ("a.jsonl", objects(instruction=A, input="", output=B), PAIR, ""),
    "parallel texts": ("a.tsv", f"en\tde\n{A}\tEin Mann isst.\n", ALONE,
                       "views.positive.column=fraternal"),
    "quoted by pandas": ("a.tsv", f'"text"\t"positive"\n"{A}"\t"{B}"\n',
                         {"text": f'"{A}"', "positive": f'"{B}"'}, "?quotes=yes"),
    "another pair": ("a.csv", csv("text,summary", A, B), ALONE, "views.positive.column=summary"),
    "counts by year": ("a.csv", csv("text,positive_2023,positive_2024", A, "1", "2"), ALONE, ""),
    "labels alone": ("a.jsonl", objects(id=1, label="neutral"), {}, "no column text"),
    "lists of words": ("a.jsonl", objects(text=A.split()), {}, "text (lists)"),
}  # fmt: skip


def test_shapes(tmp_path: Path) -> None:
    plugins = Installed()
    for shape, (name, content, used, said) in SHAPES.items():
        path = tmp_path / name
        header, _, rows = (
            content.partition("\n") if path.suffix in (".csv", ".tsv") else ("", "", content)
        )
        rows = json.dumps(json.loads(rows) * 2) if path.suffix == ".json" else rows * 2
        path.write_text("\n".join(filter(None, (header, rows))), encoding="utf-8")
        try:
            plan = cse.plan(data=path, dev="none", options={"train.batch_size": 2})
        except cse.CseError as error:
            assert not used and said in str(error), (shape, str(error))
            continue
        read = {view.name: view.column for view in plan.composition.views}
        assert read["positive"] == ("positive" if "positive" in used else "text"), (shape, read)
        assert said in "\n".join(plan.warnings), (shape, plan.warnings)
        pairs = cse.plan("pairs", data=path, dev="none") if "positive" in used else plan
        corpus = training_corpus(pairs.composition, plugins.registry, plugins.read)
        first = corpus.table.to_pylist()[0]
        if shape == "FlagEmbedding":
            assert list(corpus.column("negative")) == [C, D] * 2
        assert {name: first[name] for name in used} == used, shape
        assert ("negative" in {view.name for view in pairs.composition.views}) == (
            "negative" in used
        ), shape


def test_titles_of_passages_stand_before_their_texts_or_are_left_out(tmp_path: Path) -> None:
    rows = [{"query": A, "positive_passages": PASSAGES, "title": "Meals"}] * 2
    path = tmp_path / "a.jsonl"
    path.write_text("".join(objects(**row) for row in rows))
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for file in (path, tmp_path / "a.parquet"):
        for titles, first in (("before", f"Food\n{B}"), ("none", B)):
            plan = cse.plan("pairs", data=file, dev="none", options={"data.titles": titles})
            corpus = training_corpus(plan.composition, Installed().registry, Installed().read)
            assert [*corpus.column("positive")] == [first, D] * 2
            assert {*corpus.column("title")} == {"Meals"}  # a view of its own is one still


def test_files_of_arrow_and_compressed_ones(tmp_path: Path) -> None:
    rows = datasets.Dataset.from_dict({"query": [A, C], "pos": [[B], [D]]})
    rows.save_to_disk(tmp_path / "saved")
    datasets.DatasetDict(train=rows).save_to_disk(tmp_path / "splits")
    datasets.DatasetDict(dev=rows).save_to_disk(tmp_path / "dev")
    pyarrow.feather.write_feather(rows.data.table, str(tmp_path / "file.arrow"), "uncompressed")
    packed = pa.Codec("zstd").compress(b"".join(
        objects(**row).encode() for row in rows), asbytes=True)  # fmt: skip
    (tmp_path / "a.jsonl.zst").write_bytes(packed)
    for name in ("saved", "splits", "splits/train", "saved/data-00000-of-00001.arrow", "file.arrow",
                 "a.jsonl.zst"):  # fmt: skip
        plan = cse.plan("pairs", data=tmp_path / name, dev="none")
        assert (plan.composition.facts.rows, plan.composition.facts.columns) == (
            2, ("text", "positive")), name  # fmt: skip
    (tmp_path / "a.jsonl.zst").write_bytes(packed[:-9])
    (tmp_path / "b.jsonl.zst").write_bytes(b'{"n": 1}')
    (tmp_path / "c.arrow").write_bytes(b"ARROW1 no arrow")
    for name, said in (
        ("a.jsonl.zst", "cut short or damaged"),
        ("b.jsonl.zst", "no column text"),
        ("c.arrow", "not a complete arrow file"),
        ("dev", "no split train"),
    ):
        with pytest.raises(cse.CseError, match=said):
            cse.plan(data=tmp_path / name, dev="none")


def test_what_a_column_holds_never_overrides_its_name(tmp_path: Path) -> None:
    """Words, numbers and texts that recur are answers and queries too; of other names, none is."""
    for name, query, answer in (
        ("query,answer", "world news", f"{A} {{}}"), ("question,answer", f"{A} {{}}", "{}"),
        ("anchor,pos", f"{A} {{}}", "Rome"), ("question,answer", f"{A} {{}}", "d{}"),
    ):  # fmt: skip
        path = tmp_path / "pairs.csv"
        rows = (f"{query},{answer}".replace("{}", str(n)) for n in range(60))
        path.write_text("\n".join([name, *rows]))
        plan = cse.plan(data=path, dev="none")
        assert plan.composition.facts.columns == ("text", "positive"), name
        assert [view.column for view in plan.composition.views] == ["text", "positive"], name
    for header, cell in (("of,what", "Rome"), ("query,of", "{n}"), ("query,of", "d{n}")):
        rows = [f"{cell},{A} {n}".replace("{n}", str(n)) for n in range(60)]
        path.write_text("\n".join([header, *rows]))
        with pytest.raises(cse.CseError, match="no column text"):
            cse.plan(data=path, dev="none")


def test_graded_pairs_are_for_losses_that_read_the_grades(tmp_path: Path) -> None:
    for pair, grade in (("sentence1,sentence2", "score"), ("premise,hypothesis", "label")):
        path = tmp_path / "graded.csv"
        path.write_text("\n".join([f"{pair},{grade}", f"{A},{B},1", f"{B},{A},0"]))
        with pytest.raises(cse.CseError, match=f"{grade} grades the pairs of .* takes all"):
            cse.plan("pairs", data=path, dev="none")
        every = {"data.columns.positive": pair.partition(",")[2]}
        assert cse.plan("pairs", data=path, dev="none", options=every).composition.facts.rows == 2
        for recipe in ("simcse", None):
            views = cse.plan(recipe, data=path, dev="none").composition.views
            assert [view.column for view in views] == ["text", "text"]
        columns = {"loss.cosent.column": grade}
        graded = cse.plan("cosent", data=path, dev="none", options=columns).composition
        assert [view.column for view in graded.views] == ["text", "positive"]


WRITTEN = ("['{}', 'b']", '["{}", "b"]', "['{}' 'b']", "('{}',)", "{'{}', 'b'}", "b'{}'",
           '[{"text": "{}"}]')  # fmt: skip
NOT_WRITTEN = ("[{}] of old", "({}, he said)", '{"text": "{}"}', '"{}" he said', "[{}]", "b {}")


def test_lists_and_bytes_written_as_texts(tmp_path: Path) -> None:
    """They are refused where they are read and are most of a column; brackets are texts too."""
    for cells in (*((cell,) * 3 for cell in WRITTEN), ("[]", "['{}']", A)):
        rows = [{"query": f"{A} {n}", "pos": cell.replace("{}", B)} for n, cell in enumerate(cells)]
        path = tmp_path / "pairs.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        with pytest.raises(cse.CseError, match="pairs.jsonl: column pos holds lists or bytes"):
            cse.plan("pairs", data=path, dev="none")
        alone = {"data.columns.text": "query"}
        assert cse.plan("simcse", data=path, dev="none", options=alone).composition.facts.rows == 3
        path.write_text("\n".join(json.dumps({"text": row["pos"]}) for row in rows))
        with pytest.raises(cse.CseError, match="pairs.jsonl: column text holds lists or bytes"):
            cse.load("starter").search(A, data=path)
    for cells in (*((cell,) * 3 for cell in NOT_WRITTEN), ("['{}']", A, B)):
        rows = [{"text": cell.replace("{}", f"{B} {n}")} for n, cell in enumerate(cells)]
        assert cse.plan("simcse", data=rows, dev="none").composition.facts.rows == 3, cells


def test_pieces_of_texts() -> None:
    tokenizer = tiny_tokenizer()
    corpus = tiny_corpus(columns=("document", "title", "positive"))
    cut = corpus.pieces(tokenizer, 5)
    lengths = tokenizer.content(cut.column("text")[:]).lengths
    assert int(lengths.max()) == 5 and int(lengths.min()) >= 1
    assert len(cut) > len(corpus) and cut.names == ("text", "document", "title")
    whole = "".join(corpus.column("text")[:]).replace(" ", "")
    assert "".join(cut.column("text")[:]).replace(" ", "") == whole
    line = refusal(corpus.pieces, tokenizer, 5, ("positive",))
    assert "positive" in line and "data.split_tokens" in line
    texts = ["boat boat boat boat boat", "boat", "boat boat boat", "\u200b"]
    corpus = Corpus.from_columns({"text": texts, "document": list("abaa"), "title": list("xyzz")})
    cut = corpus.pieces(tokenizer, 2)
    pieces = ["boat boat", "boat boat", "boat", "boat", "boat boat", "boat", "\u200b"]
    assert cut.column("text")[:] == pieces, "a text without a token stays"
    assert cut.column("title")[:] == list("xxxyzzz")
    assert cut.documents is not None and cut.documents.tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert cut.report.messages[-1] == "4 texts cut into 7 of at most 2 tokens"
    assert cut.fingerprint != corpus.fingerprint
    assert cut.fingerprint == corpus.pieces(tokenizer, 2).fingerprint
