"""The starter texts are those of the grammar, letter by letter."""

import hashlib
import json
import sys
from pathlib import Path

import pytest
from cse_starter.corpus import StarterCorpus

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from grammar.documents import documents  # noqa: E402
from make_texts import made  # noqa: E402

CHECKSUM = "564c6c59dbabe85e4f3db144f899da63571b0a6bd36eefb440d080be2af40863"


def test_they_are_what_the_grammar_makes() -> None:
    corpus = StarterCorpus()
    texts = {"rows": [*corpus.rows()], "dev": corpus.pairs("dev"), "test": corpus.pairs("test")}
    content = json.dumps([*texts.values()], ensure_ascii=False).encode()
    assert hashlib.sha256(content).hexdigest() == CHECKSUM, "another corpus: say so in README"
    assert made() == texts
    one, other = ([each.sentences for each in documents(seed, 20)] for seed in (0, 1))
    assert not {*one} & {*other}
    with pytest.raises(ValueError, match="'train'"):
        corpus.pairs("train")
