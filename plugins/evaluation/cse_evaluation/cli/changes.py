"""``cse eval --aug``: which augmenters change the second sentences, with which options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cse_cli.plugins.installed import Installed
from cse_cli.texts.tables import read_table
from cse_core.capabilities import flatten
from cse_core.errors import CseError, did_you_mean, raise_all
from cse_core.recipes.composition import PlannedPart
from cse_core.recipes.model_facts import model_facts, resolve_model
from cse_core.recipes.reading import read_recipe
from cse_core.recipes.values import FlagText, OptionReader
from cse_core.records import AugmenterSpec
from cse_core.runtime.model_files import RUN_FILE

if TYPE_CHECKING:
    from cse_cli.models.saved_model import SentenceModel
    from cse_core.evaluation.suites import Encode
    from cse_core.registry.registry import Registry
    from cse_evaluation.changed import ChangedTexts
    from cse_evaluation.pairs import PairSet

_GIVEN = ("vocab:cased", "mask-token")
"""What a model has or has not, and a part can do without."""


@dataclass(frozen=True)
class Changes:
    """What becomes of the second sentences before each model encodes them.

    Attributes:
        names: The augmenters.
        sets: ``aug.NAME.OPTION=VALUE`` texts.
        dropout: Whether they are encoded with dropout.
        seed: Of what is drawn.
    """

    names: tuple[str, ...]
    sets: tuple[str, ...]
    dropout: bool
    seed: int

    def __bool__(self) -> bool:
        """Return whether anything is changed."""
        return bool(self.names) or self.dropout

    @property
    def setting(self) -> str:
        """Return in words how scores are made."""
        parts = [f"aug.{name}" for name in self.names] + ["dropout"] * self.dropout
        return f"all, second sentences changed by {' and '.join(parts)}"

    def planned(self, model: str, plugins: Installed) -> list[PlannedPart]:
        """Return the augmenters for a model: those of a run have the run's options.

        Raises:
            CseError: If an augmenter or option is unknown, or cannot work outside training.
        """
        written = self._written(model, plugins.registry)
        reader, found = OptionReader(), []
        for name in self.names:
            part = plugins.registry.find("aug", name, where="--aug")
            path = f"aug.{part.name}"
            options = reader.options(part.spec.options, written.get(part.name, {}), path)
            if options is not None:
                found.append(PlannedPart.of(part, options))
        raise_all(reader.errors)
        facts = model_facts(model, plugins.registry)
        for place, planned in enumerate(found):
            _check(planned)
            try:
                resolve_options = planned.spec.resolve_options
                options = (
                    resolve_options(planned.options, facts) if resolve_options else planned.options
                )
            except ValueError as error:
                raise CseError(str(error), where=planned.path) from None
            found[place] = replace(planned, options=options)
        return found

    def encoder(
        self,
        model: SentenceModel,
        encode: Encode,
        sets: Sequence[PairSet],
        plugins: Installed,
    ) -> ChangedTexts:
        """Return the encoder of a model whose second sentences are changed.

        Raises:
            CseError: As ``planned``; or a column that an augmenter reads is not in a file.
        """
        from cse_evaluation.changed import ChangedTexts, Changer

        planned = self.planned(model.name, plugins)
        columns = {name: _column(name, sets) for name in _columns(planned)}
        changer = Changer(
            model,
            planned,
            columns,
            self.dropout,
            self.seed,
            partial(resolve_model, registry=plugins.registry),
        )
        return ChangedTexts(encode, sets, changer)

    def _written(self, model: str, registry: Registry) -> dict[str, dict[str, Any]]:
        """Return the options that a run and ``--set`` give, by augmenter."""
        known = [name.rpartition("/")[2] for name in self.names]
        written: dict[str, dict[str, Any]] = {
            name: _of_run(model, name, registry) for name in known
        }
        for text in self.sets:
            path, separator, value = text.partition("=")
            kind, _, rest = path.strip().partition(".")
            name, _, option = rest.partition(".")
            if not separator or kind != "aug" or not option:
                raise CseError("is not aug.NAME.OPTION=VALUE", where="--set", value=text,
                               hint="write --set aug.fusion.epsilon=0.5")  # fmt: skip
            if name not in written:
                hint = did_you_mean(name, known) if known else "name it with --aug"
                raise CseError(
                    "nothing is changed by this augmenter", where="--set", value=text, hint=hint
                )
            written[name][option] = FlagText(value.strip())
        return written


def _of_run(model: str, name: str, registry: Registry) -> dict[str, Any]:
    """Return an augmenter's options in a run, nothing where the model is not a run or has none."""
    file = Path(model).expanduser() / RUN_FILE
    if not file.is_file():
        return {}
    items = read_recipe(file, registry)[-1].table.get("aug", [])
    for item in items:
        if name in (item.get("name"), str(item.get("use")).rpartition("/")[2]):
            return {key: value for key, value in item.items() if key not in ("use", "name")}
    return {}


def _check(planned: PlannedPart) -> None:
    if cast(AugmenterSpec, planned.spec).gradient_of(planned.options) is not None:
        raise CseError("needs the gradient of an objective, and evaluation has none",
                       where="--aug", value=planned.name, hint="name another")  # fmt: skip
    others = [
        need
        for need in flatten(planned.requires)
        if not need.startswith("column:") and need not in _GIVEN
    ]
    if others:
        raise CseError(f"needs {', '.join(others)}, which training alone has",
                       where="--aug", value=planned.name, hint="name another")  # fmt: skip


def _columns(planned: Sequence[PlannedPart]) -> list[str]:
    needs = [need for part in planned for need in flatten(part.requires)]
    return list(dict.fromkeys(need[7:] for need in needs if need.startswith("column:")))


def _column(name: str, sets: Sequence[PairSet]) -> dict[str, str]:
    """Return a column of the files of pairs by second sentence, the first of each.

    Raises:
        CseError: If a file has no such column, or a row has no text in it.
    """
    found: dict[str, str] = {}
    for pairs in sets:
        columns, rows = ([], iter(())) if pairs.path is None else read_table(pairs.path)
        if name not in columns:
            raise CseError(
                f"has no column {name!r}, which belongs to its second sentences",
                where=pairs.name,
                hint="name a file of pairs that has it, --pairs FILE",
            )
        for pair, (place, row) in zip(pairs.pairs, rows, strict=True):
            text = row.get(name)
            if not isinstance(text, str) or not text.strip():
                raise CseError(f"no text in the column {name!r}", where=place)
            found.setdefault(pair.sentence2, text)
    return found
