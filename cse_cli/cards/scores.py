"""Scores that a run keeps, in ``evaluations.jsonl`` and in its model's card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cse_cli.terminal.console import warn
from cse_core.files import EVALUATIONS, RUN_FILE


def keep_scores(run: Path, evaluation: Mapping[str, Any]) -> None:
    """Add an evaluation of a run's model to its folder; any other folder keeps none.

    What cannot be written is a warning.

    Args:
        run: The folder that was scored.
        evaluation: JSON values: ``encoder``, its setting in words; ``version`` of cse; ``results``,
            the numbers of each test set by their names; and what else is to be known.
    """
    path = run / EVALUATIONS
    if not path.with_name(RUN_FILE).is_file():
        return
    if path.is_symlink() or (path.exists() and not path.is_file()):
        warn(f"{path} is not a regular file: the scores are not kept there")
        return
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(evaluation, ensure_ascii=False) + "\n")
    except OSError as error:
        warn(f"{path}: the scores are not kept: {error.strerror or error}")
        return
    _add_to_card(run)


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
