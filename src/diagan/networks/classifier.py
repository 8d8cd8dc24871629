"""The classifier in whose features the paper measures Partial Recall of the MNIST sets."""

import math

import torch
from torch import Tensor, nn

SIZE = 32
WIDTHS = (16, 32, 64, 128)
KERNEL = 7


class Classifier(nn.Module):
    """Four 7x7 convolutions with BatchNorm and ReLU, the mean over the pixels, a linear layer.

    Images [B, C, 32, 32] in [-1, 1] -> features [B, 128] and logits [B, 20]. Initialised as in the
    published code (FACTS 7.2).
    """

    def __init__(self, channels: int, n_classes: int = 20) -> None:
        super().__init__()
        self.channels = channels
        n_in = (channels, *WIDTHS)
        self.convolutions = nn.ModuleList(map(FourierConvolution, n_in, WIDTHS))
        self.norms = nn.ModuleList(map(nn.BatchNorm1d, WIDTHS))
        self.logits = nn.Linear(WIDTHS[-1], n_classes)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        x = images.permute(2, 3, 1, 0)  # [H, W, C, B]
        for convolution, norm in zip(self.convolutions, self.norms):
            x = convolution(x)
            x = norm(x.flatten(0, 1)).relu_().view_as(x)  # over pixels and images
        features = x.mean(dim=(0, 1)).T  # [B, 128]
        return features, self.logits(features)


class FourierConvolution(nn.Module):
    """`nn.Conv2d(n_in, n_out, 7, padding=3, bias=False)` as products of Fourier transforms.

    For 7x7 filters and 32x32 images that is a sixth of the arithmetic. Activations are
    [H, W, C, B]: every matrix product finds its operands in place. What is between the two
    transforms of a row stays in the cache, if the batch is small.
    """

    rows_to: Tensor
    columns_to: Tensor
    filters_to: Tensor
    columns_from: Tensor
    rows_from: Tensor
    frozen: Tensor | None

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_out, n_in, KERNEL, KERNEL))
        nn.init.kaiming_normal_(self.weight, mode="fan_out", nonlinearity="relu")
        self.register_buffer("frozen", None, persistent=False)
        for name, matrix in _transforms(SIZE, KERNEL).items():
            self.register_buffer(name, matrix.float(), persistent=False)

    def freeze(self) -> None:
        """Transform the filters once and for all: they learn no more."""
        self.frozen = self.filters().detach()

    def filters(self) -> Tensor:
        """[R, P * 3, O, C]."""
        taps = self.weight.permute(2, 3, 0, 1).reshape(KERNEL * KERNEL, -1)
        n_out, n_in = self.weight.shape[:2]
        return (self.filters_to @ taps).view(len(self.rows_to) // 2, -1, n_out, n_in)

    def forward(self, x: Tensor) -> Tensor:
        h, w, n_in, batch = x.shape
        filters = self.filters() if self.frozen is None else self.frozen
        rows, _, n_out, _ = filters.shape
        s = self.rows_to @ x.reshape(h, -1)  # [R * 2, W * C * B]
        done = []
        for row, by in zip(s.view(rows, 2 * w, -1), filters):
            t = self.columns_to @ row  # [P * 3, C * B]
            t = by @ t.view(-1, n_in, batch)  # [P * 3, O, B]
            done.append(self.columns_from @ t.view(-1, n_out * batch))  # [2 * W, O * B]
        y = self.rows_from @ torch.stack(done).view(2 * rows, -1)  # [H, W * O * B]
        return y.view(h, w, n_out, batch)


# Gauss's way to multiply complex numbers x and f with three real products:
# (xr + xi) fr, xi (fr + fi) and xr (fi - fr). Rows of what enters them, and of what comes out.
X_TO_THREE = torch.tensor([[1.0, 1], [0, 1], [1, 0]], dtype=torch.float64)
F_TO_THREE = torch.tensor([[1.0, 0], [1, 1], [-1, 1]], dtype=torch.float64)
FROM_THREE = torch.tensor([[1.0, -1, 0], [1, 0, 1]], dtype=torch.float64)


def _transforms(size: int, kernel: int) -> dict[str, Tensor]:
    """Real matrices of the Fourier transforms to and from R x P frequencies.

    The period P leaves zeros enough for a filter that reaches over the edge. Of the rows'
    frequencies the first R = P / 2 + 1 are enough: the others are their conjugates.
    """
    period = size + kernel // 2 + 1  # one more than needed, to be even
    half = period // 2 + 1
    angle = 2 * math.pi / period * torch.arange(period, dtype=torch.float64)
    tap = torch.arange(kernel) - kernel // 2
    to = torch.exp(-1j * angle[:, None] * torch.arange(size))  # [P, size]
    back = torch.exp(1j * torch.arange(size)[:, None] * angle) / period  # [size, P]
    tap_to = torch.exp(1j * angle[:, None] * tap)  # [P, kernel]; a conjugate: no filter is turned
    filters = torch.einsum("rk,pl->rpkl", tap_to[:half], tap_to).reshape(-1, kernel * kernel)
    twice = torch.full((half,), 2.0, dtype=torch.float64)
    twice[0] = twice[-1] = 1  # these two are their own conjugates
    rows = back[:, :half] * twice
    columns_to = torch.einsum("tc,cdpw->ptdw", X_TO_THREE, _pairs(to))
    filters_to = torch.einsum("tc,cfk->ftk", F_TO_THREE, torch.stack([filters.real, filters.imag]))
    columns_from = torch.einsum("cdwp,dt->cwpt", _pairs(back), FROM_THREE)
    return {
        "rows_to": torch.stack([to[:half].real, to[:half].imag], dim=1).reshape(2 * half, size),
        "columns_to": columns_to.reshape(3 * period, 2 * size),
        "filters_to": filters_to.reshape(-1, kernel * kernel),
        "columns_from": columns_from.reshape(2 * size, 3 * period),
        "rows_from": torch.stack([rows.real, -rows.imag], dim=2).reshape(size, 2 * half),
    }


def _pairs(matrix: Tensor) -> Tensor:
    """A complex matrix as it acts on pairs of real numbers: [2, 2, *matrix.shape]."""
    re, im = matrix.real, matrix.imag
    return torch.stack([torch.stack([re, -im]), torch.stack([im, re])])
