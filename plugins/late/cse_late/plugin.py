"""The records of late interaction and late chunking; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, MultiVectorSpec, Paper, PoolSpec, RecipeSpec

if TYPE_CHECKING:
    from cse_late.options import InsentOptions

COLBERT = Paper("Khattab and Zaharia: ColBERT, 2020", "cse_late:colbert.bib")
CHUNKING = Paper("Günther et al.: Late Chunking, 2024", "cse_late:late-chunking.bib")
INSENT = Paper("Conti et al.: Context is Gold, 2025", "cse_late:insent.bib")


@hookimpl
def cse_poolers() -> list[PoolSpec]:
    """Return the pooler of chunks."""
    return [
        MultiVectorSpec(
            name="chunk-vectors",
            summary="a vector of each chunk of a text that is encoded whole (late chunking)",
            factory="cse_late.poolers:ChunkVectors",
            options="cse_late.options:ChunkVectorsOptions",
            provides=("level:chunk",),
            paper=CHUNKING,
        )
    ]


def _of_chunks(options: InsentOptions) -> dict[str, str]:
    return {options.column: "int"}


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses over several vectors."""
    return [
        LossSpec(
            name="maxsim",
            summary="cross entropy of late-interaction scores (ColBERT)",
            factory="cse_late.maxsim:MaxSim",
            options="cse_late.options:MaxSimOptions",
            requires=lambda options: (f"level:{options.tokens}", f"view:{options.target}"),
            hint="add one: --pool +token-vectors",
            paper=COLBERT,
        ),
        LossSpec(
            name="insent",
            summary="a query's chunk among those of its document, and of other documents",
            factory="cse_late.insent:Insent",
            options="cse_late.options:InsentOptions",
            requires=lambda options: (f"level:{options.chunks}", f"view:{options.target}"),
            reads=_of_chunks,
            contrastive=False,
            hint="add one: --pool +chunk-vectors",
            paper=INSENT,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes."""
    return records_of_files(RecipeSpec, "cse_late:recipes", paper=COLBERT)
