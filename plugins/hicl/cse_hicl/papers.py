"""The paper whose parts these are, as a model card cites it."""

from cse_core.records import Paper

PAPER = Paper(
    "Wu et al.: HiCL, Findings of EMNLP 2023",
    bibtex=r"""@inproceedings{wu-etal-2023-hicl,
    title = "{HiCL}: Hierarchical Contrastive Learning of Unsupervised Sentence Embeddings",
    author = "Wu, Zhuofeng and Xiao, Chaowei and Vydiswaran, V.G. Vinod",
    booktitle = "Findings of the Association for Computational Linguistics: EMNLP 2023",
    year = "2023",
}""",
)
