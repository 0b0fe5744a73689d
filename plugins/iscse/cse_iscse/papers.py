"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "He et al.: IS-CSE, AAAI 2023",
    bibtex=r"""@inproceedings{he-etal-2023-instance,
    title = "Instance Smoothed Contrastive Learning for Unsupervised Sentence Embedding",
    author = "He, Hongliang and Zhang, Junlei and Lan, Zhenzhong and Zhang, Yue",
    booktitle = "Proceedings of the AAAI Conference on Artificial Intelligence",
    year = "2023",
}""",
)
