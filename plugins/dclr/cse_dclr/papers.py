"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Zhou, Zhang, Zhao and Wen: Debiased Contrastive Learning, ACL 2022",
    bibtex=r"""@inproceedings{zhou-etal-2022-debiased,
    title = "Debiased Contrastive Learning of Unsupervised Sentence Representations",
    author = "Zhou, Kun and Zhang, Beichen and Zhao, Xin and Wen, Ji-Rong",
    booktitle = "Proceedings of the 60th Annual Meeting of the Association for Computational
        Linguistics (Volume 1: Long Papers)",
    year = "2022",
    url = "https://aclanthology.org/2022.acl-long.423",
}""",
)
