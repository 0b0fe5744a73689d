"""The studies that belong to no paper."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import StudySpec


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the studies of all methods on an equal footing, and of an encoder's adaptation."""
    return records_of_files(StudySpec, "cse_study:studies", prefix="cse/")
