"""Queries by another model than texts: which one, what is checked, what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cse_testkit import shared_encoder

import cse as api
from plugins.search.tests.answers import shortened
from tests.fixtures.command_line import Cse, refused

TEXTS = ["a boat on the lake", "a lamp in the garden", "the bell rang"]
QUERY = "who lights the garden?"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return Path(shutil.copytree(shared_encoder(family="electra"), tmp_path / "other"))


def expected(model: str, other: str) -> list[float]:
    """Return the cosines of the query by one model with the texts by the other, in their order."""
    asked = api.load(other).encode([QUERY], normalize=True)
    return [float(x) for x in asked[0] @ api.load(model).encode(TEXTS, normalize=True).T]


def test_an_index_says_which_model_encodes_queries(
    cse: Cse, tmp_path: Path, texts: Path, other: Path
) -> None:
    model, index = str(shared_encoder()), tmp_path / "index"
    made = ("index", model, "--out", str(index))
    assert cse(*made, str(texts), "--queries-model", str(other)).code == 0
    assert cse(*made).code == 0, "an update keeps it"
    words = ("search", model, QUERY, "--index", str(index))
    said = cse(*words, "--json")
    found = api.load(model).search([QUERY], index)
    assert shortened(json.loads(said.out)["queries"]) == shortened(found)
    assert json.loads(said.out)["queries_model"] == str(other)
    this = f"{other} encodes the queries of this index, and {model} its texts"
    refused(cse("search", str(other), *words[2:]), this, f"cse search {model}")
    cosines = {hit["text"]: hit["cosine"] for hit in found[0]["results"]}
    wanted = expected(model, str(other))
    np.testing.assert_allclose([cosines[text] for text in TEXTS], wanted, atol=2e-6)
    assert not np.allclose(wanted, expected(model, model), atol=1e-3)
    line = f"encoded by {model}; queries by {other} (both as when the index was made)"
    assert line in cse(*words).err
    own = cse(*words, "--queries-model", model)
    assert f"queries by {model} ({model} as when the index was made)" in own.err
    none = cse(*words, "--queries-model", "none", "--json").out
    assert json.loads(none) == json.loads(cse(*words, "--queries-model", model, "--json").out)
    for command in (words, made):
        refused(cse(*command, "--queries-model", "nobody"), "--queries-model: no folder of this n")
    with (other / "config.json").open("a") as file:
        file.write("\n")
    refused(cse(*words), "the model of its queries", "has changed since this index was made")
    with pytest.raises(api.CseError, match="--queries-model"):
        api.load(model).search([QUERY], index)
    assert cse(*words, "--queries-model", str(other)).code == 0
    assert cse(*made, "--queries-model", "none").code == 0
    said = cse(*words, "--json")
    assert json.loads(said.out)["queries"] == api.load(model).search(
        [QUERY], index, queries_model=api.load(model)
    )


def test_texts_that_are_no_index(cse: Cse, texts: Path, other: Path) -> None:
    model = str(shared_encoder())
    words = ("search", model, QUERY, "--data", str(texts), "--queries-model", str(other))
    found = json.loads(cse(*words, "--json").out)["queries"]
    cosines = {hit["text"]: hit["cosine"] for hit in found[0]["results"]}
    wanted = expected(model, str(other))
    np.testing.assert_allclose([cosines[text] for text in TEXTS], wanted, atol=2e-6)
    by_python = api.load(model).search(QUERY, [texts], queries_model=api.load(other))
    assert by_python == found
    assert f"encoded by {model}; queries by {other}\n" in cse(*words).err


def test_dimensions_are_those_of_the_texts(cse: Cse, tmp_path: Path, texts: Path) -> None:
    model, wide = str(shared_encoder()), str(shared_encoder(hidden=48))
    index = tmp_path / "index"
    given = ("--queries-model", wide)
    what = f"--queries-model: gives vectors of 48 numbers, the model of the texts 32 (got {wide!r})"
    refused(cse("index", model, str(texts), "--out", str(index), *given), what)
    assert not index.exists()
    refused(cse("search", model, QUERY, "--data", str(texts), *given), what)
    assert cse("index", model, str(texts), "--out", str(index)).code == 0
    words = ("search", model, QUERY, "--index", str(index))
    refused(cse(*words, *given), what, f"trained in the space of {model}")
    with pytest.raises(api.CseError, match="--queries-model: gives vectors of 48 numbers"):
        api.load(model).search([QUERY], index, queries_model=api.load(wide))
    with pytest.raises(api.CseError, match="load the model with truncate_dim=32"):
        api.load(model, truncate_dim=16).search([QUERY], index)
    cut = ("--truncate-dim", "16")
    assert cse("search", model, QUERY, "--data", str(texts), *given, *cut).code == 0
