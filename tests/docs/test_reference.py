"""docs/reference.py: what it reads from docstrings, and what it writes."""

from __future__ import annotations

import ast

import pytest

from docs import reference

DOCSTRING = """Do it, as :class:`Paper` says.

Without ``x`` nothing is done.

Args:
    x: ``[A, D]`` vectors, whose text
        goes on in a second line.
    y: A number.

Raises:
    ValueError: If it cannot be done.
"""


def test_sections_of_a_docstring_are_told_apart() -> None:
    text = reference.read(DOCSTRING)
    assert text.body == "Do it, as `Paper` says.\n\nWithout `x` nothing is done."
    assert text.entries["Args"] == {
        "x": "`[A, D]` vectors, whose text goes on in a second line.",
        "y": "A number.",
    }
    assert text.entries["Raises"] == {"ValueError": "If it cannot be done."}


@pytest.mark.parametrize(
    ("code", "shown"),
    {
        "def f(self, x: Tensor, y: int=2) -> list[str]: ...": "f(x: Tensor, y: int=2) -> list[str]",
        "def f(self) -> None: ...": "f() -> None",
        "@property\ndef rows(self) -> int: ...": "rows -> int",
    }.items(),
)
def test_signature_of_a_method(code: str, shown: str) -> None:
    (node,) = ast.parse(code).body
    assert isinstance(node, ast.FunctionDef)
    assert reference.signature(node) == shown


def test_a_field_that_a_record_sets_again_keeps_its_text() -> None:
    fields = {field.name: field for field in reference.fields(reference.classes()["LossSpec"])}
    above = {field.name: field for field in reference.fields(reference.classes()["ComponentSpec"])}
    assert fields["options"].default == "LossOptions"
    assert fields["options"].text == above["options"].text != ""


def test_what_an_author_looks_for_is_there() -> None:
    page = reference.page()
    for wanted in (
        "- `online_encoder() -> PackedEncoder`<br>",
        "Raises `RuntimeError`: If there is none",
        "### RunInfo",
        "| `batch_size` | `int` | `0` |",
        "- `at(step: float, total: float) -> float`",
        "- `copy(share_embeddings: bool=False) -> PackedEncoder`",
    ):
        assert wanted in page, wanted
    assert "``" not in page.replace("```", "") and ":class:" not in page
