"""The papers whose parts these are, as a model card cites them."""

from cse_core.records import Paper

PAPER = Paper(
    "Yang et al.: A Mutually Reinforced Framework for Pretrained Sentence Embeddings, 2022",
    bibtex=r"""@article{yang-etal-2022-mutually,
    title = "A Mutually Reinforced Framework for Pretrained Sentence Embeddings",
    author = "Yang, Junhan and Liu, Zheng and Xiao, Shitao and Lian, Jianxun and Wu, Lijun and
        Lian, Defu and Sun, Guangzhong and Xie, Xing",
    journal = "arXiv preprint arXiv:2202.13802",
    year = "2022",
    url = "https://arxiv.org/abs/2202.13802",
}""",
)

MIRROR_BERT = Paper(
    "Liu et al.: Mirror-BERT, EMNLP 2021",
    bibtex=r"""@inproceedings{liu-etal-2021-fast,
    title = "Fast, Effective, and Self-Supervised: Transforming Masked Language Models into
        Universal Lexical and Sentence Encoders",
    author = "Liu, Fangyu and Vuli{\'c}, Ivan and Korhonen, Anna and Collier, Nigel",
    booktitle = "Proceedings of the 2021 Conference on Empirical Methods in Natural Language
        Processing",
    year = "2021",
    url = "https://aclanthology.org/2021.emnlp-main.109",
}""",
)

CONPONO = Paper(
    "Iter et al.: CONPONO, ACL 2020, in simple form",
    bibtex=r"""@inproceedings{iter-etal-2020-pretraining,
    title = "Pretraining with Contrastive Sentence Objectives Improves Discourse Performance of
        Language Models",
    author = "Iter, Dan and Guu, Kelvin and Lansing, Larry and Jurafsky, Dan",
    booktitle = "Proceedings of the 58th Annual Meeting of the Association for Computational
        Linguistics",
    year = "2020",
    url = "https://aclanthology.org/2020.acl-main.439",
}""",
)

LATENT_RETRIEVAL = Paper(
    "Lee et al.: Latent Retrieval, ACL 2019",
    bibtex=r"""@inproceedings{lee-etal-2019-latent,
    title = "Latent Retrieval for Weakly Supervised Open Domain Question Answering",
    author = "Lee, Kenton and Chang, Ming-Wei and Toutanova, Kristina",
    booktitle = "Proceedings of the 57th Annual Meeting of the Association for Computational
        Linguistics",
    year = "2019",
    url = "https://aclanthology.org/P19-1612",
}""",
)

CPC = Paper(
    "van den Oord et al.: CPC, 2018",
    bibtex=r"""@article{vandenoord-etal-2018-representation,
    title = "Representation Learning with Contrastive Predictive Coding",
    author = "van den Oord, A{\"a}ron and Li, Yazhe and Vinyals, Oriol",
    journal = "arXiv preprint arXiv:1807.03748",
    year = "2018",
    url = "https://arxiv.org/abs/1807.03748",
}""",
)

DECLUTR = Paper(
    "Giorgi et al.: DeCLUTR, ACL 2021",
    bibtex=r"""@inproceedings{giorgi-etal-2021-declutr,
    title = "{DeCLUTR}: Deep Contrastive Learning for Unsupervised Textual Representations",
    author = "Giorgi, John and Nitski, Osvald and Wang, Bo and Bader, Gary",
    booktitle = "Proceedings of the 59th Annual Meeting of the Association for Computational
        Linguistics and the 11th International Joint Conference on Natural Language Processing
        (Volume 1: Long Papers)",
    year = "2021",
    url = "https://aclanthology.org/2021.acl-long.72",
}""",
)
