"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Wu, Gao, Zang, Han, Wang and Hu: ESimCSE, COLING 2022",
    bibtex=r"""@inproceedings{wu-etal-2022-esimcse,
    title = "{ESimCSE}: Enhanced Sample Building Method for Contrastive Learning of Unsupervised
        Sentence Embedding",
    author = "Wu, Xing and Gao, Chaochen and Zang, Liangjun and Han, Jizhong and Wang, Zhongyuan
        and Hu, Songlin",
    booktitle = "Proceedings of the 29th International Conference on Computational Linguistics",
    year = "2022",
    url = "https://aclanthology.org/2022.coling-1.342",
}""",
)
