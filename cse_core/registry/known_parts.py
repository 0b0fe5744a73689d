"""Papers whose plugins may not be installed: what they bring, and the line that installs them."""

from __future__ import annotations

from dataclasses import dataclass

from cse_core.registry.plugin_info import AnyKind


@dataclass(frozen=True)
class KnownPart:
    """A part of a known plugin.

    Attributes:
        kind: Its kind, recipes and data included.
        name: Its name.
        distribution: The distribution that brings it.
        provides: Tokens that it provides with default options.
    """

    kind: AnyKind
    name: str
    distribution: str
    provides: tuple[str, ...] = ()

    @property
    def install(self) -> str:
        """Return the command that installs it."""
        return f"pip install {self.distribution}"


def _parts(
    distribution: str, kind: AnyKind, *names: str, provides: tuple[str, ...] = ()
) -> tuple[KnownPart, ...]:
    return tuple(KnownPart(kind, name, distribution, provides) for name in names)


KNOWN_PARTS: tuple[KnownPart, ...] = (
    *_parts("cse-simcse", "negatives", "hard-negatives", provides=("view:negative",)),
    *_parts("cse-simcse", "recipe", "simcse", "simcse-supervised"),
    *_parts("cse-starter", "encoder", "starter"),
    *_parts("cse-starter", "dataset", "starter"),
    *_parts("cse-esimcse", "aug", "word-repetition"),
    *_parts("cse-esimcse", "negatives", "momentum-queue"),
    *_parts("cse-esimcse", "recipe", "esimcse"),
    *_parts("cse-sncse", "aug", "negation", provides=("view:soft_negative",)),
    *_parts("cse-sncse", "pool", "mask-prompt"),
    *_parts("cse-sncse", "loss", "bml"),
    *_parts("cse-sncse", "recipe", "sncse"),
    *_parts("cse-hicl", "pool", "segments", provides=("level:segment",)),
    *_parts("cse-hicl", "positives", "same-sequence", provides=("positives:same-sequence",)),
    *_parts("cse-hicl", "negatives", "averaging"),
    *_parts("cse-hicl", "loss", "entailment"),
    *_parts("cse-hicl", "recipe", "hicl", "hicl-v2", "hicl-esimcse", "hicl-sncse", "hicl-v2-sncse"),
    *_parts("cse-iscse", "positives", "knn-smoothing", provides=("positives:knn-smoothing",)),
    *_parts("cse-iscse", "positives", "kmeans-smoothing", provides=("positives:kmeans-smoothing",)),
    *_parts("cse-iscse", "recipe", "is-cse", "is-cse-dclr", "is-cse-cards"),
    *_parts(
        "cse-infocse",
        "positives",
        "idc",
        "idc-kmeans",
        "idc-labels",
        "neighbour",
        "inverse-cloze",
        "preceding-context",
        "span",
        "labels",
        provides=("pairs",),
    ),
    *_parts("cse-infocse", "aug", "span-mask"),
    *_parts("cse-infocse", "pool", "sentences", provides=("level:slice",)),
    *_parts("cse-infocse", "recipe", "infocse", "infocse-finetune", "infocse-plus"),
    *_parts("cse-infocse", "recipe", "neighbour", "inverse-cloze", "preceding-context"),
    *_parts("cse-infocse", "recipe", "span", "mirror-bert"),
    *_parts("cse-ifcl", "aug", "fusion"),
    *_parts("cse-ifcl", "negatives", "hippocampus"),
    *_parts("cse-ifcl", "loss", "twins"),
    *_parts("cse-ifcl", "metric", "mutual-information"),
    *_parts("cse-ifcl", "recipe", "ifcl", "ifcl-zh"),
    *_parts("cse-mocose", "aug", "fgsm"),
    *_parts("cse-mocose", "negatives", "queue"),
    *_parts("cse-mocose", "pool", "projector", "predictor"),
    *_parts("cse-mocose", "recipe", "mocose"),
    *_parts(
        "cse-consert",
        "aug",
        "token-shuffle",
        "token-cutoff",
        "feature-cutoff",
        "embedding-dropout",
    ),
    *_parts("cse-consert", "recipe", "consert"),
    *_parts("cse-dclr", "negatives", "noise", "instance-weights"),
    *_parts("cse-dclr", "loss", "dclr"),
    *_parts("cse-dclr", "recipe", "dclr"),
    *_parts("cse-cards", "aug", "case-switch"),
    *_parts("cse-cards", "negatives", "retrieved", provides=("view:negative-retrieved",)),
    *_parts("cse-cards", "recipe", "cards"),
)
KNOWN_DISTRIBUTIONS = frozenset(part.distribution for part in KNOWN_PARTS)


def known_parts(kind: AnyKind, name: str | None = None) -> tuple[KnownPart, ...]:
    """Return known parts of a kind, or those of one name."""
    return tuple(
        part for part in KNOWN_PARTS if part.kind == kind and (name is None or part.name == name)
    )
