"""Facts about a corpus, for a look before training: sizes, and what a model would cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cse_cli.texts.given import unknown_line
from cse_core.errors import CseError, did_you_mean
from cse_core.records import EncoderSpec
from cse_core.words import lacks_word_spaces
from cse_defaults.texts.corpus import Corpus
from cse_engine.compose.checks import no_room, prompts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_cli.plugins.installed import Installed
    from cse_core.backend import TokenCount
    from cse_core.protocols import Column
    from cse_core.registry.registry import Registry
    from cse_engine.compose.composition import Composition

    Counts = NDArray[np.integer[Any]]

TOKENS = (32, 64, 96, 128, 256, 512)
"""Tokens up to which rows are counted together, as in Table 2 of HiCL (Wu et al., 2023)."""
SAMPLE = 1000
"""Texts whose tokens are counted for a plan, spread evenly over the data."""
_SAMPLE = 10_000
_BATCH = 10_000


def describe(corpus: Corpus, pairs: Corpus) -> dict[str, Any]:
    """Return facts about a corpus as plain values: what ``cse data stats`` shows.

    ``words_mean``, ``_median`` and ``_p95`` (the 95th percentile) count words, split at white
    space; they are None where texts are written without spaces. ``others`` has the mean lengths of
    the other columns that are encoded; ``documents`` and the mean of their rows are None where the
    data has none;
    ``incomplete_dropped`` counts rows that lack a value which was asked for.
    ``pairs`` are the same rows with the lists of positives and negatives as rows;
    ``same_negatives`` counts negatives that are the anchor or the positive of their row.
    """
    import numpy as np

    partners = [name for name in ("text", "positive") if name in pairs.names]
    same = same_texts(pairs, "negative", partners) if "negative" in pairs.names else {}

    known = None if corpus.documents is None else corpus.documents[corpus.documents >= 0]
    documents = None if known is None else len(np.unique(known))
    lengths = {"words": _words(corpus, "text"), "characters": _characters(corpus, "text")}
    return {
        "rows": len(corpus),
        "documents": documents,
        "document_rows_mean": len(known) / documents if known is not None and documents else None,
        "columns": pairs.names,
        "blank_dropped": corpus.report.blank_dropped,
        "incomplete_dropped": pairs.report.incomplete_dropped,
        "same_negatives": same,
        "duplicates": int((corpus.text_ids != np.arange(len(corpus))).sum()),
        **{f"{what}_{n}": v for what, spans in lengths.items() for n, v in _spread(spans).items()},
        "others": {
            name: {
                "words_mean": _spread(_words(pairs, name))["mean"],
                "characters_mean": float(_characters(pairs, name).mean()),
            }
            for name in pairs.names
            if name not in ("text", "document", "title", "headings", "line")
        },
        "synthetic": bool(corpus.report.made_up),
        "fingerprint": corpus.fingerprint,
        "names": corpus.report.names,
        "messages": pairs.report.lines,
    }


def same_texts(corpus: Corpus, column: str, others: Sequence[str]) -> dict[str, int]:
    """Count the texts of a column that are those of other columns in their row, where any is.

    One that is in several of them counts for the first.
    """
    import pyarrow.compute as pc

    texts, counts = corpus.table.column(column), {}
    left = pc.not_equal(texts, "")
    for other in others:
        same = pc.and_(left, pc.equal(texts, corpus.table.column(other)))
        left = pc.and_not(left, same)
        counts["anchor" if other == "text" else other] = pc.sum(same).as_py() or 0
    return {name: count for name, count in counts.items() if count}


def most_anchors(corpus: Corpus, column: str) -> tuple[int, int]:
    """Count the different texts that have one text of a column, at most, and pairs of the two."""
    import numpy as np

    _, which = corpus.column(column).distinct()
    pairs = np.unique(corpus.text_ids * (which.max() + 1) + which)
    return int(np.bincount(pairs % (which.max() + 1)).max()), len(pairs)


def _spread(counts: Counts | None) -> dict[str, float | None]:
    """Return mean, median and 95th percentile, None each without counts."""
    import numpy as np

    if counts is None:
        return dict.fromkeys(("mean", "median", "p95"))
    median, high = map(float, np.percentile(counts, (50, 95)))
    return {"mean": float(counts.mean()), "median": median, "p95": high}


def _words(corpus: Corpus, column: str) -> Counts | None:
    """Count the words of each row, split at white space; None where there are no spaces."""
    import numpy as np
    import pyarrow.compute as pc

    rows = np.unique(np.linspace(0, len(corpus) - 1, _SAMPLE).astype(int))
    if lacks_word_spaces(corpus.column(column).take(rows)):
        return None
    batches = corpus.table.select([column]).to_batches(10_000)
    words = (pc.utf8_split_whitespace(batch.column(0)) for batch in batches)
    # Arrow's own ways to numpy import pandas first: half a second.
    return np.concatenate([np.from_dlpack(pc.list_value_length(lists)) for lists in words])


def _characters(corpus: Corpus, column: str) -> Counts:
    import numpy as np
    import pyarrow.compute as pc

    lengths = pc.utf8_length(corpus.table.column(column)).chunks
    return np.concatenate([np.from_dlpack(chunk) for chunk in lengths])


def counted_tokens(model: str, registry: Registry, texts: Sequence[str]) -> list[TokenCount]:
    """Count the tokens of texts by the tokenizer of an installed encoder or a model's folder."""
    from cse_engine.compose.models import Models

    models = Models(registry)
    try:
        if (folder := models.find(model)) is not None:
            return models.backend(folder).count_tokens(folder, texts)
    except CseError as error:
        raise CseError(error.what, where="--model", value=model, hint=error.hint) from None
    hint = did_you_mean(model, [item.name for item in registry.all(EncoderSpec)])
    what = "is neither an installed encoder nor a model folder"
    raise CseError(what, where="--model", value=model, hint=hint)


