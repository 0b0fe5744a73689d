"""What of a run is sent to the hub, and the sending; every refusal is one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cse_core.errors import CseError
from cse_core.runtime.atomic_files import exists, verify_checksums
from cse_core.runtime.hub import is_hub_reachable
from cse_core.runtime.model_files import MANIFEST, RUN_FILE

CARD = "README.md"
_LONGEST = 300
"""Letters of what the hub says that an error repeats."""
_IN_THE_CARD = 'SentenceTransformer("MODEL")  # this folder, or its name on the hub'


@dataclass(frozen=True)
class Package:
    """What is sent.

    Attributes:
        model: The folder of the model.
        name: The repository, ``OWNER/NAME``.
        files: Path of each file by its name in the repository, but the card.
        card: The card's text.
        licence: What the card names.
    """

    model: Path
    name: str
    files: Mapping[str, Path]
    card: str
    licence: str | None

    @classmethod
    def of(cls, run: Path, name: str, licence: str | None) -> Package:
        """Read a run, or a saved model.

        Raises:
            CseError: If nothing is there, the run is not finished, or a file of it is damaged.
        """
        model = _model(run)
        if wrong := verify_checksums(model):
            hint = "train it again, or copy the whole folder again"
            raise CseError(f"the model is damaged: {wrong}", where="RUN", value=str(run), hint=hint)
        found = sorted(path for path in model.rglob("*") if path.is_file())
        outside = [path for path in found if not path.resolve().is_relative_to(model.resolve())]
        if outside:
            what = f"{outside[0].relative_to(model)} leads out of the model's folder"
            raise CseError(what, where="RUN", value=str(run), hint="remove this link")
        files = {path.relative_to(model).as_posix(): path for path in found}
        files = {
            file: path
            for file, path in files.items()
            if not any(part.startswith(".") for part in Path(file).parts)
        }
        card, named = _card(files.pop(CARD, None), name, licence)
        return cls(model, name, files, card, named)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each file by its name in the repository."""
        found = {file: path.stat().st_size for file, path in self.files.items()}
        return {CARD: len(self.card.encode()), **found}


def check_name(name: str) -> None:
    """Refuse what cannot name a repository.

    Raises:
        CseError: It says how a name is written.
    """
    from huggingface_hub import hf_hub_url
    from huggingface_hub.errors import HFValidationError

    hint = "write OWNER/NAME: your name on the hub or that of your organisation, and the model's"
    if name.count("/") != 1:
        raise CseError("is not a repository's name", where="OWNER/NAME", value=name, hint=hint)
    try:
        hf_hub_url(name, CARD)
    except HFValidationError:
        what = "is not a repository's name: letters, digits, '-', '_' and '.', at most 96 of them"
        raise CseError(what, where="OWNER/NAME", value=name, hint=hint) from None


def send(package: Package, *, private: bool, update: bool, message: str) -> str:
    """Make the repository and send everything in one commit; returns its address.

    Args:
        package: What is sent.
        private: Whether only its owner sees a new repository.
        update: Whether it may be there already.
        message: Of the commit.

    Raises:
        CseError: If a token or the network is missing, the name is taken, or the hub says no.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token

    if get_token() is None:
        hint = "log in with `hf auth login`, or set HF_TOKEN to a token that may write"
        raise CseError("no token for the Hugging Face hub", where="cse push", hint=hint)
    if not is_hub_reachable():
        hint = "check the network and HF_HUB_OFFLINE, then type the same again"
        raise CseError("the Hugging Face hub cannot be reached", where="cse push", hint=hint)
    api = HfApi(library_name="cse")
    with _refusals(package.name, made=False):
        made = api.create_repo(package.name, private=private, exist_ok=update)
    adding = [CommitOperationAdd(CARD, package.card.encode())]
    adding += [CommitOperationAdd(file, path) for file, path in package.files.items()]
    with _refusals(package.name, made=not update), _bars():
        api.create_commit(package.name, adding, commit_message=message)
    return str(made)


def _model(run: Path) -> Path:
    """Return the folder of a run's model."""
    if not exists(run):
        hint = "name the folder that `cse train` made, such as runs/NAME"
        raise CseError("no such run", where="RUN", value=str(run), hint=hint)
    for folder in (run / "model", run):
        if (folder / MANIFEST).is_file():
            return folder
    if (run / RUN_FILE).is_file():
        hint = f"finish it with `cse train --resume {run}`"
        raise CseError("this run has saved no model yet", where="RUN", value=str(run), hint=hint)
    hint = "name a run, or the folder of a model that cse saved"
    raise CseError(f"is not a run: it has no {MANIFEST}", where="RUN", value=str(run), hint=hint)


def _card(path: Path | None, name: str, licence: str | None) -> tuple[str, str | None]:
    """Return the card as it is sent, and the licence that it names; people may have edited it."""
    from huggingface_hub import ModelCard

    try:
        text = path.read_text(encoding="utf-8") if path is not None else ""
        card = ModelCard(text or f"---\nlibrary_name: cse\n---\n\n# {name}\n")
        if licence is not None:
            card.data["license"] = licence
        if card.data.get("eval_results"):
            card.data["model_name"] = name.partition("/")[2]
        card.text = card.text.replace(_IN_THE_CARD, f'SentenceTransformer("{name}")')
        named = card.data.get("license")
        return str(card), named if named is None else str(named)
    except Exception as error:  # what people edited may be anything
        reason = " ".join(str(error).split())[:_LONGEST]
        hint = "fix the lines between the two ---, or remove the file"
        raise CseError(f"cannot be read: {reason}", where=str(path), hint=hint) from None


@contextmanager
def _bars() -> Iterator[None]:
    """Let the library draw its bars on a terminal alone."""
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

    if sys.stderr.isatty():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@contextmanager
def _refusals(name: str, *, made: bool) -> Iterator[None]:
    """Turn what the hub or the network says no to into one line.

    Args:
        name: The repository.
        made: Whether it was made just now, so that the next attempt finds it.
    """
    from huggingface_hub.errors import HfHubHTTPError

    again = ", then type the same again" + (" with --update" if made else "")
    try:
        yield
    except Exception as error:  # the library, its transport and the network have many kinds
        response = getattr(error, "response", None) if isinstance(error, HfHubHTTPError) else None
        code = getattr(response, "status_code", None)
        what, hint = {
            401: ("the hub refuses the token", f"log in with `hf auth login`{again}"),
            403: (
                "the token may not write there",
                "name a repository of your own, or make a token that may write" + again,
            ),
            404: ("the hub shows no such repository to this token", f"check OWNER{again}"),
            409: (
                "there is a repository of this name already",
                "name another one, or add a commit to this one with --update",
            ),
        }.get(code or 0, ("", ""))
        if not what:
            said = re.sub(r"\(Request ID: [^)]*\)", "", " ".join(str(error).split())).strip()
            what = f"could not be pushed: {(said or type(error).__name__)[:_LONGEST]}"
            hint = f"see what the hub says{again}"
        raise CseError(what, where="OWNER/NAME", value=name, hint=hint) from error
