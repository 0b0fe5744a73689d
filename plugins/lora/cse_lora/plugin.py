"""The record; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import AdapterSpec, Paper

PAPER = Paper("Hu et al.: LoRA, ICLR 2022", "cse_lora:paper.bib")


@hookimpl
def cse_adapters() -> list[AdapterSpec]:
    """Return the adapter."""
    return [
        AdapterSpec(
            name="lora",
            summary="trains low-rank matrices beside the encoder's linear layers, not the encoder",
            factory="cse_lora.adapter:Lora",
            options="cse_lora.options:LoraOptions",
            paper=PAPER,
        )
    ]
