"""How many training texts are longer than a run reads, counted in a sample without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_cli.plugins.installed import Installed
    from cse_core.recipes.composition import Composition

SAMPLE = 1000
"""Texts that are counted, spread evenly over the data."""


@dataclass(frozen=True)
class Lengths:
    """What ``model.max_length`` cuts.

    Attributes:
        longest: Tokens that a row of a training batch may have.
        longer: Texts of the sample that are longer.
        seen: Texts of the sample.
    """

    longest: int
    longer: int
    seen: int

    def line(self) -> str:
        """Return it as a line for people."""
        share = 100 * self.longer / self.seen
        if not self.longer:
            return f"length: at most {self.longest:,} tokens: no text of {self.seen:,} seen is cut"
        return (
            f"length: at most {self.longest:,} tokens: the end is cut off {share:.1f} % of the "
            f"texts ({self.longer:,} of {self.seen:,} seen); --model.max_length N reads more"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        return {"max_length": self.longest, "longer": self.longer, "seen": self.seen}


def lengths(composition: Composition, plugins: Installed) -> Lengths | None:
    """Return what is cut; None where the data was not read or the tokenizer is not here."""
    from cse_core.errors import CseError
    from cse_core.recipes.model_facts import find_model
    from cse_core.runtime.model_files import model_folder

    corpus = plugins.known_corpus(composition.data)
    name = composition.model.name
    try:
        folder = find_model(name, plugins.registry)
        file = None if folder is None else model_folder(folder, name) / "tokenizer.json"
    except CseError:
        return None
    if corpus is None or not len(corpus) or file is None or not file.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception:  # the run says what is wrong with it
        return None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    count = min(SAMPLE, len(corpus))
    column = corpus.column("text")
    texts = [column[place * len(corpus) // count] for place in range(count)]
    longest = composition.model.max_length
    longer = sum(len(row.ids) > longest for row in tokenizer.encode_batch(texts))
    return Lengths(longest, longer, count)
