"""``cse push``, against a stand-in of the hub on this machine."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from tests.fixtures.command_line import Cse, refused
from tests.fixtures.tiny import make_encoder

SHORT = ("--train.batch_size", "8", "--train.max_steps", "1", "--train.device", "cpu", "-q")


def _stand_in() -> Any:
    """Import the stand-in, which is in no package."""
    spec = spec_from_file_location("hub_stand_in", Path(__file__).with_name("stand_in.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


STAND_IN = _stand_in()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, with scores in its card."""
    from cse_cli.main import run

    folder = tmp_path_factory.mktemp("trained")
    (folder / "own.txt").write_text("".join(f"ba be bi {n}\n" for n in range(20)))
    pairs = "sentence1\tsentence2\tscore\nba\tbe\t1\nba bi\tba bi be\t3\nbo\tbo\t5\n"
    (folder / "own.tsv").write_text(pairs)
    words = ("--model", make_encoder(folder / "encoder"), "--data", str(folder / "own.txt"))
    code = run(("train", *words, "--dev", str(folder / "own.tsv"), *SHORT, "--out",
                str(folder / "runs/mine")))  # fmt: skip
    assert code == 0
    return folder / "runs/mine"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in as the hub, and a token of it."""
    made = STAND_IN.Hub()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", made.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", STAND_IN.TOKEN)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield made
    made.close()


def test_a_run_is_pushed_with_card_and_recipe_and_nothing_else(
    hub: Any, cse: Cse, trained: Path
) -> None:
    answer = cse("push", str(trained), "me/mine", "--licence", "mit", "--message", "first")
    assert answer.code == 0 and "warning" not in answer.err, answer
    assert f"{hub.url}/me/mine" in answer.out and "hf download me/mine" in answer.out
    (name,) = hub.repositories
    repository = hub.repositories[name]
    assert (name, repository.private, repository.messages) == ("me/mine", False, ["first"])
    model = trained / "model"
    sent = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    assert set(repository.files) == sent and {"recipe.toml", "README.md"} < sent
    for file in sent - {"README.md"}:
        assert repository.files[file] == (model / file).read_bytes(), file
    card = ModelCard(repository.files["README.md"].decode())
    assert card.data.license == "mit" and card.data.model_name == "mine"
    assert [each.dataset_name for each in card.data.eval_results or ()] == ["own"]
    assert 'SentenceTransformer("me/mine")' in card.text
    for content in repository.files.values():
        assert str(trained.parents[1]).encode() not in content


def test_what_was_pushed_is_loaded_by_sentence_transformers(
    hub: Any, cse: Cse, trained: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    assert cse("push", str(trained), "me/mine").code == 0
    for file, content in hub.repositories["me/mine"].files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(content)
    there, here = (
        SentenceTransformer(str(folder), device="cpu").encode(["ba be", "bo"])
        for folder in (tmp_path, trained / "model")
    )
    assert (there == here).all()


def test_a_name_that_is_taken_needs_update(hub: Any, cse: Cse, trained: Path) -> None:
    assert cse("push", str(trained), "me/mine", "--private").code == 0
    assert hub.repositories["me/mine"].private
    refused(cse("push", str(trained), "me/mine"), "there is a repository of this name already",
            "--update")  # fmt: skip
    answer = cse("push", str(trained), "me/mine", "--update", "--json", "--licence", "mit")
    assert answer.code == 0 and json.loads(answer.out)["url"] == f"{hub.url}/me/mine"
    assert len(hub.repositories["me/mine"].messages) == 2


def test_a_dry_run_asks_nobody(hub: Any, cse: Cse, trained: Path) -> None:
    answer = cse("push", str(trained), "me/mine", "--dry-run")
    assert answer.code == 0 and "model.safetensors" in answer.out and not hub.asked
    assert "names no licence" in answer.err


def test_without_a_token(
    hub: Any, cse: Cse, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    answer = cse("push", str(trained), "me/mine", "--licence", "mit")
    refused(answer, "no token for the Hugging Face hub", "hf auth login")
    assert not hub.asked


def test_a_token_that_the_hub_does_not_know(
    hub: Any, cse: Cse, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    answer = cse("push", str(trained), "me/mine", "--licence", "mit")
    refused(answer, "the hub refuses the token (got 'me/mine')", "hf auth login")


def test_another_owner(hub: Any, cse: Cse, trained: Path) -> None:
    answer = cse("push", str(trained), "them/mine", "--licence", "mit")
    refused(answer, "the token may not write there (got 'them/mine')")


def test_without_a_network(
    hub: Any, cse: Cse, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{port}")
    answer = cse("push", str(trained), "me/mine", "--licence", "mit")
    refused(answer, "the Hugging Face hub cannot be reached")


def test_what_the_hub_says_is_one_line(hub: Any, cse: Cse, trained: Path) -> None:
    hub.broken = "/commit/"
    answer = cse("push", str(trained), "me/mine", "--licence", "mit")
    refused(answer, "could not be pushed", "The stand-in says no", "--update")


def test_what_cannot_be_pushed(hub: Any, cse: Cse, trained: Path, tmp_path: Path) -> None:
    refused(cse("push", str(tmp_path / "none"), "me/x"), "no such run")
    refused(cse("push", str(tmp_path), "me/x"), "is not a run")
    (tmp_path / "run.toml").touch()
    refused(cse("push", str(tmp_path), "me/x"), "this run has saved no model yet", "--resume")
    for name in ("x", "me/x/y", "me/x y", "/x", "me/"):
        refused(cse("push", str(trained), name), "is not a repository's name")
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    (copy / "model/config.json").write_text("{}")
    refused(cse("push", str(copy), "me/x"), "the model is damaged: config.json is not what")
    shutil.rmtree(copy)
    shutil.copytree(trained, copy)
    (copy / "model/extra.txt").symlink_to(trained / "run.toml")
    refused(cse("push", str(copy), "me/x"), "extra.txt leads out of the model's folder")
    assert not hub.asked


def test_a_card_that_people_edited(hub: Any, cse: Cse, trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    card = copy / "model/README.md"
    card.write_text("---\nlicense: cc-by-4.0\nlanguage: de\n---\n\n# Mine\n\nMy words.\n")
    assert cse("push", str(copy), "me/mine").err == "", "it names a licence"
    sent = ModelCard(hub.repositories["me/mine"].files["README.md"].decode())
    assert sent.data.language == "de" and "My words." in sent.text
    card.unlink()
    assert cse("push", str(copy), "me/other", "--licence", "mit").code == 0
    assert b"license: mit" in hub.repositories["me/other"].files["README.md"]
    card.write_text("---\nlicense: [\n---\n\n# Mine\n")
    refused(cse("push", str(copy), "me/third"), "README.md: cannot be read", "between the two ---")
