"""A teacher's vectors, taught one by one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.functional import mean_over_positives, reduce_terms, unit
from cse_core.parts import Loss, Setup
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_distill.lists import taught
from cse_distill.options import MseOptions


class Mse(nn.Module, Loss):
    """The mean over texts and dimensions of ``(student - teacher)^2`` (Reimers and Gurevych, 2020).

    The vectors are not normalised; of ``dimensions`` the first numbers of both are compared.
    ``squared`` has sums over dimensions (LEAF), ``cosine`` is the mean over texts of one minus the
    cosine. Over both sides the loss is the mean of the sides.
    """

    def __init__(self, options: MseOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name, self.map = options, setup.name, None
        if options.dimension is not None:
            with setup.seeded("projection"):
                self.map = nn.Linear(setup.dimension, options.dimension)

    def forward(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over anchors, and over those that have a target.

        Raises:
            CseError: If the teacher's vectors have other dimensions.
        """
        options = self.options
        sides = [("anchor", Positives(batch.anchors.unsqueeze(1)))]
        if options.sides == "both":
            sides.append((options.target, targets))
        values = []
        for view, student in sides:
            teacher = taught(ctx, view, options.teacher, batch, student.vectors.shape[1])
            apart = self._apart(student.vectors, teacher)
            terms = mean_over_positives(apart, student)
            values.append(reduce_terms(terms, student, options.reduction))
        return LossOutput(torch.stack(values).mean())

    def _apart(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Return ``[A, P]`` distances of ``[A, P, D]`` from ``[A, P, D]``."""
        if self.map is not None:
            student = self.map(student)
        if self.options.dimensions:  # the student's first numbers learn the teacher's
            teacher = teacher[..., : student.shape[-1]]
        wanted, given = teacher.shape[-1], student.shape[-1]
        if wanted != given:
            raise CseError(
                f"{self.options.teacher} has vectors of {wanted} dimensions, the model of {given}",
                where=f"loss.{self.name}.dimension",
                value=self.options.dimension,
                hint=f"--loss.{self.name}.dimension {wanted} trains a linear layer that is not "
                f"saved; a head of {wanted} numbers with keep = always is: --pool +mlp "
                f"--pool.mlp.dimension {wanted} --pool.mlp.keep always",
            )
        teacher = teacher.to(student.dtype)
        if self.options.metric == "cosine":
            return 1 - (unit(student) * unit(teacher)).sum(dim=-1)
        apart = (student - teacher).square()
        return apart.sum(dim=-1) if self.options.metric == "squared" else apart.mean(dim=-1)
