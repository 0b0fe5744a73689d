"""The records of MoCoSE; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import AugmenterSpec, HeadSpec, Paper, RecipeSpec, StoreSpec, StudySpec
from cse_mocose import distance, resolution

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

STUDIES = {
    "table-1": "MoCoSE and SimCSE",
    "table-2": "Transfer tasks",
    "table-3": "Decay of the moving average at the start",
    "table-4": "Layers of projector and predictor",
    "table-5": "Augmentation of both views",
    "table-6a": "Dimension of heads and queue",
    "table-6b": "Batch size with one size of the queue",
    "table-7": "Queue size, and how much of it is full at the start",
    "table-8": "Newer and older keys",
    "table-9": "Step of the adversarial perturbation",
    "figure-1": "The branches, heads and queue of MoCoSE, from its plan",
    "figure-2": "Score over the traceable distance",
    "figure-3": "Score over the traceable distance, a curve for each batch size",
    "figure-4": "Collapse without a predictor: decay 0, so that the target is the online encoder",
    "figure-5": "Collapse with a predictor: decay 0, so that the target is the online encoder",
    "figure-6": "Singular values of the sentence vectors",
    "figure-7": "Decay of the moving average at the start, in finer steps",
    "figure-8": "Rates of the augmenters, and of the encoder's dropout",
    "figure-9": "Dimension of heads and queue, several seeds each",
    "figure-10": "First fill of a queue of 512",
    "figure-11": "Queue size and first fill, in finer steps",
    "figure-12": "Score over the traceable distance in batches of 32",
    "appendix-A.11": "Mean age of the weights behind a key, against 1 / (1 - eta)",
}
"""Tables and figures of the paper, each a file in ``studies/``."""


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the adversarial views, and dropped tokens as the authors' code drops them."""
    return [
        AugmenterSpec(
            name="fgsm",
            summary="moves word embeddings along the sign of the gradient",
            factory="cse_mocose.fgsm:Fgsm",
            options="cse_mocose.options:FgsmOptions",
            point="word_embeddings",
            gradient=lambda options: options.gradient,
            requires=resolution.requires,
            paper=PAPER,
            plan_warnings=resolution.warnings,
        ),
        AugmenterSpec(
            name="token-drop",
            summary="sets the word embeddings of some places of a padded row to zero",
            factory="cse_mocose.token_drop:TokenDrop",
            options="cse_mocose.options:TokenDropOptions",
            point="word_embeddings",
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_poolers() -> list[HeadSpec]:
    """Return the heads."""
    return [
        HeadSpec(
            name="projector",
            summary="linear layers with layer norm and dropout, in every branch",
            factory="cse_mocose.heads:Projector",
            options="cse_mocose.options:ProjectorOptions",
            paper=PAPER,
        ),
        HeadSpec(
            name="predictor",
            summary="linear layers that end in tanh, only in the online branch",
            factory="cse_mocose.heads:Predictor",
            options="cse_mocose.options:PredictorOptions",
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the queue."""
    return [
        StoreSpec(
            name="queue",
            summary="positives of earlier steps by a lagging branch, with a small first fill",
            factory="cse_mocose.queue:Queue",
            options="cse_mocose.options:QueueOptions",
            keeps=True,
            provides=lambda options: ("view:queued",) if options.update == "latest" else (),
            requires=lambda options: (f"view:{options.view}",),
            paper=PAPER,
            plan_notes=distance.notes,
            plan_warnings=distance.warnings,
            resolve_options=distance.resolve_options,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the paper's setting."""
    return [
        RecipeSpec(
            name="mocose",
            summary="momentum keys in a queue with a traceable distance, predictor, fgsm",
            path="cse_mocose:recipes/mocose.toml",
            paper=PAPER,
        )
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return [
        StudySpec(
            name=f"mocose/{place}",
            summary=summary,
            path=f"cse_mocose:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in STUDIES.items()
    ]
