"""``cse push``: a run's model to a repository of the hub; every refusal is one line."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.filesize import decimal

from cse_cli.api import echo, is_hub_reachable, say_json, warn
from cse_core.errors import CseError
from cse_core.files import MANIFEST, RUN_FILE, SUMS, read_json, verify_checksums

CARD = "README.md"
BESIDE = (CARD, "recipe.toml")
"""What a run writes into a model's folder once its checksums are made."""
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_PLACEHOLDER = 'SentenceTransformer("MODEL")  # this folder, or its name on the hub'
_LOGIN = "log in with `hf auth login`, or set HF_TOKEN to a token that may write"
_REFUSALS = {
    401: ("the hub refuses the token", _LOGIN),
    403: ("the token may not write there", "name a repository of your own, or use another token"),
    409: ("there is a repository of this name already", "name another, or add --update"),
}
"""What the hub's status codes mean here, and what to do."""


def push(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A finished run, or the folder of a saved model.")
    ],
    name: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Repository: owner/name.")],
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", metavar="ID", help="For the card: apache-2.0."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Create a private repository.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Add a commit to an existing repository.")
    ] = False,
    message: Annotated[
        str, typer.Option("--message", metavar="TEXT", help="Commit message.")
    ] = "A model trained with cse",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be uploaded, without uploading it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Send a run's model, card and recipe to a repository of the Hugging Face hub."""
    if not _NAME.fullmatch(name):
        hint = "write OWNER/NAME in letters, digits, '-', '_' and '.'"
        raise CseError("is not a repository's name", where="OWNER/NAME", value=name, hint=hint)
    files, others = _files(run)
    card, licence = _card(files.pop(CARD, None), name, licence)
    why_not = read_json(files[MANIFEST], str(run), kind=dict).get("why_not")
    sizes = {CARD: len(card.encode())} | {path: p.stat().st_size for path, p in files.items()}
    url = None if dry_run else _send(name, files, card, message, private=private, update=update)
    if json:
        say_json({"repository": name, "files": sizes, "licence": licence, "url": url,
                  "left_out": others})  # fmt: skip
        return
    if others:
        warn(f"not sent, as the training did not write them: {', '.join(others)}")
    if licence is None:
        warn("the card names no licence, so others may not use the model: add --licence ID")
    if dry_run:
        echo(f"would be sent to {name}:")
        for file, size in sizes.items():
            echo(f"  {file}  {decimal(size)}")
        return
    echo(f"pushed {len(sizes)} files, {decimal(sum(sizes.values()))}: {url}")
    echo(f"next: hf download {name} --local-dir MODEL && cse encode MODEL --text 'a sentence'")
    if why_not is None:
        echo(f'      SentenceTransformer("{name}").encode(["a sentence"]) in Python')
    else:
        warn(f"sentence-transformers needs cse-toolkit and trust_remote_code=True: {why_not}")


def _files(run: Path) -> tuple[dict[str, Path], list[str]]:
    """Find the files of a run's model by their names in the repository, and those left out.

    Sent are those that the training wrote, whose checksums are verified, and the card.
    """
    model = next((folder for folder in (run / "model", run) if (folder / MANIFEST).is_file()), None)
    if model is None:
        what, hint = "is not a run or a saved model", "name the folder that `cse train` made"
        if (run / RUN_FILE).is_file():
            what = "this run has saved no model yet"
            hint = f"finish it: cse train --resume {quote(str(run))}"
        raise CseError(what, where="RUN", value=str(run), hint=hint)
    if wrong := verify_checksums(model, MANIFEST):
        hint = "train it again, or copy the whole folder again"
        raise CseError(f"the model is damaged: {wrong}", where="RUN", value=str(run), hint=hint)
    written = {*read_json(model / SUMS, str(run), kind=dict), SUMS}
    there = {path.relative_to(model).as_posix(): path for path in sorted(model.rglob("*"))}
    written.update(name for name in BESIDE if name in there and not there[name].is_symlink())
    files = {name: path for name, path in there.items() if name in written}
    others = (name for name, path in there.items() if name not in files and not path.is_dir())
    return files, [name for name in others if "/." not in f"/{name}"]


def _card(path: Path | None, name: str, licence: str | None) -> tuple[str, str | None]:
    """Return the card as it is sent, and the licence that it names; people may have edited it."""
    from huggingface_hub import ModelCard

    try:
        text = path.read_text(encoding="utf-8") if path is not None else ""
        card = ModelCard(text or f"---\nlibrary_name: cse\n---\n\n# {name}\n")
        if licence is not None:
            card.data["license"] = licence
        card.text = card.text.replace(_PLACEHOLDER, f'SentenceTransformer("{name}")')
        named = card.data.get("license")
        return str(card), None if named is None else str(named)
    except Exception as error:  # what people edited may be anything
        reason = " ".join(str(error).split())[:300]
        hint = "fix the lines between the two ---, or remove the file"
        raise CseError(f"cannot be read: {reason}", where=str(path), hint=hint) from None


def _send(
    name: str, files: dict[str, Path], card: str, message: str, *, private: bool, update: bool
) -> str:
    """Make the repository and send everything in one commit; return its address."""
    from huggingface_hub import CommitOperationAdd, HfApi, get_token
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if get_token() is None:
        raise CseError("no token for the Hugging Face hub", where="cse push", hint=_LOGIN)
    if not is_hub_reachable():
        hint = "check the network and HF_HUB_OFFLINE, then run the same command again"
        raise CseError("the Hugging Face hub cannot be reached", where="cse push", hint=hint)
    if not sys.stderr.isatty():
        disable_progress_bars()
    adding = [CommitOperationAdd(CARD, card.encode())]
    adding += [CommitOperationAdd(file, path) for file, path in files.items()]
    api = HfApi(library_name="cse")
    try:
        made = api.create_repo(name, private=private, exist_ok=update)
        # Of a repository that is there already, create_repo leaves the visibility as it is.
        if private and update and not api.repo_info(name).private:
            hint = "hide it in its settings on the hub, or leave out --private"
            raise CseError("is a public repository", where="OWNER/NAME", value=name, hint=hint)
        api.create_commit(name, adding, commit_message=message)
    except CseError:
        raise
    except Exception as error:  # the library, its transport and the network have many kinds
        code = getattr(getattr(error, "response", None), "status_code", None)
        said = re.sub(r"\(Request ID: [^)]*\)", "", " ".join(str(error).split())).strip()
        refused = f"could not be pushed: {said[:300] or type(error).__name__}"
        what, hint = _REFUSALS.get(
            code or 0, (refused, "if the repository exists now: add --update")
        )
        raise CseError(what, where="OWNER/NAME", value=name, hint=hint) from error
    return str(made)
