"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Cao et al.: MoCoSE, Findings of ACL 2022",
    bibtex=r"""@inproceedings{cao-etal-2022-exploring,
    title = "Exploring the Impact of Negative Samples of Contrastive Learning: A Case Study of
        Sentence Embedding",
    author = "Cao, Rui and Wang, Yihao and Liang, Yuxin and Gao, Ling and Zheng, Jie and Ren, Jie
        and Wang, Zheng",
    booktitle = "Findings of the Association for Computational Linguistics: ACL 2022",
    year = "2022",
    url = "https://aclanthology.org/2022.findings-acl.248",
}""",
)
