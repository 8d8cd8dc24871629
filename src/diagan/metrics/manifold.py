"""Precision, recall, density, coverage and Partial Recall: who lies in whose k-nearest balls.

A sample's ball reaches to its k-th nearest other sample of its own set: k = 3 means the third one,
the sample itself not counted. The edge belongs to the ball (<=, Eq. E.5). The `prdc` package takes
the same k but a strict <; the two differ only where distances are equal, as among copies.

Distances come by the matrix product, a tile at a time, in float32. Where rounding could decide
whether a sample lies in a ball, the pair is looked at again, exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from diagan.errors import UserError
from diagan.metrics.common import CHUNK, checked_pair

# |x|^2 + |y|^2 - 2 x.y errs by less than this many times eps (|x|^2 + |y|^2). Measured for 2 to
# 8,192 dimensions: 2 to 5, and up to 19 where few of them hold most of the variance.
ROUNDING = 64
# A squared radius under this many times its error is too small for float32.
LEGIBLE = 4


class PRDC(NamedTuple):
    """Shares from 0 to 1, higher is better; density may exceed 1."""

    precision: float  # of fakes in some real ball: fidelity, Eq. E.6
    recall: float  # of reals in some fake ball: diversity, Eq. E.7
    density: float  # real balls around a fake, over k
    coverage: float  # of reals with a fake in their ball


def manifold_metrics(*, real: ArrayLike, fake: ArrayLike, k: int = 3) -> PRDC:
    """All four for features [N, F] and [M, F]. Memory beyond them does not grow with N x M."""
    reals, fakes = _point_sets(real=real, fake=fake, k=k)
    real_balls, fake_balls = _balls(reals.features, k), _balls(fakes.features, k)
    around = torch.zeros(len(fakes), dtype=torch.int64)  # real balls that hold each fake
    recalled = torch.zeros(len(reals), dtype=torch.bool)
    covered = torch.zeros(len(reals), dtype=torch.bool)
    for tile in _tiles(reals, fakes):
        in_real_ball = tile.in_row_balls(real_balls)  # [T, T']
        around[tile.columns] += in_real_ball.sum(dim=0, dtype=torch.int32)
        covered[tile.rows] |= in_real_ball.any(dim=1)
        recalled[tile.rows] |= tile.in_column_balls(fake_balls).any(dim=1)
    return PRDC(
        precision=_share(around > 0),
        recall=_share(recalled),
        density=float(around.double().mean()) / k,
        coverage=_share(covered),
    )


def recalled(*, real: ArrayLike, fake: ArrayLike, k: int = 3) -> NDArray[np.bool_]:
    """Whether each real sample lies in the ball of some fake (Eq. E.5), [N]."""
    reals, fakes = _point_sets(real=real, fake=fake, k=k)
    balls = _balls(fakes.features, k)
    found = torch.zeros(len(reals), dtype=torch.bool)
    for tile in _tiles(reals, fakes):
        found[tile.rows] |= tile.in_column_balls(balls).any(dim=1)
    return found.numpy()


def partial_recall(
    *,
    real: NDArray[np.floating],
    fake: ArrayLike,
    subset: NDArray[np.bool_] | NDArray[np.integer],
    k: int = 3,
) -> float:
    """Eq. E.8: the share of a subset of the reals (a mask [N], or indices) that is recalled."""
    chosen = np.asarray(real)[subset]
    if len(chosen) == 0:
        raise UserError("the subset is empty: Partial Recall needs at least one real sample")
    return float(recalled(real=chosen, fake=fake, k=k).mean())


def _share(mask: Tensor) -> float:
    return float(mask.double().mean())


# --- distances -----------------------------------------------------------------------------------


class _Points:
    """A set of features [N, F], which are read, shifted and cast a tile at a time."""

    def __init__(
        self,
        features: NDArray[np.floating],
        centre: NDArray[np.float64],
        dtype: type[np.floating] = np.float32,
    ) -> None:
        self.features = features
        self.dtype = dtype
        # Products lose fewer digits near the data's centre, [F]. The difference is taken in the
        # wider of both types, so that it loses none.
        self.shift = centre.astype(np.result_type(features, dtype))
        self.squares = torch.empty(len(features), dtype=torch.float64)  # [N]
        for rows in _slices(len(features)):
            tile = self.tile(rows).numpy()
            # Summed in float64 without a copy, and into place: what is kept between large tiles
            # would leave holes in the memory.
            np.einsum("nf,nf->n", tile, tile, dtype=np.float64, out=self.squares[rows].numpy())

    def __len__(self) -> int:
        return len(self.features)

    def tile(self, rows: slice) -> Tensor:  # [T, F]
        shifted = self.features[rows] - self.shift
        return torch.from_numpy(shifted.astype(self.dtype, copy=False))


@dataclass(frozen=True)
class _Tile:
    """Squared distances between some points of one set and some of another."""

    x: _Points
    y: _Points
    rows: slice
    columns: slice
    distances: Tensor  # [T, T'], squared, rounded

    def in_row_balls(self, squared_radii: Tensor) -> Tensor:
        """Which columns' points lie in which rows' balls, [T, T']; the radii of all x, [N]."""
        squares = self.x.squares[self.rows, None]
        return self._inside(squared_radii[self.rows, None], squares)

    def in_column_balls(self, squared_radii: Tensor) -> Tensor:
        """Which rows' points lie in which columns' balls, [T, T']; the radii of all y, [M]."""
        return self._inside(squared_radii[self.columns], self.y.squares[self.columns])

    def _inside(self, squared_radii: Tensor, squares: Tensor) -> Tensor:
        # A point at distance r from a centre x has |y|^2 <= 2 |x|^2 + 2 r^2, so this is what its
        # distance may err by; points further away cannot come nearer by more.
        error = (3 * squares + 2 * squared_radii) * _rounding(self.x.dtype)
        inside = self.distances < (squared_radii - error).to(self.distances.dtype)
        unsure = self.distances <= (squared_radii + error).to(self.distances.dtype)
        if not torch.equal(inside, unsure):
            row, column = unsure.logical_xor_(inside).nonzero(as_tuple=True)
            exact = _exact(self.x.features[self.rows], row, self.y.features[self.columns], column)
            inside[row, column] = exact <= squared_radii.expand_as(inside)[row, column]  # Eq. E.5
        return inside


def _rounding(dtype: type[np.floating]) -> float:
    return ROUNDING * float(np.finfo(dtype).eps)


def _slices(n: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK))


