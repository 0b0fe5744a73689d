"""The papers whose parts these are, as a model card cites them."""

from cse_core.records import Paper

PAPER = Paper(
    "Yang et al.: A Mutually Reinforced Framework for Pretrained Sentence Embeddings, 2022",
    "cse_infocse:papers/yang-etal-2022-mutually.bib",
)

MIRROR_BERT = Paper(
    "Liu et al.: Mirror-BERT, EMNLP 2021", "cse_infocse:papers/liu-etal-2021-fast.bib"
)

CONPONO = Paper(
    "Iter et al.: CONPONO, ACL 2020, in simple form",
    "cse_infocse:papers/iter-etal-2020-pretraining.bib",
)

LATENT_RETRIEVAL = Paper(
    "Lee et al.: Latent Retrieval, ACL 2019", "cse_infocse:papers/lee-etal-2019-latent.bib"
)

CPC = Paper(
    "van den Oord et al.: CPC, 2018", "cse_infocse:papers/vandenoord-etal-2018-representation.bib"
)

DECLUTR = Paper(
    "Giorgi et al.: DeCLUTR, ACL 2021", "cse_infocse:papers/giorgi-etal-2021-declutr.bib"
)
