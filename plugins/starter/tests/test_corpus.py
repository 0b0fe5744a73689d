"""Texts and encoder are those that the two READMEs describe, byte for byte."""

import hashlib
import json
from pathlib import Path

import cse_starter
import pytest
from cse_starter.corpus import StarterCorpus

from cse_core.texts import Wanted

TEXTS = "564c6c59dbabe85e4f3db144f899da63571b0a6bd36eefb440d080be2af40863"
ENCODER = {
    "config.json": "3b13866cc8e2913abf0ec29c0ae0636a217b94a9a752f1e66f2c3b036a43e1b7",
    "model.safetensors": "cd39610c130b9c9ace97566fd652b5a21dc94beadc14f803e870f839bb374967",
    "tokenizer.json": "dd05cbc5eeb8ced8c16fcc878733229db16daebed722613fb75179c2cab25351",
}


def test_they_have_not_changed() -> None:
    corpus = StarterCorpus()
    rows = [row for _, row in corpus.rows("starter", Wanted())]
    texts = [rows, corpus.pairs("dev"), corpus.pairs("test")]
    content = json.dumps(texts, ensure_ascii=False).encode()
    assert hashlib.sha256(content).hexdigest() == TEXTS, "another corpus: say so in README"
    for name, checksum in ENCODER.items():
        held = Path(cse_starter.__path__[0], "encoder", name).read_bytes()
        assert hashlib.sha256(held).hexdigest() == checksum, "another encoder: say so in its README"
    with pytest.raises(ValueError, match="'train'"):
        corpus.pairs("train")
