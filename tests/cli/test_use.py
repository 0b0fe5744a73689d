"""``cse eval``, ``encode`` and ``data`` with the embedded encoder."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from cse_testkit import shared_encoder
from torch import Tensor

from cse_cli.models.encoding import TextEncoder, slice_length
from cse_cli.models.saved_model import SentenceModel, load
from cse_cli.plugins.installed import Installed
from cse_cli.texts.given import as_they_come
from cse_core.errors import CseError
from cse_defaults.texts import Corpus
from cse_defaults.words.bm25 import fuse
from tests.fixtures.command_line import Cse, Printed, refused
from tests.fixtures.tiny import composed, trainer


def test_eval_of_a_pair_file(cse: Cse, tmp_path: Path) -> None:
    pairs, out = tmp_path / "mine.test.tsv", tmp_path / "out.tsv"
    rows = ("score\tsentence1\tsentence2", "4.8\tA dog runs.\tA dog is running.",
            "2.0\tA dog runs.\tA cat sleeps.", "0.2\tThe judge spoke.\tBoats float.")  # fmt: skip
    pairs.write_text("\n".join(rows) + "\n", encoding="utf-8")

    def scored(*words: str) -> dict[str, Any]:
        said = cse("eval", str(shared_encoder()), "--pairs", str(pairs), "--json", *words)
        assert said.code == 0, said.err
        found: dict[str, Any] = json.loads(said.out)["results"]["mine.test"]
        return found

    result = scored("--pairs-out", str(out))
    assert (result["pairs"], result["setting"], result["split"]) == (3, "all", "test")
    assert -100 <= result["spearman"] <= 100
    assert {"tfidf", "jaccard", "alignment", "uniformity"} <= set(result)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4 and lines[1].split("\t")[1] == "4.8"

    def cosine(*words: str) -> float:
        found = scored("--no-baselines", *words)
        assert "tfidf" not in found
        return float(found["mean_cosine"]["value"])

    assert cosine() == cosine("--pooling", "mean") == cosine("--batch-tokens", "16")
    assert cosine() != cosine("--pooling", "cls")
    assert cosine() != cosine("--max-length", "4")


def test_encode_gives_one_vector_a_line(cse: Cse, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("a dog\n\na much longer sentence about boats\n", encoding="utf-8")
    out = tmp_path / "vectors.npy"
    said = cse("encode", "starter", str(texts), "--out", str(out))
    assert said.code == 0
    assert "3 vectors of 256 numbers" in said.err
    vectors = np.load(out)
    assert (vectors.shape, vectors.dtype) == ((3, 256), np.float32)
    lines = [json.loads(line) for line in cse("encode", "starter", str(texts)).out.splitlines()]
    assert [line["text"] for line in lines] == ["a dog", "", "a much longer sentence about boats"]
    written = np.asarray([line["vector"] for line in lines], dtype=np.float32)
    np.testing.assert_array_equal(written, vectors)
    table = tmp_path / "texts.tsv"
    table.write_text("foo\tbar\n1\ta dog\n2\ta boat\n", encoding="utf-8")
    column = ("--set", "data.columns.text=bar")
    lines = cse("encode", "starter", str(table), *column).out.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["a dog", "a boat"]
    assert json.loads(cse("data", "stats", str(table), *column, "--json").out)["rows"] == 2
    assert cse("data", "show", str(table), *column, "--rows", "1").out.count("a dog") == 1


def test_encode_in_blocks_and_to_unit_length_is_the_same(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts, unit = (tmp_path / name for name in ("whole.npy", "parts.npy", "unit.jsonl"))
    cse("encode", "starter", str(sentences), "--out", str(whole))
    monkeypatch.setattr("cse_cli.models.encoding.BLOCK", 7)
    cse("encode", "starter", str(sentences), "--out", str(parts))
    vectors = np.load(whole)
    assert vectors.shape == (25, 256)
    np.testing.assert_allclose(np.load(parts), vectors, atol=1e-5)
    texts = ("-t", "the dog is old", "-t", "the dog is near")
    said = cse("encode", "starter", *texts, "--normalize", "-o", str(unit))
    assert (said.code, said.out) == (0, "")
    lines = [json.loads(line)["vector"] for line in unit.open(encoding="utf-8")]
    lengths = np.linalg.norm(vectors[:2], axis=1, keepdims=True)
    np.testing.assert_allclose(lines, vectors[:2] / lengths, atol=1e-6)


def test_encode_reads_stdin(cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(text: bytes, *words: str) -> Printed:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        return cse("encode", "starter", *words)

    said = given(b"a dog\r\na cat", "-")
    assert said.code == 0, said.err
    assert [json.loads(line)["text"] for line in said.out.splitlines()] == ["a dog", "a cat"]
    refused(given(b"\n \n"), "stdin")
    refused(given(b"a\nb\xff"), "stdin, line 2")


def test_lines_are_encoded_as_they_come() -> None:
    """A line is not kept waiting for others; those that are there are encoded together."""
    held, gone = Event(), ValueError("gone")

    def lines() -> Iterator[str]:
        yield from "abcde"
        assert held.wait(10)
        yield "f"
        raise gone

    blocks = as_they_come(lines(), 3)
    assert [next(blocks), next(blocks)] == [["a", "b", "c"], ["d", "e"]]
    held.set()
    assert next(blocks) == ["f"]
    with pytest.raises(ValueError, match="gone") as raised:
        next(blocks)
    assert raised.value is gone
    assert list(as_they_come(iter(()), 3)) == []


def test_words_and_vectors_have_their_shares() -> None:
    """The best text has 1 by each; 0 is the mean similarity, and no word of the query."""
    near = np.array([[0.9, 0.5, 0.1], [0.2, 0.2, 0.2]])
    by_words = np.array([[0, 4, 1], [0, 0, 0]])
    expected = [[0.75, 0.25, 0.25 / 4 - 0.75], [0, 0, 0]]
    np.testing.assert_allclose(fuse(near, by_words, 0.25), expected, atol=1e-12)


def test_a_plan_says_how_many_tokens_are_unknown(cse: Cse, tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    table.write_text('{"text": "it is green"}\n{"text": "电机 泵 漏 so"}\n', encoding="utf-8")
    plan = cse("train", "--data", str(table), "--dev", "none", "--dry-run")
    assert "warning: " in plan.out and "tokens are unknown to starter" in plan.out


def test_data_list_has_the_files_of_every_suite(cse: Cse, tmp_path: Path) -> None:
    for name in ("sts/sts12.test.tsv", "chinese/cstsb.dev.tsv", "transfer/sst2.train.tsv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    document = {"title": "Boats", "paras": [["A boat is green.", "It sails."]]}
    (tmp_path / "news.jsonl").write_text(json.dumps(document) + "\n", encoding="utf-8")
    words = ("data", "list", "--data-dir", str(tmp_path))
    said = json.loads(cse(*words, "--json").out)
    assert (said["datasets"][0]["name"], said["datasets"][0]["synthetic"]) == ("starter", True)
    assert said["folder"] == str(tmp_path)
    assert said["suites"]["sts"]["sts12.test"] == str(tmp_path / "sts/sts12.test.tsv")
    assert said["suites"]["sts"]["stsb.test"] is said["suites"]["transfer"]["mrpc"] is None
    shown = cse(*words).out
    for line in ("sts/sts12.test.tsv", "chinese/cstsb.dev.tsv", "sst2 (no sst2.test)",
                 "mrpc", "news.jsonl", "not there"):  # fmt: skip
        assert line in shown


def test_data_list_hides_nothing_behind_a_damaged_file(cse: Cse, tmp_path: Path) -> None:
    """It is said in one line, though the suites classify and retrieval both look at it."""
    document = {"label": "a", "title": "Boats", "paras": [["A boat is green."]]}
    (tmp_path / "docs").mkdir()
    for name in ("a", "c"):
        path = tmp_path / "docs" / f"{name}.jsonl"
        path.write_text(json.dumps(document) + "\n", encoding="utf-8")
    (tmp_path / "docs" / "b.jsonl").write_text("{", encoding="utf-8")
    said = cse("data", "list", "--data-dir", str(tmp_path), "--json")
    suites = json.loads(said.out)["suites"]
    assert list(suites["retrieval"]) == list(suites["classify"]) == ["a", "c"]
    (line,) = said.errors
    assert line.startswith("left out: ") and "b.jsonl" in line
    (tmp_path / "docs" / "a.jsonl").unlink()
    (tmp_path / "docs" / "c.jsonl").unlink()
    suites = json.loads(cse("data", "list", "--data-dir", str(tmp_path), "--json").out)["suites"]
    assert suites["classify"] == {"any labelled texts": None}


def test_data_stats_and_show(cse: Cse, sentences: Path, tmp_path: Path) -> None:
    words = ("data", "stats", str(sentences), "--model", "starter")
    said = json.loads(cse(*words, "--json").out)
    assert (said["rows"], said["blank_dropped"], said["duplicates"]) == (24, 1, 0)
    assert said["documents"] is None
    assert said["words_mean"] == 4
    assert said["tokens"]["longest"] >= 6
    text = cse(*words).out
    assert "sha256:" in text and "0-32: 100.000 %" in text
    said = json.loads(cse("data", "show", str(sentences), "--rows", "2", "--json").out)
    assert said["columns"] == ["text"]
    assert said["rows"] == [{"text": "the dog is old"}, {"text": "the dog is near"}]
    assert "  text: the dog is old" in cse("data", "show", str(sentences)).out
    table = tmp_path / "documents.tsv"
    table.write_text("text\tdocument\none two\t1\n\nthree\t1\none two\t2\n \t3\n")
    said = json.loads(cse("data", "stats", str(table), "--json").out)
    assert (said["rows"], said["documents"], said["duplicates"], said["blank_dropped"]) == (
        3, 2, 1, 1,
    )  # fmt: skip
    assert said["words_mean"] == pytest.approx(5 / 3, abs=0.01)
    assert (said["words_median"], said["words_p95"]) == (2, 2)
    assert said["characters_mean"] == pytest.approx(19 / 3, abs=0.01)
    assert said["columns"] == ["text", "document"]
    path = tmp_path / "long.txt"  # special tokens count: each word is a token, with [CLS] and [SEP]
    path.write_text("".join("dog " * count + "\n" for count in (30, 31, 62, 63, 600)))
    said = json.loads(cse("data", "stats", str(path), "--model", "starter", "--json").out)
    assert said["tokens"]["shares"] == {
        "0-32": 20, "33-64": 40, "65-96": 20, "97-128": 0, "129-256": 0, "257-512": 0,
        "over 512": 20,
    }  # fmt: skip
    out = tmp_path / "x.parquet"
    refused(cse("data", "fetch", "owner/name", "--out", str(out)), "owner/name", "hub")
    assert not out.exists()


def test_negatives_that_are_the_anchor_or_the_positive_are_counted(
    cse: Cse, tmp_path: Path
) -> None:
    path, (a, b, c) = tmp_path / "pairs.jsonl", ("a man eats", "a man eats food", "it is late")
    warned = "negatives are the same text as their"
    for negatives, same in (
        ([a, c], {"anchor": 1}), ([b, c, b], {"positive": 2}),
        ([a, b, c, c], {"anchor": 1, "positive": 1}), ([c], {}), ([a, b], None), ([b], None),
    ):  # fmt: skip
        row = {"query": a, "pos": [b], "neg": negatives, "title": "Food"}
        path.write_text("".join(json.dumps({**row, "query": a + end}) + "\n" for end in ("", " ")))
        planned = cse(
            "train", "--recipe", "pairs", "--data", str(path), "--dev", "none", "--dry-run"
        )
        assert "rows have the same text in column" not in planned.out
        if same is None:
            refused(planned, "pairs.jsonl: every text of column negative is that of its row's")
            continue
        said = json.loads(cse("data", "stats", str(path), "--json").out)
        assert said["same_negatives"] == {name: 2 * count for name, count in same.items()}
        assert said["columns"] == ["text", "positive", "negative", "title"]
        for name, count in same.items():
            assert f"{2 * count} of {2 * len(negatives)} {warned} {name}: " in planned.out
            assert f"negatives that are their {name}" in cse("data", "stats", str(path)).out
        assert (warned in planned.out) == bool(same)
        shown = json.loads(cse("data", "show", str(path), "--json").out)["rows"]
        assert [row["negative"] for row in shown] == (negatives * 2)[:5]
        assert shown[0] == {"text": a, "positive": b, "negative": negatives[0], "title": "Food"}


def test_a_positive_of_several_anchors_is_warned_of(cse: Cse, tmp_path: Path) -> None:
    """Rows that a list of negatives makes of one pair are masked, since their anchors are equal."""
    path = tmp_path / "pairs.jsonl"
    for queries, warned in ((("one a", "one a"), False), (("one a", "one b"), True)):
        rows = [{"query": query, "pos": ["it"], "neg": ["no", "not"]} for query in queries]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        said = cse("train", "--recipe", "pairs", "--data", str(path), "--dev", "none", "--dry-run")
        assert ("have the same text in column 'positive'" in said.out) == warned


def test_texts_that_are_cut_are_counted(cse: Cse, tmp_path: Path) -> None:
    long, encode = "the " * 40, ("encode", str(shared_encoder()))
    said = cse(*encode, "-t", long, "-t", f"{long} and another end", "-t", "short",
               "--max-length", "16")  # fmt: skip
    first, second, _ = (json.loads(line)["vector"] for line in said.out.splitlines())
    assert first == second, "the same after a cut"
    assert "warning: 2 of 3 texts were cut at 16 tokens; --max-length N reads up to 512" in said.err
    assert "cut" not in cse(*encode, "-t", long).err
    # Two special tokens: 14 words fit, 15 do not.
    for words, cut in ((14, False), (15, True)):
        said = cse(*encode, "-t", "the " * words, "--max-length", "16")
        assert ("were cut" in said.err) is cut
    whole = cse(*encode, "-t", "the " * 600)
    assert "cut at 512 tokens, which is all that the model takes" in whole.err


def test_the_plan_says_how_many_texts_are_cut(cse: Cse, tmp_path: Path) -> None:
    """A text of 30 words fits in 32 tokens; of many texts a sample is spread over the file."""
    texts = tmp_path / "texts.txt"
    short, fits, long = (["the " * words] for words in (3, 30, 31))
    texts.write_text("\n".join(long + fits + short * 2) + "\n", encoding="utf-8")
    said = cse("train", "--data", str(texts), "--dry-run")
    assert "length: at most 32 tokens, which truncates 25.0 % of the texts (1 of 4 " in said.out
    texts.write_text("\n".join(short * 1000 + long * 1000) + "\n", encoding="utf-8")
    said = cse("train", "--data", str(texts), "--dry-run", "--json")
    assert json.loads(said.out)["length"] == {"max_length": 32, "longer": 500, "seen": 1000}
    rows = [{"text": "the", "positive": text} for text in (*long, *short * 3)]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    said = cse(
        "train", "--recipe", "pairs", "--data", str(pairs), "--model.max_length", "32", "--dry-run"
    )
    assert "25.0 % of the texts of column positive (1 of 4 sampled)" in said.out


@pytest.mark.parametrize("option", ["model.prompt", "data.prompts", "views.anchor.prompt"])
def test_a_prompt_that_leaves_no_room_is_refused(
    option: str, cse: Cse, encoder: str, folder: Path, tmp_path: Path
) -> None:
    """By the plan, and where a run is prepared without one."""
    texts, prompt = tmp_path / "texts.txt", "the " * 30
    texts.write_text("the\nof\n", encoding="utf-8")
    said = cse("train", "--data", str(texts), f"--{option}", prompt, "--dry-run")
    refused(said, f"error: {option}: leaves no room for a text in 32 tokens")
    value = f'["{prompt}"]' if option == "data.prompts" else f'"{prompt}"'
    run = composed(encoder, "", f"{option}={value}", "model.max_length=16", folder=folder)
    with pytest.raises(CseError, match=f"{option}: leaves no room for a text in 16 tokens"):
        trainer(run, Corpus.from_columns({"text": ["the", "of"]}), folder / "run")


LONG = "a long text about boats and dogs . " * 6


@pytest.fixture(scope="module")
def model() -> SentenceModel:
    return load("starter", Installed().registry, device="cpu", max_length=16)


def encode_sliced(model: SentenceModel, texts: list[str], tokens: int | None = None) -> Tensor:
    return torch.from_numpy(TextEncoder(model, tokens, long_texts="slice")(texts))


def encoded(model: SentenceModel, texts: list[str]) -> Tensor:
    return model.sentence_encoder.encode(texts, model.device)


def test_long_texts_in_slices(model: SentenceModel) -> None:
    texts = ["short one", "", "word " * slice_length(model.sentence_encoder)]
    sliced = encode_sliced(model, texts)
    torch.testing.assert_close(sliced, encoded(model, texts), atol=1e-5, rtol=1e-5)
    sentence_encoder = model.sentence_encoder
    longest = slice_length(sentence_encoder)
    assert longest == 14  # [CLS] and [SEP] take two of 16
    ids = sentence_encoder.tokenizer.content([LONG]).ids
    pieces = ids.split(longest)
    assert 0 < len(pieces[-1]) < longest
    texts = [sentence_encoder.tokenizer.hf.decode(piece) for piece in pieces]
    assert sentence_encoder.tokenizer.content(texts).lengths.tolist() == [
        len(piece) for piece in pieces
    ]
    weights = torch.tensor([float(len(piece)) for piece in pieces]).unsqueeze(1)
    expected = (encoded(model, texts) * weights).sum(0) / weights.sum()
    both = encode_sliced(model, ["another", LONG], 20)
    torch.testing.assert_close(both[1], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(both[:1], encoded(model, ["another"]), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(both[1], encoded(model, [LONG])[0], atol=1e-2)
    assert len(encode_sliced(model, [])) == 0


def test_vectors_are_cut(cse: Cse, tmp_path: Path) -> None:
    run, out, pairs = tmp_path / "run", tmp_path / "vectors.npy", tmp_path / "pairs.tsv"
    pairs.write_text("score\tsentence1\tsentence2\n4\ta dog\ta cat\n1\ta boat\tit\n3\tx y\tx\n")
    words = ("encode", "starter", "--text", "a dog", "--out", str(out))
    assert cse(*words).code == 0
    whole = np.load(out)
    said = cse(*words, "--truncate-dim", "8")
    assert "1 vectors of 8 numbers" in said.err
    np.testing.assert_array_equal(np.load(out), whole[:, :8])
    refused(cse(*words, "--truncate-dim", "257"), "--truncate-dim: the model's vectors have 256")
    refused(cse(*words, "--truncate-dim", "0"), "--truncate-dim")
    scores = ("eval", "starter", "--pairs", str(pairs), "--no-baselines", "--json")
    cut = [json.loads(cse(*scores, *more).out) for more in ((), ("--truncate-dim", "2"))]
    assert cut[0]["results"] != cut[1]["results"]
    run.mkdir()
    (run / "model").symlink_to(shared_encoder())
    (run / "run.toml").write_text('[[loss]]\nuse = "infonce"\ndimensions = [16, 8]\n')
    words = ("encode", str(run), *words[2:], "--truncate-dim")
    assert "warning" not in cse(*words, "8").err
    assert f"{run} was trained for vectors cut to 8, 16, not to 9" in cse(*words, "9").err
