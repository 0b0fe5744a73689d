"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Gao, Yao and Chen: SimCSE, EMNLP 2021",
    bibtex=r"""@inproceedings{gao-etal-2021-simcse,
    title = "{SimCSE}: Simple Contrastive Learning of Sentence Embeddings",
    author = "Gao, Tianyu and Yao, Xingcheng and Chen, Danqi",
    booktitle = "Proceedings of the 2021 Conference on Empirical Methods in Natural Language
        Processing",
    year = "2021",
    url = "https://aclanthology.org/2021.emnlp-main.552",
}""",
)
