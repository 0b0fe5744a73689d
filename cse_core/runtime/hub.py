"""Whether the Hugging Face hub can be asked, and what its models' JSON files say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_core.runtime.model_files import JSON_FILES, read_json

MAX_SECONDS = 5.0
"""How long the hub may take to answer."""


def is_hub_reachable() -> bool:
    """Return whether the hub answers, without the half minute that its client retries."""
    from huggingface_hub import constants, get_session

    if constants.is_offline_mode():
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=MAX_SECONDS)
    except Exception:  # a network has many ways to fail
        return False
    return True


def json_files_on_hub(name: str, encoders: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the JSON files of a model on the hub: cached ones, else what it answers now.

    Empty where it cannot be reached and has nothing cached; loading then reports the reason.
    ``encoders`` are names of installed ones, for the hint.

    Raises:
        CseError: If the hub has no model of this name, or a file is not a JSON table.
    """
    import huggingface_hub as hub
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    files: dict[str, dict[str, Any]] = {}
    reachable: bool | None = None
    for file in JSON_FILES:
        settings = files.get("tokenizer_config.json", {})
        says_enough = isinstance(settings.get("do_lower_case"), bool) and "mask_token" in settings
        if file == "tokenizer.json" and says_enough:
            continue  # megabytes that would tell nothing new
        try:
            path = hub.hf_hub_download(name, file, local_files_only=True)
        except LocalEntryNotFoundError:
            reachable = is_hub_reachable() if reachable is None else reachable
            if not reachable:
                continue
            try:
                path = hub.hf_hub_download(name, file)
            except (GatedRepoError, LocalEntryNotFoundError):
                return files  # the account lacks access, or the network went away
            except RepositoryNotFoundError:
                raise CseError(
                    "is not a folder, an installed encoder or a model on the hub",
                    where="model.name",
                    value=name,
                    hint=did_you_mean(name, encoders),
                ) from None
            except EntryNotFoundError:
                continue
            except Exception:
                return files
        files[file] = read_json(Path(path), name, kind=dict)
    return files
