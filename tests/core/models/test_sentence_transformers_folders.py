from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from cse_cli.models.saved_model import SentenceModel, load
from cse_cli.plugins.installed import Installed
from cse_core.loading import package_path

LONG = "a long text about boats and dogs . " * 9


def loaded(folder: Path) -> SentenceModel:
    return load(str(folder), Installed().registry, device="cpu")


def edit(path: Path, **values: object) -> None:
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**kept, **values}))


@pytest.fixture(params=["", "0_Transformer"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder as sentence-transformers saves it, its encoder inside or in a folder."""
    starter = package_path(Installed().registry.encoder("starter").spec.path)
    shutil.copytree(starter, tmp_path / "model" / request.param)
    kinds = {request.param: "Transformer", "1_Pooling": "Pooling"}
    modules = [{"path": path, "type": f"x.{kind}"} for path, kind in kinds.items()]
    (tmp_path / "model/modules.json").write_text(json.dumps(modules))
    (tmp_path / "model/1_Pooling").mkdir()
    edit(tmp_path / "model/1_Pooling/config.json", pooling_mode_mean_tokens=True)
    return tmp_path / "model"


def test_the_length_is_the_saved_one(folder: Path) -> None:
    word = next(folder.rglob("tokenizer_config.json")).parent
    edit(word / "tokenizer_config.json", model_max_length=24)
    newer = loaded(folder)
    assert newer.sentence_encoder.max_length == 24, (
        "sentence-transformers 6 keeps it with the tokenizer"
    )
    edit(word / "sentence_bert_config.json", max_seq_length=16)
    older = loaded(folder)
    assert older.sentence_encoder.max_length == 16, (
        "older ones in a file of their own, which counts first"
    )
    edit(word / "sentence_bert_config.json", max_seq_length=100_000)
    assert loaded(folder).sentence_encoder.max_length == 512, "never longer than the encoder"
    vectors = [torch.from_numpy(each.encode([LONG])) for each in (newer, older)]
    assert not torch.allclose(*vectors, atol=1e-3), "the text is cut at different places"
