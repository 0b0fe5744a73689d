"""Training texts: files, installed data sets and data sets of the hub as one table of rows.

Nothing here imports torch, and nothing heavy (numpy, pyarrow, datasets) is imported before rows are
read.
"""

from cse_core.texts import LoadReport
from cse_defaults.texts.corpus import Corpus, TextColumn
from cse_defaults.texts.load import Data, load_corpus, read_data

__all__ = [
    "Corpus", "Data", "LoadReport", "TextColumn", "load_corpus", "read_data",
]  # fmt: skip
