"""The sections of ``make gpu``, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A module with ``run(setting)``.

    Attributes:
        name: Of the module.
        title: Its heading.
        seconds: Its share of ten minutes; what is left when these are over is cut.
    """

    name: str
    title: str
    seconds: int


SECTIONS = (
    Section("kernels", "Attention for rows of any length", 60),
    Section("parts", "Every part, and what waits for the device", 110),
    Section("startup", "What it costs to begin", 45),
    Section("resume", "Resumed runs", 60),
    Section("scores", "Scores in bf16", 45),
    Section("idle", "The share of time that the device waits", 45),
    Section("speed", "Speed", 130),
    Section("memory", "Peak memory", 45),
    Section("buckets", "Compiled encoders and buckets of tokens", 60),
)
