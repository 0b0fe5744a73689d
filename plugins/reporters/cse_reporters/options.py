"""Options of the reporters."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from cse_core.options import Options


def _free(name: str) -> str:
    """Refuse the name of what the run itself writes into its folder."""
    from cse_core.files import EVALUATIONS, FOLDERS, METRICS, RESULT, RUN_FILE

    if name in (RUN_FILE, RESULT, METRICS, EVALUATIONS, *FOLDERS) or name.startswith("tracked-"):
        raise ValueError("is the name of a file of the run itself, name another one")
    return name


_Name = Annotated[str, Field(pattern=r"^[^./\\][^/\\]*$"), AfterValidator(_free)]
"""A name in the run's folder; one with a dot in front is the run's own."""


class CsvOptions(Options):
    """Options of ``csv``."""

    file: _Name = "metrics.csv"
    """Name of the file in the run's folder."""


class TensorboardOptions(Options):
    """Options of ``tensorboard``."""

    folder: _Name = "tensorboard"
    """Name of the folder of events in the run's folder."""


class TrackerOptions(Options):
    """Options of every tracker."""

    project: str = Field(default="cse", min_length=1)
    """Project (of MLflow: the experiment) that the run belongs to."""

    name: str | None = Field(default=None, min_length=1)
    """Name of the tracked run; by default that of the run's folder."""


class WandbOptions(TrackerOptions):
    """Options of ``wandb``; the environment variables of wandb hold too."""

    group: str | None = Field(default=None, min_length=1)
    """Group of runs."""

    offline: bool = False
    """Whether to keep everything in the run's folder, for ``wandb sync``."""


class MlflowOptions(TrackerOptions):
    """Options of ``mlflow``; the environment variables of MLflow hold too."""

    uri: str | None = Field(default=None, min_length=1)
    """Where MLflow tracks: a server or a database such as ``sqlite:///mlflow.db``."""


class TrackioOptions(TrackerOptions):
    """Options of ``trackio``; the environment variables of Trackio hold too."""

    group: str | None = Field(default=None, min_length=1)
    """Group of runs."""

    space: str | None = Field(default=None, pattern=r"^[\w.-]+(/[\w.-]+)?$")
    """Space of the Hugging Face hub, ``owner/name``; by default a local database."""
