import pytest
import torch
from torch import nn
from torch.nn.functional import conv_transpose2d
from torch.nn.utils.parametrize import is_parametrized

from diagan.config import DCGAN, MLP, SNGAN
from diagan.networks import build, count_parameters
from diagan.networks.common import Discriminator, Dropout
from diagan.networks.dcgan import FirstUp


@pytest.mark.parametrize(
    ("channels", "n_g", "n_d"), [(3, 1_590_048, 1_581_937), (1, 1_588_512, 1_581_649)]
)
def test_dcgan_has_the_papers_parameters(channels, n_g, n_d):
    g, d = build(DCGAN(), (channels, 32, 32))
    assert count_parameters(g) == n_g  # FACTS 1.6
    assert count_parameters(d) == n_d


def test_dcgan_layers_are_those_of_the_papers_tables():
    g, d = build(DCGAN(), (3, 32, 32))
    ups = [(m.in_channels, m.out_channels, m.stride[0]) for m in g if hasattr(m, "out_channels")]
    assert ups == [(384, 192, 1), (192, 96, 2), (96, 48, 2), (48, 3, 2)]
    downs = [(m.out_channels, m.stride[0]) for m in d.trunk if isinstance(m, nn.Conv2d)]
    assert downs == [(16, 2), (32, 1), (64, 2), (128, 1), (256, 2), (512, 1)]
    kinds = [type(m).__name__ for m in d.trunk]
    assert kinds[:3] == ["Conv2d", "LeakyReLU", "Dropout"]  # no BatchNorm on the first
    assert kinds[3:-1] == ["Conv2d", "BatchNorm2d", "LeakyReLU", "Dropout"] * 5
    assert all(m.bias is None for m in d.trunk if isinstance(m, nn.Conv2d))


def test_mlp_layers():
    g, d = build(MLP(), (2,))
    linears = [[m for m in net.modules() if isinstance(m, nn.Linear)] for net in (g, d)]
    shapes = [[(m.in_features, m.out_features) for m in layers] for layers in linears]
    assert shapes[0] == [(2, 512), (512, 512), (512, 512), (512, 2)]
    assert shapes[1] == [(2, 512), (512, 512), (512, 512), (512, 1)]
    assert sum(isinstance(m, nn.ReLU) for m in g.modules()) == 3


def test_mlp_for_images():
    g, d = build(MLP(width=8, latent=4), (3, 16, 16))
    fake = g(torch.randn(5, 4))
    assert fake.shape == (5, 3, 16, 16) and fake.abs().max() <= 1
    scores = d(fake)
    assert scores.logits.shape == (5,) and scores.features.shape == (5, 8)
    assert not any(isinstance(m, nn.BatchNorm1d) for m in d.modules())  # one image, one logit
    (two,) = d(fake[2:3]).logits
    assert torch.allclose(two, scores.logits[2], atol=1e-6)


def test_mlp_initialisation_of_the_published_code():
    torch.manual_seed(0)
    g, d = build(MLP(init_std=0.02), (2,))
    middle = g[0][2]
    assert middle.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert all(m.bias.abs().max() == 0 for m in d.modules() if isinstance(m, nn.Linear))


@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize("channels", [1, 3])
def test_dcgan_at_every_side(size, channels):
    g, d = build(DCGAN(width=0.25), (channels, size, size))
    images = g(torch.randn(5, 100))
    assert images.shape == (5, channels, size, size)
    assert images.abs().max() <= 1
    scores = d(images)
    assert scores.logits.shape == (5,)
    assert scores.features.shape == (5, d.logit.in_features)
    assert scores.heads == {}


def test_heads_grow_on_the_features():
    _, d = build(DCGAN(width=0.25), (3, 16, 16), {"rotation": 4, "logistic": 1})
    scores = d.eval()(torch.randn(6, 3, 16, 16))
    assert {name: head.shape for name, head in scores.heads.items()} == {
        "rotation": (6, 4),
        "logistic": (6, 1),
    }
    assert torch.equal(scores.heads["rotation"], d.heads["rotation"](scores.features))


def test_heads_leave_the_logit_as_it_was():
    """Whatever grows on D, the same seed starts the same GAN."""
    found = []
    for heads in ({}, {"rotation": 4}):
        torch.manual_seed(3)
        found.append(build(MLP(width=8), (2,), heads)[1].state_dict())
    assert all(torch.equal(value, found[1][name]) for name, value in found[0].items())


def test_the_first_layer_of_g_is_the_transposed_convolution_that_the_paper_has():
    torch.manual_seed(0)
    up = FirstUp(6, 5, 4, bias=False)
    x = torch.randn(3, 6, 1, 1, requires_grad=True)
    found, expected = up(x), conv_transpose2d(x, up.weight)
    assert found.shape == (3, 5, 4, 4)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    mine, theirs = (torch.autograd.grad((y * weights).sum(), (x, up.weight))
                    for y in (found, expected))  # fmt: skip
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("config, shape", [(DCGAN(width=0.25), (3, 16, 16)), (MLP(width=8), (2,))])
def test_logit_is_float32_under_autocast(config, shape):
    _, d = build(config, shape, {"rotation": 4})
    x = torch.randn(4, *shape)
    with torch.autocast("cpu", torch.bfloat16):
        scores = d.eval()(x)
    assert scores.logits.dtype == scores.features.dtype == torch.float32
    assert scores.heads["rotation"].dtype == torch.float32
    # The last layer itself works in float32, not only its output's type.
    expected = scores.features.double() @ d.logit.weight.double().T + d.logit.bias.double()
    assert torch.allclose(scores.logits.double(), expected.squeeze(1), rtol=1e-5, atol=1e-6)


