from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny import DIGITS, data_of, same
from torch import nn

from diagan import observers
from diagan.config import SNGAN, DemoDigits
from diagan.engine import launch
from diagan.errors import UserError
from diagan.networks import build, count_parameters
from diagan.networks.sngan import Block, FirstBlock, UpBlock
from diagan.record import score_all
from diagan.stages import Stage, new_game
from diagan.train import train

SLIM = SNGAN(width=0.125, latent=8)


def slim(size=32, heads=None, seed=0):
    torch.manual_seed(seed)
    return build(SLIM, (3, size, size), heads)


def normed_layers(net):
    """Every layer under spectral norm, with its power iteration's state."""
    return [m for m in net.modules() if hasattr(m, "parametrizations")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "n_g", "n_d", "n_heads"),
    [(32, 4_276_739, 1_053_825, 516), (64, 12_220_675, 10_141_441, 4_100)],
)
def test_parameters_are_those_of_the_paper(size, n_g, n_d, n_heads):
    with torch.device("meta"):
        g, d = build(SNGAN(), (3, size, size))
        ss = build(SNGAN(), (3, size, size), {"rotation": 4})[1]
    assert (count_parameters(g), count_parameters(d)) == (n_g, n_d)  # FACTS 1.8
    assert count_parameters(ss) - n_d == n_heads


@pytest.mark.parametrize("size", [32, 64])
@pytest.mark.parametrize("channels", [1, 3])
def test_shapes(size, channels):
    g, d = build(SLIM, (channels, size, size), {"rotation": 4})
    images = g(torch.randn(3, 8))
    assert images.shape == (3, channels, size, size) and images.abs().max() <= 1
    scores = d(images)
    assert scores.logits.shape == (3,)
    assert scores.features.shape == (3, 16 if size == 32 else 128)
    assert scores.heads["rotation"].shape == (3, 4)


def test_features_are_sums_over_what_is_left_of_the_image():
    for size, side in ((32, 8), (64, 2)):
        _, d = slim(size)
        maps = d.eval().trunk[:-1](torch.randn(2, 3, size, size))
        assert maps.shape[2:] == (side, side) and maps.min() >= 0
        features = d.trunk[-1](maps)
        assert torch.allclose(features, maps.flatten(2).mean(2) * side**2, rtol=1e-5)


@pytest.mark.parametrize("shape", [(2,), (3, 16, 16), (3, 128, 128), (3, 64, 32)])
def test_other_samples_are_refused(shape):
    with pytest.raises(UserError, match=r"32x32 or 64x64.*--data\.size"):
        build(SLIM, shape)


# --- blocks --------------------------------------------------------------------------------------


def test_an_up_block_interpolates_before_both_ways():
    """FACTS 1.8 to the letter, which the block reorders."""
    torch.manual_seed(0)
    block, x = UpBlock(6, 4), torch.randn(3, 6, 5, 5)

    def double(x):
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)

    h = block.conv1(double(F.relu(F.batch_norm(x, None, None, training=True))))
    h = block.conv2(F.relu(F.batch_norm(h, None, None, training=True)))
    assert torch.allclose(block(x), h + block.shortcut(double(x)), atol=1e-5)


@pytest.mark.parametrize(("n_out", "halves"), [(6, False), (6, True), (8, True), (8, False)])
def test_the_shortcut_of_a_block_sees_the_relu_too(n_out, halves):
    torch.manual_seed(0)
    block, x = Block(6, n_out, halves).eval(), torch.randn(3, 6, 8, 8)
    h = block.conv2(F.relu(block.conv1(F.relu(x))))
    short = block.shortcut(F.relu(x))  # FACTS 0.10, also where it is an identity
    expected = F.avg_pool2d(h, 2) + F.avg_pool2d(short, 2) if halves else h + short
    assert torch.allclose(block(x), expected, atol=1e-5)
    assert isinstance(block.shortcut, nn.Identity) == (n_out == 6 and not halves)
    assert block.conv1.out_channels == 6  # the hidden width


def test_the_first_block_sees_the_image_itself():
    torch.manual_seed(0)
    block, x = FirstBlock(3, 4).eval(), torch.randn(2, 3, 8, 8)
    expected = F.avg_pool2d(block.conv2(F.relu(block.conv1(x))), 2)
    expected = expected + block.shortcut(F.avg_pool2d(x, 2))
    assert torch.allclose(block(x), expected, atol=1e-6)
    inverted = block(-x)  # a ReLU in front would lose one of the two
    assert not torch.allclose(inverted, block(torch.relu(-x)), atol=1e-3)


def test_initialisation():
    """Xavier-uniform: |w| up to gain x sqrt(6 / (fan_in + fan_out)); biases as PyTorch draws."""
    torch.manual_seed(0)
    g, d = build(SNGAN(width=0.5), (3, 32, 32))
    block = d.trunk[1]

    def largest(layer):
        weight = getattr(layer, "parametrizations", None)
        return (weight.weight.original if weight else layer.weight).abs().max().item()

    bound3, bound1 = (6 / (9 * 128)) ** 0.5, (6 / 128) ** 0.5
    assert largest(block.conv1) == pytest.approx(2**0.5 * bound3, rel=0.01)
    assert largest(block.conv2) == pytest.approx(2**0.5 * bound3, rel=0.01)
    assert largest(block.shortcut) == pytest.approx(bound1, rel=0.01)
    assert largest(d.logit) == pytest.approx((6 / 65) ** 0.5, rel=0.1)
    assert largest(g[0]) == pytest.approx((6 / (128 + 2048)) ** 0.5, rel=0.01)
    assert largest(g[-2]) == pytest.approx((6 / (9 * 131)) ** 0.5, rel=0.01)
    assert 0 < block.conv1.bias.abs().max() <= (1 / (9 * 64)) ** 0.5


