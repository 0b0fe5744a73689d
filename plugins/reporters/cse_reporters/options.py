"""Options of the reporters."""

from __future__ import annotations

from pydantic import Field

from cse_core.options import Options

_NAME = r"^[^/\\]+$"


class CsvOptions(Options):
    """Options of ``csv``."""

    file: str = Field(default="metrics.csv", pattern=_NAME)
    """Name of the file in the run's folder."""


class TensorboardOptions(Options):
    """Options of ``tensorboard``."""

    folder: str = Field(default="tensorboard", pattern=_NAME)
    """Name of the folder of events in the run's folder."""
