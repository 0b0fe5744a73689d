"""``cse push``, with the hub's client replaced by a record of what it was asked."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import CommitOperationAdd, ModelCard

from tests.fixtures.command_line import Cse, refused
from tests.fixtures.tiny import make_encoder

SHORT = ("--train.batch_size", "8", "--train.max_steps", "1", "--train.device", "cpu", "-q")
URL = "https://hub/me/mine"


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


class RefusedError(Exception):
    """What the client raises, with the status of the hub's answer."""

    def __init__(self, code: int) -> None:
        super().__init__("The hub says no (Request ID: 1;2)")
        self.response = SimpleNamespace(status_code=code)


class Hub:
    """Takes what ``HfApi`` would send; ``fails`` has the status of a call that is refused."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.commits: list[tuple[str, str, dict[str, bytes]]] = []
        self.fails: dict[str, int] = {}
        self.private = True

    def create_repo(self, name: str, **options: Any) -> str:
        if code := self.fails.get("create_repo"):
            raise RefusedError(code)
        self.made.append({"name": name, **options})
        return URL

    def repo_info(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(private=self.private)

    def create_commit(
        self, name: str, adding: list[CommitOperationAdd], *, commit_message: str
    ) -> None:
        if code := self.fails.get("create_commit"):
            raise RefusedError(code)
        files = {}
        for each in adding:
            with each.as_file() as file:
                files[each.path_in_repo] = file.read()
        self.commits.append((name, commit_message, files))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", lambda **_: made)
    monkeypatch.setattr("cse_hub.cli.is_hub_reachable", lambda: True)
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    return made


def test_a_run_is_pushed_with_card_and_recipe_and_nothing_else(
    hub: Hub, cse: Cse, trained: Path
) -> None:
    answer = cse("push", str(trained), "me/mine", "--licence", "mit", "--message", "first")
    assert answer.code == 0 and "warning" not in answer.err, answer
    assert URL in answer.out and "hf download me/mine" in answer.out
    assert hub.made == [{"name": "me/mine", "private": False, "exist_ok": False}]
    ((name, message, files),) = hub.commits
    assert (name, message) == ("me/mine", "first")
    model = trained / "model"
    sent = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    assert set(files) == sent and {"recipe.toml", "README.md"} < sent
    for file in sent - {"README.md"}:
        assert files[file] == (model / file).read_bytes(), file
    card = ModelCard(files["README.md"].decode())
    assert card.data.license == "mit" and 'SentenceTransformer("me/mine")' in card.text
    assert [each.dataset_name for each in card.data.eval_results or ()] == ["own"]
    for content in files.values():
        assert str(trained.parents[1]).encode() not in content

    words = (str(trained), "me/mine", "--update", "--private", "--json")
    assert json.loads(cse("push", *words).out)["url"] == URL
    assert hub.made[1] == {"name": "me/mine", "private": True, "exist_ok": True}
    hub.private, count = False, len(hub.commits)
    refused(cse("push", *words), "is a public repository", "leave out --private")
    assert len(hub.commits) == count


def test_a_dry_run_asks_nobody(hub: Hub, cse: Cse, trained: Path) -> None:
    answer = cse("push", str(trained), "me/mine", "--dry-run")
    assert answer.code == 0 and "model.safetensors" in answer.out
    assert "names no licence" in answer.err and not hub.made


def test_what_the_hub_refuses_is_one_line(
    hub: Hub, cse: Cse, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call, code, words in (
        ("create_repo", 401, ("the hub refuses the token (got 'me/mine')", "hf auth login")),
        ("create_repo", 403, ("the token may not write there",)),
        ("create_repo", 409, ("there is a repository of this name already", "--update")),
        ("create_commit", 400, ("could not be pushed: The hub says no (got", "--update")),
    ):
        hub.fails = {call: code}
        refused(cse("push", str(trained), "me/mine", "--licence", "mit"), *words)
    monkeypatch.setattr("cse_hub.cli.is_hub_reachable", lambda: False)
    refused(cse("push", str(trained), "me/mine"), "the Hugging Face hub cannot be reached")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    refused(cse("push", str(trained), "me/mine"), "no token for the Hugging Face hub", "hf auth")


def test_what_cannot_be_pushed(hub: Hub, cse: Cse, trained: Path, tmp_path: Path) -> None:
    refused(cse("push", str(tmp_path / "none"), "me/x"), "is not a run or a saved model")
    (tmp_path / "run.toml").touch()
    refused(cse("push", str(tmp_path), "me/x"), "this run has saved no model yet", "--resume")
    for name in ("x", "me/x/y", "me/x y", "/x", "me/"):
        refused(cse("push", str(trained), name), "is not a repository's name")
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    (copy / "model/config.json").write_text("{}")
    refused(cse("push", str(copy), "me/x"), "the model is damaged: config.json is not what")
    assert not hub.made


def test_what_the_training_did_not_write_is_not_sent(
    hub: Hub, cse: Cse, trained: Path, tmp_path: Path
) -> None:
    copy, secret = tmp_path / "copy", tmp_path / "secret"
    shutil.copytree(trained, copy)
    secret.write_text("a key")
    (copy / "model/notes").mkdir()
    (copy / "model/notes/secret.txt").symlink_to(secret)
    (copy / "model/optimizer.bin").write_bytes(b"large")
    (copy / "model/README.md").unlink()
    (copy / "model/README.md").symlink_to(secret)
    answer = cse("push", str(copy), "me/mine", "--licence", "mit")
    assert "not sent" in answer.err and "notes/secret.txt" in answer.err
    sent = hub.commits[0][2]
    assert "optimizer.bin" not in sent and b"a key" not in b"".join(sent.values())
    (copy / "model/checksums.json").unlink()
    refused(cse("push", str(copy), "me/mine"), "the model is damaged: it has no checksums.json")


def test_a_card_that_people_edited(hub: Hub, cse: Cse, trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    card = copy / "model/README.md"
    card.write_text("---\nlicense: cc-by-4.0\nlanguage: de\n---\n\n# Mine\n\nMy words.\n")
    assert cse("push", str(copy), "me/mine").err == "", "it names a licence"
    sent = ModelCard(hub.commits[0][2]["README.md"].decode())
    assert sent.data.language == "de" and "My words." in sent.text
    card.unlink()
    assert cse("push", str(copy), "me/other", "--licence", "mit").code == 0
    assert b"license: mit" in hub.commits[1][2]["README.md"]
    card.write_text("---\nlicense: [\n---\n\n# Mine\n")
    refused(cse("push", str(copy), "me/third"), "README.md: cannot be read", "between the two ---")
