"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Wang and Dou: SNCSE, ICIC 2023",
    bibtex=r"""@inproceedings{wang-dou-2023-sncse,
    title = "{SNCSE}: Contrastive Learning for Unsupervised Sentence Embedding with Soft Negative
        Samples",
    author = "Wang, Hao and Dou, Yong",
    booktitle = "Advanced Intelligent Computing Technology and Applications (ICIC 2023)",
    year = "2023",
}""",
)
