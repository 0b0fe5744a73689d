"""Evaluations that a run's folder keeps: one line each in ``evaluations.jsonl``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cse_cli.terminal.console import warn
from cse_core import __version__


def keep(models: tuple[str, ...], options: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Add each model's scores to its run's folder; models that are no runs keep none.

    Args:
        models: The models as they were named.
        options: How they were scored, where that is not the default.
        found: What ``cse eval --json`` prints.
    """
    from cse_core.runtime.model_files import RUN_FILE
    from cse_core.training.run_folder import EVALUATIONS

    pairs = options.get("pairs_out")
    for name, scores in zip(models, found.get("models", [found]), strict=True):
        path = Path(name).expanduser() / EVALUATIONS
        if not path.with_name(RUN_FILE).is_file():
            continue
        line = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": __version__,
            "options": dict(options),
            "encoder": scores["encoder"],
            "results": scores["results"],
        }
        if pairs:
            line["pairs_sha256"] = hashlib.sha256(Path(pairs).read_bytes()).hexdigest()
        if path.is_symlink():
            warn(f"{path} is a link: the scores are not kept there")
            continue
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            warn(f"{path}: the scores are not kept: {error.strerror or error}")
            continue
        _add_to_card(path.parent)


def _add_to_card(run: Path) -> None:
    """Add the scores to the card of a run's model; a card that nobody can read is left as it is."""
    from cse_cli.cards.card import add_evaluations

    card = run / "model" / "README.md"
    if not card.is_file() or card.is_symlink():
        return
    try:
        add_evaluations(run)
    except Exception as error:  # people edit cards, and a yaml reader has errors of its own
        reason = " ".join(str(error).split())[:200]
        warn(f"{card}: the scores are not in the card: {reason or type(error).__name__}")
