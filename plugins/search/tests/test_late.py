"""``--level``: vectors of tokens order what the vector of the text finds."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cse_testkit import compose
from cse_testkit.runs import Rig

import cse as api
from tests.fixtures.command_line import Cse, refused

TEXTS = ["the old lamp", "a boat on the cold sea", "the judge rang a bell", "an old violin plays",
         "the goal of the dog", "an old planet and the sea"]  # fmt: skip
QUERY = "the old sea"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    rig = Rig(compose(kinds={"pool": ["mean", "+token-vectors"]}))
    rig.step(1)
    folder = tmp_path_factory.mktemp("late") / "model"
    rig.session.save(folder)
    return str(folder)


def by_hand(model: str) -> list[tuple[str, float]]:
    loaded = api.load(model, device="cpu")
    query, *texts = loaded.encode_several([QUERY, *TEXTS], normalize=True)
    scores = [float((query @ text.T).max(axis=1).sum()) for text in texts]
    order = np.argsort(-np.asarray(scores), kind="stable")
    return [(TEXTS[place], round(scores[place], 3)) for place in order]


def hits(printed: str) -> list[tuple[str, float]]:
    (query,) = json.loads(printed)["queries"]
    return [(hit["text"], round(hit["maxsim"], 3)) for hit in query["results"]]


def test_an_index_keeps_them_and_the_order_is_that_by_hand(
    cse: Cse, tmp_path: Path, model: str
) -> None:
    file, folder = tmp_path / "texts.txt", str(tmp_path / "index")
    file.write_text("\n".join(TEXTS[:4]) + "\n", encoding="utf-8")
    assert cse("index", model, str(file), "--out", folder, "--level", "token").code == 0
    file.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    updated = cse("index", model, "--out", folder)
    assert "2 encoded, 4 kept" in updated.err, "an update keeps the level, and its vectors"
    ask = ("search", model, QUERY, "--level", "token", "--top", "6", "--json")
    kept, new = (cse(*ask, *place) for place in (("--index", folder), ("--data", str(file))))
    for answer in (kept, new):
        found = hits(answer.out)
        (shown,) = json.loads(answer.out)["queries"]
        for hit in shown["results"]:
            query, rows = api.load(model).encode_several([QUERY, hit["text"]], normalize=True)
            near = (query @ rows.T).max(axis=0)
            assert near[hit["nearest"]] == pytest.approx(near.max(), abs=1e-3)
        assert [text for text, _ in found] == [text for text, _ in by_hand(model)]
        assert dict(found) == pytest.approx(dict(by_hand(model)), abs=0.01)
    small = str(tmp_path / "small")
    made = ("index", model, str(file), "--out", small, "--level", "token", "--vectors", "int8")
    assert cse(*made).code == 0
    assert dict(hits(cse(*ask, "--index", small).out)) == pytest.approx(
        dict(by_hand(model)), abs=0.05
    )
    large, sizes = tmp_path / "index", []
    for index in (large, Path(small)):
        (vectors,) = index.glob("content-*/several.bin")
        sizes.append(vectors.stat().st_size)
    assert sizes[0] == 2 * sizes[1]
    long = cse("search", model, "the old sea " * 400, "--index", folder, "--level", "token")
    assert long.code == 0 and "1 of 1 texts were cut" in long.err
    plain = cse("search", model, QUERY, "--index", folder, "--json").out
    assert "maxsim" not in plain
    first = json.loads(cse(*ask[:-2], "1", "--rerank-top", "1", "--json", "--index", folder).out)
    nearest: Any = json.loads(plain)["queries"][0]["results"][0]["text"]
    assert first["queries"][0]["results"][0]["text"] == nearest, "only the first one is ordered"


def test_encode_takes_texts_in_a_role(cse: Cse, tmp_path: Path, model: str) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    file = folder / "config_sentence_transformers.json"
    says = {**json.loads(file.read_text()), "prompts": {"query": "old: ", "document": "sea: "}}
    file.write_text(json.dumps(says))
    (folder / "checksums.json").unlink()
    loaded = api.load(folder)
    encode = ("encode", str(folder), "-t", QUERY)
    made = []
    for role in ("query", "document"):
        (line,) = cse(*encode, "--level", "token", "--role", role).out.splitlines()
        made.append(json.loads(line)["vectors"])
        (wanted,) = loaded.encode_several([QUERY], role=role)  # type: ignore[arg-type]
        np.testing.assert_allclose(made[-1], wanted, atol=1e-5)
        (line,) = cse(*encode, "--role", role).out.splitlines()
        one = api.TextEncoder(loaded.loaded).with_role(role)([QUERY])  # type: ignore[arg-type]
        np.testing.assert_allclose(json.loads(line)["vector"], one[0], atol=1e-5)
    assert made[0] != made[1]
    refused(cse(*encode, "--role", "title"), "--role: must be query or document (got 'title')")


def test_what_is_refused(cse: Cse, tmp_path: Path, model: str, encoder: str) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    ask = ("search", model, QUERY, "--data", str(file))
    refused(cse(*ask, "--level", "chunk"), "--level: ", "has no vectors of this level", "token")
    refused(
        cse("search", encoder, QUERY, "--data", str(file), "--level", "token"),
        "train one: --pool +token-vectors",
    )
    by_chunk = cse("encode", encoder, "-t", QUERY, "--level", "chunk")
    refused(by_chunk, "has no vectors of this level", "train one: --pool +chunk-vectors")
    refused(cse("encode", encoder, "-t", QUERY, "--level", "word"), "of this level (got 'word')\n")
    refused(cse(*ask, "--level", "token", "--queries-model", encoder), "another one encodes")
