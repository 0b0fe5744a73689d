"""The contract of a suite: what ``cse eval --suite NAME`` asks of it, and what it gives back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_core.evaluation.vectors import Encode

Progress = Callable[[int, int, str], None]
"""``progress(done, total, what)`` moves the progress bar."""


@dataclass(frozen=True)
class SuiteFiles:
    """The files of a suite in a data folder.

    Attributes:
        files: Where the file of each name is, None where it is not there.
        broken: Why other files could not be looked at, an error for each.
    """

    files: Mapping[str, Path | None]
    broken: tuple[CseError, ...] = ()

    @property
    def there(self) -> dict[str, Path]:
        """Return those that are there."""
        return {name: path for name, path in self.files.items() if path is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of those that are not."""
        return tuple(name for name, path in self.files.items() if path is None)


@dataclass(frozen=True, kw_only=True)
class SuiteScore:
    """What an encoder scores on one set of a suite.

    Attributes:
        name: The set, ``stsb.test``; no other set of a call has the same.
        scores: Numbers by name, the most important one first.
        split: Part of the set: ``test``, ``dev``, ``all``.
        setting: How the number is made, in words that tell it from other settings.
        seeds: Training runs of the encoder behind the numbers.
        facts: What else ``--json`` shows, JSON values by name.
    """

    name: str
    scores: Mapping[str, float]
    split: str
    setting: str
    seeds: int = 1
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return everything, scores rounded to 4 places."""
        rounded = {name: round(value, 4) for name, value in self.scores.items()}
        about = {"split": self.split, "setting": self.setting, "seeds": self.seeds}
        return {**rounded, **about, **self.facts}


@dataclass(frozen=True)
class DevSet:
    """What training is scored on at each evaluation, read from a file. Subclass it.

    Attributes:
        name: ``news.dev``: it stands before its scores, ``news.dev.recall@5``.
        choices: Its scores that may choose a checkpoint, the usual one first; higher is better.
        size: How many texts it has: with few of them a low ``effective_rank`` says nothing.
    """

    name: str
    choices: tuple[str, ...]
    size: int

    def score(self, encode: Encode) -> dict[str, float]:
        """Score an encoder.

        Args:
            encode: As for ``Suite.score``.

        Returns:
            Finite numbers by name, those of ``choices`` among them; the same for the same vectors.
            A collapse is seen by ``mean_cosine`` and ``effective_rank``, where they are given.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        raise TypeError(f"{type(self).__name__} scores nothing")


class Suite:
    """Texts with known answers. Subclass it; the class is called without an argument.

    ``locate``, ``read`` and ``read_dev`` import no torch. A suite keeps nothing between calls.
    """

    def locate(self, folder: Path) -> SuiteFiles:
        """Return where its files are, in the folder or a subfolder; none is read whole.

        Args:
            folder: The data folder, which may not be there.
        """
        raise TypeError(f"{type(self).__name__} has no files")

    def read(self, files: Mapping[str, Path]) -> Any:
        """Read the files that are there, one at least; called once, before a model is loaded.

        Args:
            files: ``locate(folder).there``.

        Returns:
            What ``score`` gets.

        Raises:
            CseError: If a file is broken.
        """
        raise TypeError(f"{type(self).__name__} reads nothing")

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Score an encoder.

        Args:
            encode: From N texts to their vectors ``[N, D]`` as the model gives them, float32.
            read: What ``read`` returned.
            progress: Hears how far it is.

        Returns:
            One for each set, in the order of ``read``; the same for the same vectors.
        """
        raise TypeError(f"{type(self).__name__} scores nothing")

    def read_dev(self, path: str | os.PathLike[str]) -> DevSet | None:
        """Read a file that ``train.dev`` names; asked of suites whose record says ``dev=True``.

        Returns:
            Its dev set, or None where the file is none of this suite: another suite may take it.

        Raises:
            CseError: If the file cannot be read, or is one of this suite and broken.
        """
        return None
