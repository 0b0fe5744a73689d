"""What `cse bench` measured on this machine, kept for later runs; without torch.

The file is ``bench.json`` in the user's cache folder, or in the folder that ``CSE_CACHE`` names;
``off`` keeps nothing. A measurement counts only where processor, device, threads, torch and the
encoder's size are the same.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from cse_core.bench.machine import Place
from cse_core.errors import CseError
from cse_core.files import write_whole

VARIABLE = "CSE_CACHE"
"""Environment variable that names another cache folder."""
GAIN = 1.1
"""How many times faster than fp32 bf16 has to be for ``auto`` to take it."""
_NAME, _FORM, _MOST = "bench.json", 1, 100
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
        batch_size: Sentences of a step.
        passes: Encoder calls of a step.
        work: Tokens of a step by what is done to each (``cse_core.bench.work``), None where they
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
    named = os.environ.get(VARIABLE)
    if named is None:
        return Path(platformdirs.user_cache_dir("cse")) / _NAME
    return None if named.strip().lower() in ("", "off") else Path(named).expanduser() / _NAME


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
    others = [
        each
        for each in measurements()
        if not (each.like(measured) and set(each.seconds) <= set(measured.seconds))
    ]
    content = {
        "form": _FORM,
        "measurements": [each.model_dump() for each in [*others, measured][-_MOST:]],
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise CseError(
            f"the measurement cannot be kept: {error.strerror or error}",
            where=VARIABLE,
            value=str(file.parent),
            hint=f"name a folder that can be written to in {VARIABLE}",
        ) from None
    return file


def of_encoder(place: Place, hidden: int | None, layers: int | None) -> list[Measurement]:
    """Return what was measured at a place with encoders of this size, the newest last."""
    return [
        each
        for each in measurements()
        if (each.place, each.hidden, each.layers) == (place, hidden, layers)
    ]


def measured_gain(place: Place, hidden: int | None, layers: int | None) -> float | None:
    """Return how many times faster bf16 was than fp32 when that was last measured, else None."""
    gains = [each.gain for each in of_encoder(place, hidden, layers) if each.gain is not None]
    return gains[-1] if gains else None


def faster(gain: float) -> str:
    """Return the number format that ``auto`` takes where bf16 was ``gain`` times faster."""
    return "bf16" if gain >= GAIN else "fp32"
