"""Labelled pairs: titles and their documents, or any two texts; alone, or in turn with clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cse_core.errors import CseError
from cse_core.parts import PositiveMiner, RoundContext, Setup
from cse_core.protocols import Corpus
from cse_core.types import Round
from cse_infocse.clusters import Idc, enough
from cse_infocse.options import IdcLabelsOptions, LabelsOptions


@dataclass(frozen=True)
class Labelled:
    """Pairs of texts."""

    texts: list[str]
    positives: list[str]

    @cached_property
    def digest(self) -> str:
        """Return the sha256 of the pairs."""
        hashed = sha256()
        for text in chain.from_iterable(zip(self.texts, self.positives, strict=True)):
            hashed.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return hashed.hexdigest()


class Labels(PositiveMiner):
    """One round of fine-tuning on labelled pairs.

    InfoCSE, Section 4: titles as texts, documents as positives, batches of 64, at most 20 epochs,
    ended by two epochs without a better dev score. A document is the mean of its sentences'
    vectors, which the slice pooler ``sentences`` makes; or, ``document = "joined"``, one text.

    The file is read when the run begins and again when it is resumed. All rounds of a run have the
    same pairs: a resumed one does not mine others from a file that has changed since, and only a
    round that was written already goes on.

    Raises:
        CseError: If the file is not there or holds no pairs.
    """

    options: LabelsOptions

    def __init__(self, options: LabelsOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.where = f"positives.{setup.name}"
        self.between = setup.tokenizer.hf.sep_token if options.document == "mean" else " "
        self.mined = 0
        self.digest = ""
        self._draws = setup.generator
        self._labelled: Labelled | None = None
        if options.file is not None:
            self._labelled = self._few(self._read(options.file, setup))

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the round, then None."""
        return None if self.mined else self.mine_round(ctx)

    def mine_round(self, ctx: RoundContext) -> Round:
        """Return the labelled pairs as a round of fine-tuning."""
        options = self.options
        pairs = self._labelled or self._few(self._titles(ctx.corpus, "data"))
        if self.digest not in ("", pairs.digest):
            raise CseError(
                "the labelled pairs have changed since the run started",
                where=f"{self.where}.file",
                value=options.file or "data",
                hint="restore the old file, or start a new run",
            )
        self.mined += 1
        self.digest = pairs.digest
        train: dict[str, object] = {
            "batch_size": options.batch_size,
            "chunk_size": options.chunk_size,
            "epochs": options.epochs,
            "patience": options.patience,
            "eval_steps": math.ceil(len(pairs.texts) / options.batch_size),
        }
        if options.lr is not None:
            train["lr"] = options.lr
        return Round({"text": pairs.texts, "positive": pairs.positives}, train=train)

    def _few(self, pairs: Labelled) -> Labelled:
        """Return at most ``limit`` pairs, drawn by the run's seed, the same ones in each round."""
        limit = self.options.limit
        if limit is None or limit >= len(pairs.texts):
            return pairs
        order = torch.randperm(len(pairs.texts), generator=self._draws("labels"))[:limit]
        chosen = sorted(order.tolist())
        return Labelled([pairs.texts[i] for i in chosen], [pairs.positives[i] for i in chosen])

    def _read(self, file: str, setup: Setup) -> Labelled:
        if not Path(file).expanduser().is_file():
            raise CseError(
                "no such file",
                where=f"{self.where}.file",
                value=file,
                hint="name articles with titles, or a table with text and positive",
            )
        corpus = setup.load_texts(file)
        if "positive" in corpus.names:
            filled = [row for row, text in enumerate(corpus.column("positive")) if text]
            both = (corpus.column(name).take(filled) for name in ("text", "positive"))
            return Labelled(*map(list, both))
        return self._titles(corpus, file)

    def _titles(self, corpus: Corpus, what: str) -> Labelled:
        """Return the titles of documents and their sentences, joined by what the run cuts at."""
        missing = [name for name in ("title", "document") if name not in corpus.names]
        if missing or corpus.documents is None:
            raise CseError(
                f"it has neither a column positive nor {' and '.join(missing)}",
                where=f"{self.where}.file",
                value=what,
                hint="name articles with titles, or a table with text and positive",
            )
        rows = np.flatnonzero(corpus.documents >= 0)
        rows = rows[np.argsort(corpus.documents[rows], kind="stable")]
        _, starts = np.unique(corpus.documents[rows], return_index=True)
        texts, positives = [], []
        titles, sentences = corpus.column("title"), corpus.column("text")
        for group in np.split(rows, starts[1:]):
            title = titles[int(group[0])] if len(group) else ""
            if title.strip():
                texts.append(title)
                positives.append(self.between.join(sentences.take(group)))
        if len(texts) < 2:
            raise CseError("fewer than two documents have a title", where=f"{self.where}.file",
                           value=what, hint="name documents with titles")  # fmt: skip
        return Labelled(texts, positives)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the number of rounds it asked for, and the sha256 of the run's pairs."""
        known = "" if self._labelled is None else self._labelled.digest
        return {"mined": self.mined, "digest": self.digest or known}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.mined, self.digest = state["mined"], state["digest"]


class IdcLabels(PositiveMiner):
    """Stages of clustering and rounds of labels in turn, until the fine-tuned score stops growing.

    InfoCSE++ (InfoCSE, Section 3): clustering goes on until the dev score stops improving, the
    encoder is fine-tuned on labels, clusters the documents with what it has learnt, and so on; a
    stage of clustering is the last, too. Rounds of a stage are compared with each other, and rounds
    of labels with each other.
    """

    options: IdcLabelsOptions

    def __init__(self, options: IdcLabelsOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.clusters = Idc(options, setup)
        self.labels = Labels(options, setup)
        self.before = 0
        self.tuned: list[int] = []

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round of clusters or of labels, or None after the last stage."""
        mined = self.clusters.mined + self.labels.mined
        if not mined:
            self.before = len(ctx.scores)
        over, last = self._ended(ctx.scores[self.before :])
        if last and (over or not self.options.idc_after):
            return None
        if not over:
            return self.clusters.mine_round(ctx)
        self.tuned.append(mined)
        return self.labels.mine_round(ctx)

    def _ended(self, scores: Sequence[float | None]) -> tuple[bool, bool]:
        """Check whether the clustering stage is over, and whether the turns are.

        Args:
            scores: Best dev score of each of its finished rounds.
        """
        options = self.options
        stage = scores[self.tuned[-1] + 1 if self.tuned else 0 :]
        of_labels = [scores[number] for number in self.tuned]
        return (
            enough(stage, options.idc_rounds, options.idc_patience),
            enough(of_labels, options.rounds, options.round_patience),
        )

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the numbers of its rounds of labels, and the state of its miners."""
        return {
            "before": self.before,
            "tuned": list(self.tuned),
            "clusters": self.clusters.mined,
            **self.labels.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.before, self.tuned = state["before"], list(state["tuned"])
        self.clusters.mined = state["clusters"]
        self.labels.load_state_dict(state)
