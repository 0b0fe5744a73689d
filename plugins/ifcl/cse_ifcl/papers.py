"""The papers whose parts these are, as a model card cites them."""

from cse_core.records import Paper

PAPER = Paper(
    "Xiao, Li and Chen: Identical and Fraternal Twins, arXiv 2307.10932, 2023",
    bibtex=r"""@article{xiao-etal-2023-identical,
    title = "Identical and Fraternal Twins: Fine-Grained Semantic Contrastive Learning of
        Sentence Representations",
    author = "Xiao, Qingfa and Li, Shuangyin and Chen, Lei",
    journal = "arXiv preprint arXiv:2307.10932",
    year = "2023",
    url = "https://arxiv.org/abs/2307.10932",
}""",
)

EDA = Paper(
    "Wei and Zou: EDA, EMNLP 2019; Figure 4a of IFCL",
    bibtex=r"""@inproceedings{wei-zou-2019-eda,
    title = "{EDA}: Easy Data Augmentation Techniques for Boosting Performance on Text
        Classification Tasks",
    author = "Wei, Jason and Zou, Kai",
    booktitle = "Proceedings of the 2019 Conference on Empirical Methods in Natural Language
        Processing and the 9th International Joint Conference on Natural Language Processing",
    year = "2019",
    url = "https://aclanthology.org/D19-1670",
}""",
)
