"""Articles with sections or paragraphs, unfolded into sentences, paragraphs or documents.

Two forms are read: ``{"id", "title", "sections": [[heading, [sentence, …]], …]}`` and
``{"id", "title", "paras": [[sentence, …], …]}``; other plain fields go with every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from cse_core.errors import CseError

Unit = Literal["sentence", "paragraph", "document"]
BODIES = ("sections", "paras")
"""Fields that make a JSON object an article."""


def is_article(record: Mapping[str, Any]) -> bool:
    """Tell whether a JSON object is an article."""
    return any(isinstance(record.get(field), list) for field in BODIES)


def unfold(
    record: Mapping[str, Any], unit: Unit, *, number: int, where: str
) -> Iterator[dict[str, Any]]:
    """Yield the rows of an article: text, document (``number`` where it has none), other fields.

    Raises:
        CseError: Its sections or paragraphs have another form.
    """
    paragraphs = list(_paragraphs(record, where))
    shared = {
        name: value
        for name, value in record.items()
        if name not in (*BODIES, "id", "text", "document")
    }
    shared["document"] = record.get("id", record.get("document", number))
    if unit == "sentence":
        texts = [sentence for paragraph in paragraphs for sentence in paragraph]
    elif unit == "paragraph":
        texts = [_joined(paragraph) for paragraph in paragraphs if paragraph]
    else:
        texts = [_joined(sentence for paragraph in paragraphs for sentence in paragraph)]
    for text in texts:
        yield {"text": text, **shared}


def _joined(sentences: Iterable[str]) -> str:
    return " ".join(text for sentence in sentences if (text := sentence.strip()))


def _paragraphs(record: Mapping[str, Any], where: str) -> Iterator[list[str]]:
    field = "sections" if isinstance(record.get("sections"), list) else "paras"
    for value in record[field]:
        paragraph = value
        if field == "sections":
            if not (isinstance(value, list) and len(value) == 2):
                raise _shape_error(field, "[heading, [sentence, …]]", value, where)
            paragraph = value[1]
        if not isinstance(paragraph, list) or not all(isinstance(s, str) for s in paragraph):
            raise _shape_error(field, "a list of sentences", paragraph, where)
        yield paragraph


def _shape_error(field: str, due: str, value: Any, where: str) -> CseError:
    shown = str(value)
    return CseError(
        f"{field}: must be {due}",
        where=where,
        value=shown if len(shown) <= 60 else shown[:59] + "…",
        hint='an article is {"id", "title", "sections": [[heading, [sentence, …]], …]} '
        'or {"id", "title", "paras": [[sentence, …], …]}',
    )
