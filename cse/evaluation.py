"""Score models as ``cse eval`` does."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

from cse_cli.plugins.installed import Installed


def evaluate(*models: str | PathLike[str], **options: Any) -> dict[str, Any]:
    """Score models on graded pairs, labelled texts and documents with titles.

    Args:
        models: Runs, model folders, installed encoders or names of the hub.
        options: The options of ``cse eval``, with ``_`` for ``-``: ``suite="sts"``,
            ``pairs="pairs.tsv"``, ``data_dir="DIR"``, ``no_baselines=True``; with ``quiet=True``
            no progress is shown.

    Returns:
        What ``cse eval --json`` prints: ``results`` by set for one model, ``models`` for several.

    Raises:
        CseError: If a model, a file or an option is wrong, or cse-evaluation is not installed.
    """
    plugins = Installed()
    function = plugins.commands.function("eval")
    found: dict[str, Any] = function(plugins, [fspath(model) for model in models], **options)
    return found
