"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Wang, Ge, Zhang and Yang: CARDS, SIGIR 2022",
    bibtex=r"""@inproceedings{wang-etal-2022-improving,
    title = "Improving Contrastive Learning of Sentence Embeddings with Case-Augmented Positives
        and Retrieved Negatives",
    author = "Wang, Wei and Ge, Liangzhu and Zhang, Jingqiao and Yang, Cheng",
    booktitle = "Proceedings of the 45th International ACM SIGIR Conference on Research and
        Development in Information Retrieval",
    year = "2022",
}""",
)