def test_the_trunk_does_run_in_bfloat16():
    d = Discriminator(nn.Linear(2, 3), 3, {})
    seen = []
    d.trunk.register_forward_hook(lambda *args: seen.append(args[2].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        d(torch.randn(4, 2))
    assert seen == [torch.bfloat16]


@pytest.mark.parametrize("d_norm", ["batch", "spectral"])
def test_in_eval_mode_a_logit_depends_on_its_image_alone(d_norm):
    torch.manual_seed(0)
    _, d = build(DCGAN(width=0.25, dropout=0.0, d_norm=d_norm), (3, 16, 16))
    x = torch.randn(8, 3, 16, 16)
    for _ in range(3):
        d(x)
    alone = torch.cat([d.eval()(image[None]).logits for image in x])
    assert torch.allclose(d(x).logits, alone, atol=1e-5)


@pytest.mark.parametrize(("d_norm", "depends"), [("batch", True), ("spectral", False)])
def test_in_train_mode_batch_norm_lets_a_logit_depend_on_its_batch_mates(d_norm, depends):
    torch.manual_seed(0)
    _, d = build(DCGAN(width=0.25, dropout=0.0, d_norm=d_norm), (3, 16, 16))
    x = torch.randn(8, 3, 16, 16)
    for _ in range(200):  # until the power iterations stand still
        d(x)
    assert torch.allclose(d(x).logits[:4], d(x[:4]).logits, atol=1e-5) != depends


def test_spectral_norm_bounds_every_layer():
    _, d = build(DCGAN(width=0.25, d_norm="spectral"), (3, 16, 16))
    for _ in range(200):  # one power iteration a forward
        d(torch.randn(2, 3, 16, 16))
    layers = [m for m in d.eval().modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 5
    for layer in layers:
        norm = torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item()
        assert norm == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75, 0.9])
def test_dropout_rate_and_mean(p):
    torch.manual_seed(0)
    x = Dropout(p)(torch.ones(1000, 1001))  # an odd count: the last draw is not used up
    rounded = round(p * 256) / 256
    # 10^6 draws: 5 standard deviations are 0.0025 of the rate and at most 0.015 of the mean.
    assert (x == 0).float().mean().item() == pytest.approx(rounded, abs=0.0025)
    assert x.mean().item() == pytest.approx(1.0, abs=0.015)
    assert x.max().item() == pytest.approx(1 / (1 - rounded))


def test_dropout_draws_its_bits_in_the_order_of_memory():
    """A mask in another order than its image is slow to multiply with."""
    image = torch.ones(4, 8, 6, 5)
    torch.manual_seed(0)
    mask = Dropout(0.5)(image.to(memory_format=torch.channels_last))
    torch.manual_seed(0)
    assert torch.equal(mask.permute(0, 2, 3, 1), Dropout(0.5)(image.permute(0, 2, 3, 1).clone(
        memory_format=torch.contiguous_format)))  # fmt: skip


def test_dropout_of_a_part_of_a_tensor_stays_within_it():
    torch.manual_seed(0)
    part = torch.arange(1.0, 25).view(4, 6)[:, ::2]
    dropped = Dropout(0.5)(part)
    assert bool(((dropped == 0) | (dropped == 2 * part)).all())
    assert 0 < int((dropped == 0).sum()) < 12


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last])
def test_dropout_drops_elements_one_by_one(form):
    torch.manual_seed(0)
    kept = Dropout(0.5)(torch.ones(64, 8, 16, 16).to(memory_format=form)) > 0
    for neighbours in (kept[..., 1:] == kept[..., :-1], kept[1:] == kept[:-1]):
        assert neighbours.float().mean().item() == pytest.approx(0.5, abs=0.01)


def test_dropout_is_nothing_in_eval_mode_and_at_rate_zero():
    x = torch.randn(10)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_dropout_follows_the_seed_and_passes_gradients():
    drop, found = Dropout(0.5), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        x = torch.ones(100, requires_grad=True)
        y = drop(x)
        y.sum().backward()
        assert torch.equal(x.grad, y.detach())
        found.append(y.detach())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_dropout_never_drops_everything():
    """Rates that round to 1 keep one in 256: a scale of infinity would be no use."""
    torch.manual_seed(0)
    x = Dropout(0.9999)(torch.ones(100_000))
    assert x.max().item() == 256
    assert x.mean().item() == pytest.approx(1.0, abs=0.3)


def test_dropout_keeps_the_type():
    assert Dropout(0.5)(torch.ones(16, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_headroom_lets_g_reach_beyond_the_data():
    torch.manual_seed(0)
    g, _ = build(DCGAN(width=0.25, headroom=0.1), (3, 16, 16))
    g[-2].weight.data.mul_(1_000)  # the last convolution: saturate the tanh
    largest = g(torch.randn(8, 100)).abs().max().item()
    assert largest == pytest.approx(1.1)


def test_a_head_with_one_output_can_choose_its_slope():
    d = build(SNGAN(width=0.125), (3, 32, 32), {"rotation": 4, "ldr": 1})[1]
    assert isinstance(d.heads["ldr"], nn.Linear) and not is_parametrized(d.heads["ldr"])
    assert is_parametrized(d.heads["rotation"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "shape"),
    [(MLP(), (2,)), (DCGAN(width=0.125), (3, 32, 32)), (SNGAN(width=0.0625), (3, 32, 32))],
    ids=["mlp", "dcgan", "sngan"],
)
def test_g_can_be_exported(config, shape):
    g = build(config, shape)[0].eval()
    z = torch.randn(2, config.latent)
    sizes = ({0: torch.export.Dim("batch")},)
    exported = torch.export.export(g, (z,), dynamic_shapes=sizes).module()
    other = torch.randn(5, config.latent)
    assert torch.equal(exported(other), g(other))
