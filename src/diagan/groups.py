"""Which group a generated sample belongs to: a nearest-neighbour probe on the training data."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagan.errors import UserError
from diagan.random import numpy_generator

Values = NDArray[np.uint8] | NDArray[np.float32]
N_FOLDS = 5
MIN_PER_GROUP = 100
CHUNK = 1024  # samples whose distances to the reference set are held at once


@dataclass(frozen=True)
class GroupProbe:
    """Majority of the k nearest samples of a reference set, in pixels (or coordinates).

    The reference set is a random part of the data, proportional but for groups that would fall
    under 100 members: these are over-represented, so that borderline samples lean to them.
    """

    reference: Tensor  # [R, F] float32, less their mean
    reference_groups: Tensor  # [R] int64
    mean: Tensor  # [F]; near the data's centre the distances lose fewer digits
    is_image: bool  # uint8, scaled to [0, 1]
    k: int
    accuracy: float  # 0 to 1, cross-validated, at the data's group shares
    balanced_accuracy: float  # 0 to 1, cross-validated, every group counting the same

    @classmethod
    def fit(
        cls,
        values: Values,
        groups: NDArray[np.int64],
        n_groups: int,
        *,
        seed: int,
        k: int = 3,
        max_reference: int = 5000,
    ) -> "GroupProbe":
        """Choose the reference set from values [N, ...] and measure how well it predicts."""
        if len(values) != len(groups) or len(groups) == 0:
            raise UserError(f"{len(values)} samples with {len(groups)} groups: give one for each")
        if groups.min() < 0 or groups.max() >= n_groups:
            raise UserError(f"a group lies outside 0 to {n_groups - 1}: number groups from 0")
        sizes = np.bincount(groups, minlength=n_groups)
        least = np.minimum(sizes, min(MIN_PER_GROUP, max(1, max_reference // n_groups)))
        n_kept = np.maximum(np.rint(sizes * min(1, max_reference / len(groups))), least).astype(int)
        shuffled = numpy_generator(seed, "groups/reference").permutation(len(groups))
        kept = np.concatenate([shuffled[groups[shuffled] == g][:n] for g, n in enumerate(n_kept)])
        if len(kept) - math.ceil(len(kept) / N_FOLDS) < k:  # what the other folds hold
            raise UserError(f"{len(kept)} samples are too few for {k} neighbours: give more")
        is_image = values.dtype == np.uint8
        reference = _features(values[kept], is_image)
        mean = reference.mean(dim=0)
        reference, truth = reference - mean, torch.from_numpy(groups[kept].astype(np.int64))
        # `kept` is sorted by group and random within it: every fold gets its part of each group.
        folds = torch.arange(len(kept)) % N_FOLDS
        correct = (_vote(reference, reference, truth, k, folds) == truth).numpy()
        present = sizes > 0
        recall = np.bincount(truth, weights=correct, minlength=n_groups)[present] / n_kept[present]
        accuracy = float(recall @ sizes[present] / len(groups))
        return cls(reference, truth, mean, is_image, k, accuracy, float(recall.mean()))

    def predict(self, values: Values) -> NDArray[np.int64]:
        """The group of each of values [M, ...], laid out and scaled as those given to `fit`."""
        queries = _features(values, self.is_image) - self.mean
        return _vote(queries, self.reference, self.reference_groups, self.k).numpy()


def _features(values: Values, is_image: bool) -> Tensor:
    if (values.dtype == np.uint8) != is_image:
        kind = "uint8 images" if is_image else "floats"
        raise UserError(f"samples are {values.dtype}, the probe was fitted on {kind}: give these")
    flat = torch.from_numpy(np.ascontiguousarray(values)).flatten(1).float()  # [N, F]
    return flat / 255 if is_image else flat


def _vote(
    queries: Tensor, reference: Tensor, groups: Tensor, k: int, folds: Tensor | None = None
) -> Tensor:
    """Majority group of the k nearest, [M]; with folds, of the nearest in other folds."""
    squares, winners = (reference**2).sum(dim=1), [groups[:0]]
    for start in range(0, len(queries), CHUNK):
        chunk = queries[start : start + CHUNK]
        distances = squares - 2 * chunk @ reference.T  # [c, R], squared, less the query's own norm
        if folds is not None:
            distances[folds[start : start + CHUNK, None] == folds] = torch.inf
        votes = groups[distances.topk(k, largest=False).indices]  # [c, k], nearest first
        agreeing = (votes[:, :, None] == votes[:, None, :]).sum(dim=2)  # [c, k]
        best = (agreeing * k - torch.arange(k)).argmax(dim=1)  # ties to the nearest
        winners.append(votes.gather(1, best[:, None])[:, 0])
    return torch.cat(winners)
