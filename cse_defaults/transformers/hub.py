"""Whether the Hugging Face hub is reachable, and models in its cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cse_core.errors import CseError, did_you_mean
from cse_core.loading import is_hub_reachable

_SMALL = ("*.json", "*.txt", "*.model")
_WEIGHTS = ("*.safetensors",)
_OTHERS = ("onnx/*", "openvino/*")
"""Files of other programs."""


def hub_folder(name: str, encoders: Sequence[str], *, weights: bool) -> Path | None:
    """Return the folder of the cache with a model of the hub, or with what says how it encodes.

    Where the hub cannot be reached, that is what was cached before. ``encoders`` are names of
    installed ones, for the hint. Returned is None where no weights are wanted and nothing else of
    the model can be had.
    """
    import huggingface_hub as hub
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    what = "no folder of this name, and the hub cannot be reached"
    hint = "check the spelling and the network, or give the path of a downloaded folder"
    wanted = [*_SMALL, *_WEIGHTS] if weights else [*_SMALL]
    local = not is_hub_reachable()
    try:
        return Path(
            hub.snapshot_download(
                name, allow_patterns=wanted, ignore_patterns=[*_OTHERS], local_files_only=local
            )
        )
    except GatedRepoError:
        what, hint = "your account may not read it", "ask for access on its page, and log in"
    except RepositoryNotFoundError:
        what = "is not a folder, an installed encoder or a model on the hub"
        hint = did_you_mean(name, encoders)
        weights = True  # nothing can come of it
    except Exception as error:  # a network has many ways to fail
        what = what if local else f"the hub does not give it: {' '.join(str(error).split())[:200]}"
    if not weights:
        return None
    raise CseError(what, where="model.name", value=name, hint=hint) from None
