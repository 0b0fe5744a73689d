import json
import shutil
import sys
from pathlib import Path
from typing import Any, ClassVar

import huggingface_hub
import pytest
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

from cse_core.errors import CseError
from cse_core.run_info import RunInfo
from cse_engine.compose.models import Models
from tests.fixtures.parts import made_up_registry

BERT_CONFIG = {
    "model_type": "bert", "hidden_size": 256, "num_hidden_layers": 4,
    "max_position_embeddings": 512, "pad_token_id": 0,
}  # fmt: skip


def model(folder: Path, config: Any = BERT_CONFIG, **files: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"config": config, **files}.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text)
    return folder


def facts_of(name: str) -> RunInfo:
    return Models(made_up_registry()).look(name)[0]


def refused(name: str) -> str:
    with pytest.raises(CseError) as caught:
        facts_of(name)
    assert caught.value.where == "model.name"
    return caught.value.line()


def test_facts_of_folders(tmp_path: Path) -> None:
    path = model(tmp_path / "m", tokenizer_config={"do_lower_case": True, "mask_token": "[MASK]"})
    facts = facts_of(str(path))
    assert (facts.model, facts.family, facts.hidden, facts.embedding) == (
        str(path), "bert", 256, 256,
    )  # fmt: skip
    assert (facts.layers, facts.positions, facts.cased, facts.mask_token, facts.origin) == (
        4, 512, False, True, None,
    )  # fmt: skip
    (path / "config.json").write_text('{"model_type": "distilbert", "n_heads": 12}')
    assert facts_of(str(path)).heads == 12
    run = tmp_path / "runs" / "latest"
    model(run / "model")
    for origin in ("starter", None):
        own = {"max_length": 64, "row": {"use": "mean"}, "origin": origin}
        (run / "model" / "cse.json").write_text(json.dumps(own))
        facts = facts_of(str(run))
        assert (facts.hidden, facts.origin) == (256, origin)
    outer = tmp_path / "st"
    model(outer / "0_Transformer")
    (outer / "modules.json").write_text(
        json.dumps([{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}])
    )
    assert facts_of(str(outer)).family == "bert"


