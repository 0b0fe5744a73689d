"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Yan, Li, Wang, Zhang, Wu and Xu: ConSERT, ACL 2021",
    bibtex=r"""@inproceedings{yan-etal-2021-consert,
    title = "{ConSERT}: A Contrastive Framework for Self-Supervised Sentence Representation
        Transfer",
    author = "Yan, Yuanmeng and Li, Rumei and Wang, Sirui and Zhang, Fuzheng and Wu, Wei and Xu,
        Weiran",
    booktitle = "Proceedings of the 59th Annual Meeting of the Association for Computational
        Linguistics and the 11th International Joint Conference on Natural Language Processing
        (Volume 1: Long Papers)",
    year = "2021",
    url = "https://aclanthology.org/2021.acl-long.393",
}""",
)
