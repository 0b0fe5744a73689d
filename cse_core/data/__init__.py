"""Training texts: files, installed data sets and data sets of the hub as one table of rows.

Nothing here imports torch, and nothing heavy (numpy, pyarrow, datasets) is imported before rows are
read.
"""

from cse_core.data.corpus import Corpus, FileReport, LoadReport, TextColumn
from cse_core.data.describe import CorpusFacts, describe
from cse_core.data.load import load_corpus, peek_columns

__all__ = [
    "Corpus",
    "CorpusFacts",
    "FileReport",
    "LoadReport",
    "TextColumn",
    "describe",
    "load_corpus",
    "peek_columns",
]
