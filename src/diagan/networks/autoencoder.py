"""The convolutional autoencoder behind the paper's reconstruction error (Tables A5, A6)."""

from torch import Tensor, nn

from diagan.errors import UserError

N_CODE = 256


class Autoencoder(nn.Module):
    """Images [B, C, H, W] in [-1, 1] to a code [B, 256] and back; PyTorch's default init.

    The paper's is for 32x32; any sides that are multiples of 8 do.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        channels, height, width = shape
        if height % 8 or width % 8:
            raise UserError(
                f"the autoencoder halves images three times, and {height}x{width} cannot be; "
                "resize them to multiples of 8"
            )
        self.shape = (channels, height, width)
        smallest = (256, height // 8, width // 8)  # 256 x 4 x 4 at 32x32
        n_flat = smallest[0] * smallest[1] * smallest[2]
        self.encoder = nn.Sequential(
            *_down(channels, 64), *_down(64, 128), *_down(128, 256),
            nn.Flatten(), nn.Linear(n_flat, N_CODE), nn.Tanh(),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(N_CODE, n_flat), nn.BatchNorm1d(n_flat), nn.ReLU(),
            nn.Unflatten(1, smallest),
            _up(256, 128), nn.BatchNorm2d(128), nn.ReLU(),
            _up(128, 64), nn.BatchNorm2d(64), nn.ReLU(),
            _up(64, channels), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        rebuilt: Tensor = self.decoder(self.encoder(x))
        return rebuilt


def _down(n_in: int, n_out: int) -> list[nn.Module]:
    return [nn.Conv2d(n_in, n_out, 3, stride=2, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]


def _up(n_in: int, n_out: int) -> nn.Module:
    return nn.ConvTranspose2d(n_in, n_out, 3, stride=2, padding=1, output_padding=1)