# --- spectral norm -------------------------------------------------------------------------------


def test_every_layer_of_d_and_none_of_g_is_normed():
    g, d = slim(heads={"rotation": 4})
    layers = [m for m in d.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert normed_layers(d) == layers and len(layers) == 3 + 3 + 2 + 2 + 2
    assert normed_layers(g) == []


@pytest.mark.slow
def test_spectral_norm_is_the_largest_singular_value():
    _, d = slim(heads={"rotation": 4})
    x = torch.randn(2, 3, 32, 32)
    for _ in range(300):
        d(x)
    for layer in normed_layers(d.eval()):
        largest = torch.linalg.svdvals(layer.parametrizations.weight.original.flatten(1))[0]
        expected = layer.parametrizations.weight.original / largest
        assert torch.allclose(layer.weight, expected, rtol=0.01)


def test_one_power_iteration_a_forward_in_train_mode_and_none_in_eval_mode():
    _, d = slim()
    x = torch.randn(2, 3, 32, 32)
    layer = d.trunk[1].conv1
    norm, matrix = layer.parametrizations.weight[0], layer.parametrizations.weight.original
    u = F.normalize(matrix.flatten(1) @ norm._v, dim=0)
    v = F.normalize(matrix.flatten(1).T @ u, dim=0)
    assert not torch.allclose(v, norm._v, atol=1e-6)
    d(x)
    assert torch.allclose(norm._u, u, atol=1e-6) and torch.allclose(norm._v, v, atol=1e-6)
    before = {name: value.clone() for name, value in d.state_dict().items()}
    first = d.eval()(x).logits
    assert torch.equal(first, d(x).logits) and same(before, d.state_dict())


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_recording_leaves_the_power_iteration_as_it_was(mode):
    (_, d), values = slim(), torch.randn(6, 3, 32, 32)
    before = {name: value.clone() for name, value in d.state_dict().items()}
    state = torch.get_rng_state()
    logits = score_all(d, values, lambda x: x, mode=mode, batch_size=4)
    assert logits.std() > 0
    assert same(before, d.state_dict()) and torch.equal(state, torch.get_rng_state())
    assert d.training


def test_in_eval_mode_a_logit_depends_on_its_image_alone():
    _, d = slim()
    x = torch.randn(4, 3, 32, 32)
    alone = torch.cat([d.eval()(image[None]).logits for image in x])
    assert torch.allclose(d(x).logits, alone, atol=1e-5)


def test_heads_leave_the_logit_as_it_was():
    plain, ss = slim()[1].state_dict(), slim(heads={"rotation": 4})[1].state_dict()
    assert all(torch.equal(value, ss[name]) for name, value in plain.items())
    assert len(ss) > len(plain)


# --- in training ---------------------------------------------------------------------------------


def test_under_autocast_the_trunk_is_bfloat16_and_the_end_float32():
    _, d = slim(heads={"rotation": 4})
    seen, x = [], torch.randn(2, 3, 32, 32)
    d.trunk[1].register_forward_hook(lambda *args: seen.append(args[2].dtype))
    exact = d.eval()(x)
    with torch.autocast("cpu", torch.bfloat16):
        scores = d(x)
    assert seen == [torch.float32, torch.bfloat16]
    assert scores.logits.dtype == scores.heads["rotation"].dtype == torch.float32
    assert torch.allclose(scores.logits, exact.logits, atol=0.05)
    expected = F.linear(scores.features, d.logit.weight, d.logit.bias).squeeze(1)
    assert torch.allclose(scores.logits, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_trains_and_every_parameter_learns(precision):
    config = replace(
        DIGITS, data=DemoDigits(n=48, size=32), network=SLIM, precision=precision, n_dis=2
    )
    game = new_game(config, data_of(config), launch(config), Stage("phase1", 0, 2))
    before = [p.detach().clone() for player in game.players for p in player.net.parameters()]
    assert train(game, until=2)
    after = [p for player in game.players for p in player.net.parameters()]
    assert not any(torch.equal(old, new) for old, new in zip(before, after))


@pytest.mark.slow
def test_it_resumes_to_the_same_bits(tmp_path):
    """With its power iterations, of which the checkpoint must hold all."""
    config = replace(DIGITS, data=DemoDigits(n=48, size=32), network=SLIM)
    data, weighted = data_of(config), Stage("weighted", 0, 4, weighted=True)
    whole, first, second = (
        new_game(config, data, launch(config), weighted, np.ones(data.n)) for _ in range(3)
    )
    assert train(whole, until=4) and train(first, until=2)
    observers.save_game(tmp_path, "weighted", first)
    second.step = 2
    observers.load_game(tmp_path / "weighted-000002", second)
    assert train(second, until=4)
    for mine, other in zip(whole.players, second.players):
        assert same(mine.net.state_dict(), other.net.state_dict())