def _point_sets(*, real: ArrayLike, fake: ArrayLike, k: int) -> tuple[_Points, _Points]:
    if k < 1:
        raise UserError(f"k = {k}: give 1 or more")
    ours, theirs = checked_pair(real=real, fake=fake)
    centre = (_mean(ours) + _mean(theirs)) / 2
    return _Points(ours, centre), _Points(theirs, centre)


def _mean(features: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.asarray(features.mean(axis=0, dtype=np.float64))


def _tiles(x: _Points, y: _Points) -> Iterator[_Tile]:
    """Every pair of x and y once; every unordered pair once where x is y."""
    for rows in _slices(len(x)):
        left = x.tile(rows)
        left_squares = x.squares[rows, None].to(left.dtype)
        for columns in _slices(len(y)):
            if x is y and columns.start < rows.start:
                continue
            right_squares = y.squares[columns].to(left.dtype)
            products = torch.addmm(right_squares, left, y.tile(columns).T, alpha=-2)
            yield _Tile(x, y, rows, columns, products.add_(left_squares))


def _balls(features: NDArray[np.floating], k: int, dtype: type[np.floating] = np.float32) -> Tensor:
    """Squared distance of each sample to its k-th nearest other one, [N] float64.

    The neighbour is found by rounded distances and measured exactly; found again in float64 if
    rounding could have hidden it, as in clusters that are tiny and far apart.
    """
    if len(features) <= k:
        raise UserError(f"{len(features)} samples are too few for k = {k}: give more than k")
    points = _Points(features, _mean(features), dtype)
    neighbours = _neighbours(points, k)
    squared_radii = _exact(features, torch.arange(len(features)), features, neighbours)
    errors = (points.squares + points.squares[neighbours]) * _rounding(dtype)
    hidden = (squared_radii > 0) & (squared_radii < LEGIBLE * errors)
    if dtype is np.float32 and bool(hidden.any()):
        return _balls(features, k, np.float64)
    return squared_radii


def _neighbours(points: _Points, k: int) -> Tensor:
    """The index of each point's k-th nearest other one, [N]."""
    nearest = torch.full((len(points), k), torch.inf, dtype=torch.float64)
    neighbours = torch.zeros((len(points), k), dtype=torch.int64)

    def keep(rows: slice, columns: slice, distances: Tensor) -> None:
        values, indices = distances.topk(min(k, distances.shape[1]), largest=False)
        values = torch.cat([nearest[rows], values.double()], dim=1)
        indices = torch.cat([neighbours[rows], indices + columns.start], dim=1)
        nearest[rows], chosen = values.topk(k, largest=False)
        neighbours[rows] = indices.gather(1, chosen)

    for tile in _tiles(points, points):
        if tile.rows == tile.columns:
            tile.distances.fill_diagonal_(torch.inf)  # nobody is a neighbour of their own
        else:  # the same tile, seen from the other side
            keep(tile.columns, tile.rows, tile.distances.T.contiguous())
        keep(tile.rows, tile.columns, tile.distances)
    return neighbours[:, -1]


def _exact(x: NDArray[np.floating], i: Tensor, y: NDArray[np.floating], j: Tensor) -> Tensor:
    """Squared distances of the pairs x[i], y[j] in float64: zero for copies, and nothing else."""
    found = np.empty(len(i))
    for part in _slices(len(i)):
        difference = np.subtract(x[i[part].numpy()], y[j[part].numpy()], dtype=np.float64)
        found[part] = np.square(difference).sum(axis=1)
    return torch.from_numpy(found)
