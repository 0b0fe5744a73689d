"""Data sets of the Hugging Face hub, or of its cache where there is no network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cse_core.data.tables import ROWS, Reading, arrow_text
from cse_core.errors import CseError
from cse_core.runtime.hub import hub_answers


def read_hub(name: str, reading: Reading) -> Iterator[Any]:
    """Yield the rows of a hub data set as ``pyarrow.Table``s of strings.

    The split ``train`` is taken, or the only one, of ``owner/name`` or
    ``owner/name:configuration``. Code of the data set is never run.

    Raises:
        CseError: It cannot be had, or has several splits and no ``train``.
    """
    import datasets
    from huggingface_hub import constants

    repository, _, configuration = name.partition(":")
    online = hub_answers()
    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    if not online:  # its libraries then look only into their cache
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        found = datasets.load_dataset(repository, configuration or None)
    except Exception as error:  # many kinds of four libraries; all mean that it cannot be had
        told = " ".join(str(error).split())
        raise CseError(
            f"no data set of the hub could be loaded: {told[:300]}",
            where=name,
            hint="check the name (owner/name or owner/name:configuration)"
            if online
            else "the hub cannot be reached from here: name a file or an installed data set",
        ) from error
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
    splits = dict(found)
    if "train" not in splits and len(splits) != 1:
        hint = f"its splits: {', '.join(splits)}; save the one you want as a file"
        raise CseError("no split train", where=name, hint=hint)
    rows = splits.get("train", next(iter(splits.values())))
    for table in rows.with_format("arrow").iter(batch_size=ROWS):
        yield arrow_text(table, reading)
