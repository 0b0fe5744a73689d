"""The sources of texts that the toolkit reads; imports nothing heavy."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import SourceSpec


def _is_saved(name: str) -> bool:
    from cse_defaults.texts.files import is_saved

    return is_saved(name)


def _has_documents(name: str) -> bool:
    from cse_defaults.texts.documents import has_documents

    return has_documents(name)


def _is_on_hub(name: str) -> bool:
    from cse_defaults.texts.hub import hub_name

    return hub_name(name) is not None


@hookimpl
def cse_sources() -> list[SourceSpec]:
    """Return the readers of files, folders and data sets of the hub."""
    files = "cse_defaults.texts.files"
    return [
        SourceSpec(
            name="lines",
            summary="a text a line",
            factory=f"{files}:Lines",
            endings=(".txt",),
        ),
        SourceSpec(
            name="separated",
            summary="a header line, then rows of fields",
            factory=f"{files}:Separated",
            endings=(".csv", ".tsv"),
        ),
        SourceSpec(
            name="json",
            summary="an object a line, or a list of objects",
            factory=f"{files}:Json",
            endings=(".jsonl", ".json"),
        ),
        SourceSpec(
            name="arrow",
            summary="columns of Parquet or Arrow",
            factory=f"{files}:Arrow",
            endings=(".parquet", ".arrow"),
        ),
        SourceSpec(
            name="saved",
            summary="a folder that save_to_disk of datasets wrote",
            factory=f"{files}:Saved",
            takes=_is_saved,
        ),
        SourceSpec(
            name="documents",
            summary="a folder of Markdown, HTML and plain files",
            factory="cse_defaults.texts.documents:Documents",
            takes=_has_documents,
        ),
        SourceSpec(
            name="hub",
            summary="a data set of the Hugging Face hub: owner/name@split",
            factory="cse_defaults.texts.hub:HubRows",
            takes=_is_on_hub,
        ),
    ]
