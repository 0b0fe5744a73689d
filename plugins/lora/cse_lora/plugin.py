"""The record; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import AdapterSpec, Paper

PAPER = Paper(
    "Hu et al.: LoRA, ICLR 2022",
    bibtex="""@inproceedings{hu2022lora,
    title = "{LoRA}: Low-Rank Adaptation of Large Language Models",
    author = "Hu, Edward J. and Shen, Yelong and Wallis, Phillip and Allen-Zhu, Zeyuan and
        Li, Yuanzhi and Wang, Shean and Wang, Lu and Chen, Weizhu",
    booktitle = "International Conference on Learning Representations",
    year = "2022",
}""",
)


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
