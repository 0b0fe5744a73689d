"""The studies that belong to no paper."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import StudySpec


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the studies of all methods on an equal footing, and of an encoder's adaptation."""
    return [
        StudySpec(
            name="cse/equal-footing",
            summary="eleven methods and mixes of them, each at its best of three learning rates",
            path="cse_study:studies/equal-footing.toml",
        ),
        StudySpec(
            name="cse/equal-footing-objectives",
            summary="token-level objectives, teachers, templates and crops on an equal footing",
            path="cse_study:studies/equal-footing-objectives.toml",
        ),
        StudySpec(
            name="cse/equal-footing-captions",
            summary="methods of single sentences on an equal footing, IFCL with its translation",
            path="cse_study:studies/equal-footing-captions.toml",
        ),
        StudySpec(
            name="cse/adapt",
            summary="a good encoder adapted to the texts of a domain, and what it forgets",
            path="cse_study:studies/adapt.toml",
        ),
    ]
