"""Pairs ranked by the similarity of their vectors as complex numbers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from cse_core.functional import unit
from cse_graded.options import AngleOptions
from cse_graded.ranking import Ranking


class Angle(Ranking):
    """AnglE (Li and Li, ACL 2024): CoSENT's ranking with another similarity.

    The first half of a vector is the real part, the second the imaginary one: the similarity is
    ``|Re(a conj(b)) + Im(a conj(b))| / (|a| |b|)``, summed over dimensions, so more similar pairs
    have a larger one, as in the authors' code; the paper's Eq. 3 has the other sign. A vector of an
    odd number of dimensions gets a zero. It is not symmetric in a and b.
    """

    options: AngleOptions

    def of_pairs(self, left: Tensor, right: Tensor) -> Tensor:
        """Return ``[A, P]`` similarities of the angles, 0 to the root of 2."""
        odd = left.shape[-1] % 2
        one, other = (pad(unit(side), (0, odd)) for side in (left, right))
        half = one.shape[-1] // 2
        # Re of a conj(b) is the cosine, Im the cosine with b turned by a quarter.
        turned = torch.cat([-other[..., half:], other[..., :half]], dim=-1)
        return torch.einsum("ad,apd->ap", one, other + turned).abs()