def token_counts(corpus: Corpus, model: str, registry: Registry) -> dict[str, Any]:
    """Count the tokens of the texts for a model, special tokens included.

    ``shares`` has the percentage of rows in each range of ``TOKENS``, and of longer ones.
    """
    import numpy as np

    counts = counted_tokens(model, registry, corpus.column("text"))
    values = np.asarray([count.tokens for count in counts])
    bins = np.bincount(np.searchsorted(TOKENS, values), minlength=len(TOKENS) + 1)
    first = (0, *(length + 1 for length in TOKENS[:-1]))
    names = [f"{low}-{high}" for low, high in zip(first, TOKENS, strict=True)]
    names.append(f"over {TOKENS[-1]}")
    return {
        "model": model,
        **_spread(values),
        "longest": int(values.max()),
        "sum": int(values.sum()),
        "shares": dict(zip(names, (100 * bins / len(counts)).tolist(), strict=True)),
    }


@dataclass(frozen=True)
class Lengths:
    """What ``model.max_length`` cuts, of the column of which it cuts most.

    Attributes:
        unknown: What to say of tokens that the vocabulary lacks.
        longest: Tokens that a row of a training batch may have.
        longer: Texts of the sample that are longer.
        seen: Texts of the sample.
        tokens: The mean number of tokens of column ``text`` when they are cut.
    """

    longest: int
    longer: int
    seen: int
    tokens: float = 0.0
    unknown: str = ""
    column: str = "text"

    def line(self) -> str:
        """Return it as a line for people."""
        share = 100 * self.longer / self.seen
        of = "" if self.column == "text" else f" of column {self.column}"
        if not self.longer:
            return f"length: at most {self.longest:,} tokens: no text of {self.seen:,} seen is cut"
        return (
            f"length: at most {self.longest:,} tokens, which truncates {share:.1f} % of the texts"
            f"{of} ({self.longer:,} of {self.seen:,} sampled); --model.max_length N reads more"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        column = {} if self.column == "text" else {"column": self.column}
        return {"max_length": self.longest, "longer": self.longer, "seen": self.seen, **column}


def lengths(composition: Composition, plugins: Installed) -> Lengths | None:
    """Measure the cut texts; None where the data was not read or the tokenizer is not here.

    Raises:
        CseError: If a prompt leaves no room for a text.
    """
    if composition.read is None:
        return None
    corpus = plugins.read(composition.data).corpus(composition.needed_columns)
    count = min(SAMPLE, len(corpus))
    longest, default = composition.model.max_length, composition.model.prompt
    columns = dict.fromkeys(("text", *sorted(filter(None, composition.read_columns()))), default)
    columns |= {v.column: v.prompt for v in composition.views if v.column and v.prompt is not None}
    prompts = list(prompts_of(composition))

    def counted(texts: Sequence[str]) -> list[TokenCount]:
        return counted_tokens(composition.model.name, plugins.registry, texts)

    try:
        taken = [row.tokens for row in counted([prompt for _, _, prompt in prompts])]
        rows = {
            name: counted(
                [(before or "") + text for text in _sampled(corpus.texts_of(name), count)]
            )
            for name, before in columns.items()
            if name in corpus.names
        }
    except CseError:  # the run says what is wrong with it
        return None
    for (where, _, prompt), tokens in zip(prompts, taken, strict=True):
        if tokens >= longest:
            raise no_room(where, prompt, longest)
    longer = {name: sum(row.tokens > longest for row in seen) for name, seen in rows.items()}
    column, texts = max(longer, key=longer.__getitem__), rows["text"]
    unknown, content = sum(row.unknown for row in texts), sum(row.content for row in texts)
    said = unknown_line(unknown, content, composition.model.name)
    tokens = sum(min(row.tokens, longest) for row in texts)
    return Lengths(longest, longer[column], count, tokens / count, said, column)


def _sampled(column: Column, count: int) -> list[str]:
    """Return texts that are spread evenly over a column."""
    return column.take([place * len(column) // count for place in range(count)])