SIZES: tuple[tuple[dict[str, Any], Any, Any, Any, Any], ...] = (
    ({"model_type": "roberta", "hidden_size": 768, "num_hidden_layers": 12,
      "max_position_embeddings": 514, "pad_token_id": 1}, 768, 768, 12, 512),
    ({"model_type": "xlm-roberta", "hidden_size": 8, "max_position_embeddings": 514},
     8, 8, None, 512),
    ({"model_type": "distilbert", "dim": 768, "n_layers": 6, "max_position_embeddings": 512},
     768, 768, 6, 512),
    ({"model_type": "electra", "hidden_size": 256, "embedding_size": 128,
      "num_hidden_layers": 12, "max_position_embeddings": 512}, 256, 128, 12, 512),
    ({"model_type": "t5", "d_model": 512}, 512, 512, None, None),
    ({}, None, None, None, None),
)  # fmt: skip
VOCABULARIES: tuple[tuple[dict[str, Any], Any, Any], ...] = (
    ({}, None, None),
    ({"tokenizer_config": {"do_lower_case": False, "mask_token": None}}, True, False),
    ({"tokenizer_config": {}, "tokenizer": {"normalizer": None}}, True, False),
    ({"tokenizer": {"normalizer": {"type": "BertNormalizer", "lowercase": True},
                    "added_tokens": [{"content": "[MASK]"}]}}, False, True),
    ({"tokenizer": {"normalizer": {"type": "BertNormalizer", "lowercase": False}}}, True, False),
    ({"tokenizer": {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFC"}, {"type": "Lowercase"}]}}}, False, False),
    ({"tokenizer": {"normalizer": None, "pre_tokenizer": {"type": "ByteLevel"},
                    "added_tokens": [{"content": "<mask>"}]}}, True, True),
    ({"special_tokens_map": {"mask_token": {"content": "<mask>"}}}, None, True),
)  # fmt: skip


GENERIC = {"tokenizer_class": "TokenizersBackend"}
LAST: dict[str, Any] = {"type": "TemplateProcessing", "single": [
    {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}]}  # fmt: skip
FIRST: dict[str, Any] = {"type": "TemplateProcessing", "single": LAST["single"][::-1]}
ENDS: tuple[tuple[dict[str, Any], Any], ...] = (
    ({}, None),
    ({"tokenizer_config": {"tokenizer_class": "GPT2Tokenizer"}}, None),
    ({"tokenizer_config": {**GENERIC, "eos_token": "</s>"}}, True),
    ({"tokenizer_config": GENERIC, "special_tokens_map": {"eos_token": "</s>"}}, True),
    ({"tokenizer_config": GENERIC}, False),
    ({"tokenizer_config": GENERIC, "tokenizer": {"post_processor": FIRST}}, False),
    ({"tokenizer_config": GENERIC, "tokenizer": {"post_processor": LAST}}, True),
    (
        {
            "tokenizer_config": GENERIC,
            "tokenizer": {
                "post_processor": {
                    "type": "Sequence",
                    "processors": [{"type": "BertProcessing", "sep": ["[SEP]", 1]}],
                }
            },
        },
        True,
    ),
)


def test_sizes_and_vocabularies_of_families(tmp_path: Path) -> None:
    for number, (config, *sizes) in enumerate(SIZES):
        facts = facts_of(str(model(tmp_path / f"sized-{number}", config)))
        assert [facts.hidden, facts.embedding, facts.layers, facts.positions] == sizes, config
    for number, (files, *wanted) in enumerate(VOCABULARIES):
        facts = facts_of(str(model(tmp_path / f"words-{number}", **files)))
        assert [facts.cased, facts.mask_token] == wanted, files
    for number, (files, ends) in enumerate(ENDS):
        path = model(tmp_path / f"ends-{number}", **files)
        assert facts_of(str(path)).end_token is ends, files


def test_an_installed_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "starter_of_tests"
    model(package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "starter_of_tests", raising=False)
    facts = facts_of("starter")
    assert (facts.family, facts.origin, facts.model) == ("bert", "starter", "starter")
    monkeypatch.chdir(tmp_path)
    model(tmp_path / "starter")
    line = refused("starter")
    assert "is an installed encoder, and a folder with a model" in line
    assert "write ./starter for the folder, " in line
    assert facts_of("./starter").origin is None


def test_wrong_names_are_refused_in_one_line(tmp_path: Path) -> None:
    assert "no such folder" in refused(str(tmp_path / "gone"))
    assert "no such folder" in refused("./gone")
    assert "no such folder" in refused("a/b/c")
    (tmp_path / "empty").mkdir()
    assert "is a folder without config.json" in refused(str(tmp_path / "empty"))
    (tmp_path / "file").touch()
    assert "is a file, not a model folder" in refused(str(tmp_path / "file"))
    (tmp_path / "empty" / "run.toml").touch()
    assert "this run has saved no model yet" in refused(str(tmp_path / "empty"))
    assert "config.json is not valid JSON" in refused(str(model(tmp_path / "cut", '{"model')))
    assert "config.json is malformed" in refused(str(model(tmp_path / "list", "[]")))


class Hub:
    """A hub that has one model, of which it fetches the files that are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder.with_name("cache")
        self.failure: Exception | None = None

    def snapshot_download(
        self, name: str, *, allow_patterns: list[str], local_files_only: bool, **_: object
    ) -> str:
        if local_files_only and not self.cache.is_dir():
            raise LocalEntryNotFoundError(name)
        if not local_files_only:
            if self.failure is not None:
                raise self.failure
            for file in self.folder.iterdir():
                if any(file.match(pattern) for pattern in allow_patterns):
                    self.cache.mkdir(exist_ok=True)
                    shutil.copy(file, self.cache)
        return str(self.cache)


class Answer:
    headers: ClassVar[dict[str, str]] = {}
    request = None


def test_a_model_of_the_hub_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reachable = True
    hub = Hub(model(tmp_path / "hub", tokenizer_config={"do_lower_case": True}))
    (hub.folder / "model.safetensors").touch()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    monkeypatch.setattr("cse_defaults.transformers.hub.is_hub_reachable", lambda: reachable)
    facts = facts_of("some/model")
    assert (facts.hidden, facts.cased, facts.model) == (256, False, "some/model")
    assert not (hub.cache / "model.safetensors").exists(), "a plan fetches no weights"
    assert Models(made_up_registry()).weights("some/model") == hub.cache
    assert (hub.cache / "model.safetensors").exists()
    reachable = False
    assert facts_of("some/model") == facts, "what is cached"
    shutil.rmtree(hub.cache)
    assert facts_of("some/model").family is None
    with pytest.raises(CseError, match=r"hub cannot be reached.*some/model.*path of"):
        Models(made_up_registry()).weights("some/model")
    reachable, hub.failure = True, RepositoryNotFoundError("gone", response=Answer())  # type: ignore[arg-type]
    assert refused("startr").endswith("did you mean starter?")
    hub.failure = GatedRepoError("ask first", response=Answer())  # type: ignore[arg-type]
    assert facts_of("some/gated").family is None
    with pytest.raises(CseError, match="your account may not read it"):
        Models(made_up_registry()).weights("some/gated")
