"""The Inception network of 2015-12-05 in which FID and IS are published.

Its parts are named as in the public weight file. It differs from the Inception-v3 that torch users
know: average pools do not count the padding, the last block takes a maximum, and there are 1008
classes.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

N_FEATURES = 2048
N_CLASSES = 1008


class Unit(nn.Module):
    """Convolution, BatchNorm (of the graph: epsilon 1e-3), ReLU."""

    def __init__(
        self, n_in: int, n_out: int, kernel: int | tuple[int, int], stride: int = 1,
        padding: int | tuple[int, int] = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(n_out, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn(self.conv(x))
        return x.relu_()


def same(n_in: int, n_out: int, kernel: int | tuple[int, int]) -> Unit:
    """A unit that keeps the size."""
    height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    return Unit(n_in, n_out, (height, width), padding=(height // 2, width // 2))


def average_pool(x: Tensor) -> Tensor:
    """3x3 at stride 1; at the edges the mean is over the pixels that are there."""
    return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


def max_pool(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 3, stride=1, padding=1)


def chain(block: nn.Module, x: Tensor, *names: str) -> Tensor:
    """x through the units of these names, one after the other."""
    for name in names:
        x = getattr(block, name)(x)
    return x


class Block5(nn.Module):
    """Branches of 1x1, 5x5, two 3x3, and a pool; at 35x35."""

    def __init__(self, n_in: int, n_pool: int) -> None:
        super().__init__()
        self.branch1x1 = same(n_in, 64, 1)
        self.branch5x5_1 = same(n_in, 48, 1)
        self.branch5x5_2 = same(48, 64, 5)
        self.branch3x3dbl_1 = same(n_in, 64, 1)
        self.branch3x3dbl_2 = same(64, 96, 3)
        self.branch3x3dbl_3 = same(96, 96, 3)
        self.branch_pool = same(n_in, n_pool, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(
            [
                self.branch1x1(x),
                chain(self, x, "branch5x5_1", "branch5x5_2"),
                chain(self, x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
                self.branch_pool(average_pool(x)),
            ],
            dim=1,
        )


class Block6a(nn.Module):
    """From 35x35 to 17x17."""

    def __init__(self) -> None:
        super().__init__()
        self.branch3x3 = Unit(288, 384, 3, stride=2)
        self.branch3x3dbl_1 = same(288, 64, 1)
        self.branch3x3dbl_2 = same(64, 96, 3)
        self.branch3x3dbl_3 = Unit(96, 96, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        double = chain(self, x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")
        return torch.cat([self.branch3x3(x), double, F.max_pool2d(x, 3, stride=2)], dim=1)


class Block6(nn.Module):
    """Branches of 1x1, one and two pairs of 1x7 and 7x1, and a pool; at 17x17."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.branch1x1 = same(768, 192, 1)
        self.branch7x7_1 = same(768, n, 1)
        self.branch7x7_2 = same(n, n, (1, 7))
        self.branch7x7_3 = same(n, 192, (7, 1))
        self.branch7x7dbl_1 = same(768, n, 1)
        self.branch7x7dbl_2 = same(n, n, (7, 1))
        self.branch7x7dbl_3 = same(n, n, (1, 7))
        self.branch7x7dbl_4 = same(n, n, (7, 1))
        self.branch7x7dbl_5 = same(n, 192, (1, 7))
        self.branch_pool = same(768, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(
            [
                self.branch1x1(x),
                chain(self, x, *(f"branch7x7_{i}" for i in range(1, 4))),
                chain(self, x, *(f"branch7x7dbl_{i}" for i in range(1, 6))),
                self.branch_pool(average_pool(x)),
            ],
            dim=1,
        )


class Block7a(nn.Module):
    """From 17x17 to 8x8."""

    def __init__(self) -> None:
        super().__init__()
        self.branch3x3_1 = same(768, 192, 1)
        self.branch3x3_2 = Unit(192, 320, 3, stride=2)
        self.branch7x7x3_1 = same(768, 192, 1)
        self.branch7x7x3_2 = same(192, 192, (1, 7))
        self.branch7x7x3_3 = same(192, 192, (7, 1))
        self.branch7x7x3_4 = Unit(192, 192, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(
            [
                chain(self, x, "branch3x3_1", "branch3x3_2"),
                chain(self, x, *(f"branch7x7x3_{i}" for i in range(1, 5))),
                F.max_pool2d(x, 3, stride=2),
            ],
            dim=1,
        )


class Block7(nn.Module):
    """Branches of 1x1, and two that end in 1x3 beside 3x1, and a pool; at 8x8."""

    def __init__(self, n_in: int, pool: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.pool = pool
        self.branch1x1 = same(n_in, 320, 1)
        self.branch3x3_1 = same(n_in, 384, 1)
        self.branch3x3_2a = same(384, 384, (1, 3))
        self.branch3x3_2b = same(384, 384, (3, 1))
        self.branch3x3dbl_1 = same(n_in, 448, 1)
        self.branch3x3dbl_2 = same(448, 384, 3)
        self.branch3x3dbl_3a = same(384, 384, (1, 3))
        self.branch3x3dbl_3b = same(384, 384, (3, 1))
        self.branch_pool = same(n_in, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        single = self.branch3x3_1(x)
        double = chain(self, x, "branch3x3dbl_1", "branch3x3dbl_2")
        return torch.cat(
            [
                self.branch1x1(x),
                self.branch3x3_2a(single),
                self.branch3x3_2b(single),
                self.branch3x3dbl_3a(double),
                self.branch3x3dbl_3b(double),
                self.branch_pool(self.pool(x)),
            ],
            dim=1,
        )


class Inception(nn.Module):
    """Images [B, 3, 299, 299] in [-1, 1] -> pool3 features [B, 2048]; `fc` is for the classes."""

    def __init__(self) -> None:
        super().__init__()
        self.Conv2d_1a_3x3 = Unit(3, 32, 3, stride=2)
        self.Conv2d_2a_3x3 = Unit(32, 32, 3)
        self.Conv2d_2b_3x3 = same(32, 64, 3)
        self.Conv2d_3b_1x1 = same(64, 80, 1)
        self.Conv2d_4a_3x3 = Unit(80, 192, 3)
        self.Mixed_5b = Block5(192, n_pool=32)
        self.Mixed_5c = Block5(256, n_pool=64)
        self.Mixed_5d = Block5(288, n_pool=64)
        self.Mixed_6a = Block6a()
        self.Mixed_6b = Block6(128)
        self.Mixed_6c = Block6(160)
        self.Mixed_6d = Block6(160)
        self.Mixed_6e = Block6(192)
        self.Mixed_7a = Block7a()
        self.Mixed_7b = Block7(1280, average_pool)
        self.Mixed_7c = Block7(2048, max_pool)  # so in the graph
        self.fc = nn.Linear(N_FEATURES, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = chain(self, x, "Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3")
        x = F.max_pool2d(x, 3, stride=2)
        x = chain(self, x, "Conv2d_3b_1x1", "Conv2d_4a_3x3")
        x = F.max_pool2d(x, 3, stride=2)
        x = chain(self, x, "Mixed_5b", "Mixed_5c", "Mixed_5d", "Mixed_6a", "Mixed_6b", "Mixed_6c",
                  "Mixed_6d", "Mixed_6e", "Mixed_7a", "Mixed_7b", "Mixed_7c")  # fmt: skip
        return x.mean(dim=(2, 3))


def shapes() -> dict[str, torch.Size]:
    """What the weight file must hold: the shape of every tensor by name."""
    with torch.device("meta"):
        state = Inception().state_dict()
    return {k: v.shape for k, v in state.items() if not k.endswith("num_batches_tracked")}


def resize_tf1(images: Tensor, size: int = 299) -> Tensor:
    """TensorFlow 1's bilinear resize: output pixel i looks at i x n / size, without the half pixel.

    It never averages, so a larger image is sampled with aliasing, as in the published numbers.
    """
    return _stretch(_stretch(images, 3, size), 2, size)


def _stretch(x: Tensor, dim: int, size: int) -> Tensor:
    """Between its two neighbours along one axis; beyond the last pixel there is only that one."""
    n = x.shape[dim]
    at = torch.arange(size, dtype=torch.float32, device=x.device) * (n / size)
    low = at.long().clamp(max=n - 1)
    share = (at - low).view(-1, *[1] * (x.dim() - 1 - dim))
    high = (low + 1).clamp(max=n - 1)
    return torch.lerp(x.index_select(dim, low), x.index_select(dim, high), share)


def resize_halfpixel(images: Tensor, size: int = 299) -> Tensor:
    """Bilinear as pixels are squares: the convention of pytorch-fid."""
    return F.interpolate(images, size=(size, size), mode="bilinear", align_corners=False)
