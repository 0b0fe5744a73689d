"""What `cse bench` measured on this machine, kept for later runs; without torch.

The file is ``bench.json`` in the user's cache folder, or in the folder that ``CSE_CACHE`` names;
``off`` keeps nothing. A measurement counts only where processor, device, threads, torch and the
encoder's size are the same.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from cse_bench.machine import Place
from cse_core.errors import CseError
from cse_core.runtime.atomic_files import VARIABLE, cache_folder, write_whole

if TYPE_CHECKING:
    from cse_core.recipes.composition import Composition

_NAME, _FORM, _MOST = "bench.json", 2, 100
_MOST_WAITED = 10.0
_Positive = Annotated[FiniteFloat, Field(gt=0)]


class Measurement(BaseModel):
    """One composition, measured on this machine.

    Attributes:
        place: Where.
        hidden: Hidden size of the encoder.
        layers: Its layers.
        family: Its ``model_type``.
        attention: ``model.attention``.
        date: The day, ``YYYY-MM-DD``.
        recipe: Name of the recipe, None without one.
        parts: ``cse_bench.work.fingerprint`` of its parts.
        batch_size: Sentences of a step.
        passes: Encoder calls of a step.
        work: Tokens of a step by what is done to each (``cse_bench.work``), None where they
            cannot be known beforehand.
        rule: What ``auto`` takes here without a measurement.
        seconds: Seconds of a step by precision, medians over rounds.
        gain: How many times faster bf16 was than fp32, the median over rounds; None where one of
            them was not measured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: Place
    hidden: int
    layers: int
    family: str | None
    attention: str
    date: str
    recipe: str | None
    parts: str
    batch_size: Annotated[int, Field(ge=1)]
    passes: int
    work: _Positive | None
    rule: str
    seconds: dict[str, _Positive]
    gain: _Positive | None

    def like(self, other: Measurement) -> bool:
        """Return whether both measured the same work at the same place."""
        apart = {"date", "seconds", "gain", "rule"}
        return self.model_dump(exclude=apart) == other.model_dump(exclude=apart)


def cache_file() -> Path | None:
    """Return the file of measurements, there or not; None where nothing is to be kept."""
    folder = cache_folder()
    return None if folder is None else folder / _NAME


def measurements() -> list[Measurement]:
    """Return what is kept, the newest last; what is damaged or of another form is left out."""
    file = cache_file()
    if file is None:
        return []
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(content, dict) or content.get("form") != _FORM:
        return []
    kept = content.get("measurements")
    found = []
    for each in kept if isinstance(kept, list) else ():
        try:
            found.append(Measurement.model_validate(each))
        except ValidationError:
            continue
    return found


def keep(measured: Measurement) -> Path | None:
    """Add a measurement; one of the same work that tells nothing beyond it gives way.

    Returns:
        The file, None where nothing is to be kept.

    Raises:
        CseError: If it cannot be written.
    """
    file = cache_file()
    if file is None:
        return None
    from filelock import FileLock

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock"), timeout=_MOST_WAITED):
            others = [
                each
                for each in measurements()
                if not (each.like(measured) and set(each.seconds) <= set(measured.seconds))
            ]
            kept = [each.model_dump() for each in [*others, measured][-_MOST:]]
            write_whole(file, json.dumps({"form": _FORM, "measurements": kept}, indent=2) + "\n")
    except (OSError, NotImplementedError) as error:  # a lock that is not given is an OSError
        raise CseError(
            f"the measurement cannot be kept: {getattr(error, 'strerror', None) or error}",
            where=VARIABLE,
            value=str(file.parent),
            hint=f"name a folder that can be written to in {VARIABLE}",
        ) from None
    return file


def of_encoder(place: Place, composition: Composition) -> list[Measurement]:
    """Return what was measured at a place with encoders of this kind and size, the newest last."""
    facts, padded = composition.facts, composition.model.attention == "padded"
    wanted = (place, facts.family, facts.hidden, facts.layers, padded)
    return [
        each
        for each in measurements()
        if (each.place, each.family, each.hidden, each.layers, each.attention == "padded") == wanted
    ]


def measured_gain(place: Place, composition: Composition) -> float | None:
    """Return how many times faster bf16 was than fp32, None where that was not measured.

    The gain grows with the batch, so of several measurements that of the nearest batch counts,
    and the newest of equals.
    """
    batch = composition.train.batch_size
    found = [each for each in of_encoder(place, composition) if each.gain is not None]
    nearest = min(
        reversed(found), key=lambda each: abs(math.log(each.batch_size / batch)), default=None
    )
    return None if nearest is None else nearest.gain
