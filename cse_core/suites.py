"""What ``cse eval --suite NAME`` asks of a suite, and training of a dev set."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from cse_core.errors import CseError, PartError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_core.parts import Metric
    from cse_core.protocols import Corpus

Progress = Callable[[int, int, str], None]
"""``progress(done, total, what)`` moves the progress bar."""
Encode = Callable[[Sequence[str]], "NDArray[np.float32]"]
"""From N texts to their vectors ``[N, D]``, as the model gives them, not normalised."""
Role = Literal["query", "document"]
"""What a text is in a search: models may put another prompt before each."""
ROLE_PROMPTS: Mapping[Role, tuple[str, ...]] = {
    "query": ("query",), "document": ("document", "passage", "corpus"),
}  # fmt: skip
"""Names of a model's prompts for each, as sentence-transformers takes the first that is there."""


def in_role(encode: Encode, role: Role) -> Encode:
    """Return the encoder of queries or documents, with the model's prompt for them, if any."""
    with_role: Callable[[Role], Encode] | None = getattr(encode, "with_role", None)
    return encode if with_role is None else with_role(role)


def similarity_of(encode: Encode) -> str:
    """Return the similarity of a model's vectors: cosine, dot, euclidean or manhattan."""
    return str(getattr(encode, "similarity", "cosine"))


@dataclass(frozen=True)
class Verdict:
    """What a run did to the model.

    Attributes:
        text: One plain sentence.
        better: Whether the end is better than the start beyond chance; None if the set cannot
            tell.
    """

    text: str
    better: bool | None


class NoDevSet(CseError):
    """A file that is not a dev set of a suite; the text says what is missing."""


@dataclass(frozen=True)
class SuiteFiles:
    """The files of a suite in a data folder.

    Attributes:
        files: Path of each file by name, None if it is missing.
        broken: An error for each other file that could not be read.
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
        name: Name of the set in ``--json``, unique.
        scores: Finite numbers by name, the most important one first.
        split: ``test``, ``dev``, ``all``, or empty.
        setting: How the numbers are computed; different settings are not compared.
        seeds: Training runs of the encoder behind the numbers.
        facts: JSON values that ``--json`` adds to the scores.
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
        name: ``news.dev``, the prefix of its scores: ``news.dev.recall@5``.
        choices: Scores that may select a checkpoint, the usual one first; higher is better.
        size: Number of its texts: with few, ``effective_rank`` is always low.
    """

    name: str
    choices: tuple[str, ...]
    size: int

    def score(self, encode: Encode) -> dict[str, float]:
        """Return finite numbers by name, with those of ``choices`` that are defined; pure.

        ``mean_cosine`` and ``effective_rank``, if among them, reveal a collapse.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """

    def answers(self, encode: Encode) -> NDArray[np.float64] | None:
        """Return ``[Q, …]`` numbers for questions that never chose a checkpoint; None without any.

        It is asked at the end of a run, by the start's weights and by those that were chosen;
        :meth:`verdict` compares both.
        """
        return None

    def verdict(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> Verdict:
        """Compare the answers at the start and at the end, both ``[Q, …]``."""

    def note(self) -> str:
        """Say in a line of the plan what the set can show; nothing by default."""
        return ""

    def scored_texts(self) -> Iterable[str]:
        """List the texts that no run should train on; a run says how many of them it does."""
        return ()

    def measure(self, encode: Encode, metrics: Mapping[str, Metric]) -> dict[str, float]:
        """Return its scores, and ``METRIC.NUMBER`` of metrics where it has what they take."""
        return self.score(encode)


_RETURNED: Mapping[str, tuple[type, ...]] = {
    "locate": (SuiteFiles,), "score": (Sequence,), "read_dev": (DevSet, NoneType),
    "dev_of_rows": (DevSet,), "dev_of_pairs": (DevSet,),
}  # fmt: skip
"""What methods of suites return."""


def _checked(method: Callable[..., Any], *kinds: type) -> Callable[..., Any]:
    @wraps(method)
    def call(suite: Suite, *given: Any, **named: Any) -> Any:
        if not isinstance(made := method(suite, *given, **named), kinds):
            kind, shown = type(suite), "None" if made is None else type(made).__name__
            who = SimpleNamespace(path=kind.__qualname__, owner=kind.__module__.partition(".")[0])
            what = f"promised {' or '.join(k.__name__ for k in kinds)}, returned {shown}"
            raise PartError(who, method.__name__, what)
        return made

    return call


class Suite:
    """Texts with known answers. Subclass it; the class is called without an argument.

    ``locate`` and methods that begin with ``read`` or ``dev`` must not import torch. A suite keeps
    nothing between calls. What a method returns is checked: a ``PartError`` names the class.
    """

    def __init_subclass__(cls) -> None:
        """Let the methods of a subclass check what they return."""
        for name, kinds in _RETURNED.items():
            if name in vars(cls):
                setattr(cls, name, _checked(vars(cls)[name], *kinds))

    def locate(self, folder: Path) -> SuiteFiles:
        """Return its files in a folder, which may be missing; none is read whole."""

    def read(self, files: Mapping[str, Path]) -> Any:
        """Read ``locate(folder).there``, at least one, for ``score``; before a model is loaded.

        Raises:
            CseError: If a file is broken.
        """

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return the scores of each set that ``read`` returned; the same for the same vectors."""

    def read_dev(self, path: str | os.PathLike[str]) -> DevSet | None:
        """Read a file that ``train.dev`` names; called if the record says ``dev``.

        Return None, or a ``NoDevSet`` that says why, for a file of another kind.

        Raises:
            CseError: If the file cannot be read, or is one of this suite and broken.
        """
        return None

    def dev_of_rows(self, held_out: Corpus, rows: Corpus) -> DevSet:
        """Return a dev set of rows that are not trained on; called if the record says ``"rows"``.

        ``rows`` are those that are trained on.

        Raises:
            CseError: If nothing can be asked of such rows.
        """

    def dev_of_pairs(self, name: str, rows: Sequence[Mapping[str, Any]]) -> DevSet:
        """Return graded pairs as a dev set; called if the record says ``dev="pairs"``."""
