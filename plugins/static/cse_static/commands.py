"""The record of the command ``cse static``."""

from __future__ import annotations

from cse_core.records import CommandSpec, Panel

STATIC = CommandSpec(
    name="static",
    summary="make a static model of a transformer: its token vectors, without context",
    factory="cse_static.cli:static",
    function="cse_static.distil:distil",
    panel=Panel.USE,
)
