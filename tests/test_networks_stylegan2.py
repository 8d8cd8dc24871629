from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import DIGITS, data_of, same
from torch import nn

from diagan import config as configs
from diagan import observers
from diagan.config import DemoDigits, Optim, StyleGAN2
from diagan.engine import launch
from diagan.errors import UserError
from diagan.networks import N_REFERENCES, build, count_parameters
from diagan.networks.stylegan2 import (
    Blur,
    DownBlock,
    EqualConv,
    EqualLinear,
    ModulatedConv,
    Upsample,
    activate,
    deviation,
    noise_of,
    sides,
    width,
)
from diagan.record import score_all
from diagan.stages import Stage, new_game, references
from diagan.train import train

SLIM = StyleGAN2(width=1 / 16, latent=16)
CONFIG = replace(DIGITS, data=DemoDigits(n=48, size=32), network=SLIM)


def slim(heads=None, seed=0, network=SLIM, size=32):
    torch.manual_seed(seed)
    return build(network, (3, size, size), heads)


def louder(g):
    """Noise has no strength at first."""
    for name, parameter in g.named_parameters():
        if name.endswith("strength"):
            parameter.data.fill_(0.5)
    return g


# --- what it is ----------------------------------------------------------------------------------


def test_parameters_are_those_of_the_published_network():
    with torch.device("meta"):
        g, d = build(StyleGAN2(), (3, 256, 256))
        headed = build(StyleGAN2(), (3, 256, 256), {"rotation": 4})[1]
    assert (count_parameters(g), count_parameters(d)) == (30_034_338, 28_864_129)  # FACTS 10
    assert count_parameters(headed) - count_parameters(d) == 4 * 512 + 4


def test_widths():
    found = [width(StyleGAN2(), side) for side in sides(1024)]
    assert found == [512, 512, 512, 512, 512, 256, 128, 64, 32]
    assert width(StyleGAN2(width=0.25), 256) == 32


@pytest.mark.parametrize(("channels", "size"), [(3, 32), (1, 32), (3, 64), (3, 128)])
def test_shapes(channels, size):
    g, d = build(SLIM, (channels, size, size), {"rotation": 4})
    images = g(torch.randn(4, 16))
    assert images.shape == (4, channels, size, size)
    scores = d(images)
    assert scores.logits.shape == (4,) and scores.features.shape == (4, 32)
    assert scores.heads["rotation"].shape == (4, 4)


@pytest.mark.parametrize("size", [256, 512, 1024])
def test_every_side_can_be_built(size):
    g, d = build(SLIM, (3, size, size))
    with torch.no_grad():
        images = g(torch.randn(1, 16))
        assert images.shape == (1, 3, size, size) and d(images).logits.isfinite().all()
    assert g.n_layers == 2 * size.bit_length() - 4


@pytest.mark.parametrize("shape", [(2,), (3, 16, 16), (3, 48, 48), (3, 2048, 2048), (3, 64, 32)])
def test_other_samples_are_refused(shape):
    with pytest.raises(UserError, match=r"power-of-two side from 32 to 1024.*--data\.size"):
        build(SLIM, shape)


def test_a_config_that_does_not_fit_is_refused_before_the_data_are_read():
    small = replace(CONFIG, data=DemoDigits(n=48, size=16))
    with pytest.raises(UserError, match=r"--data\.size 16: .*stylegan2"):
        configs.check(small)
    with pytest.raises(UserError, match=r"--network\.mixing 1\.5"):
        configs.check(replace(CONFIG, network=replace(SLIM, mixing=1.5)))
    assert configs.from_json(configs.to_json(CONFIG)) == CONFIG


# --- layers --------------------------------------------------------------------------------------


def test_equalised_layers_start_at_unit_variance_and_keep_it():
    torch.manual_seed(0)
    linear, conv = EqualLinear(300, 200, rate=0.01), EqualConv(40, 50, 3)
    assert linear.weight.std().item() == pytest.approx(100, rel=0.02)
    assert conv.weight.std().item() == pytest.approx(1, rel=0.02)
    assert linear(torch.randn(500, 300)).std().item() == pytest.approx(1, rel=0.02)
    assert conv(torch.randn(8, 40, 20, 20)).std().item() == pytest.approx(1, rel=0.03)


def test_a_step_of_adam_moves_a_layer_by_its_own_rate():
    """Adam moves each stored weight by lr; what the layer then uses moves by lr x gain."""
    layer = EqualLinear(4, 1, rate=0.01)
    x = torch.tensor([[1.0, 0, 0, 0]])
    before = layer(x).item()
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    layer(x).sum().backward()
    optimiser.step()
    moved = 0.1 * 0.01 / 4**0.5 + 0.1 * 0.01  # weight and bias
    assert before - layer(x).item() == pytest.approx(moved, rel=1e-3)


def test_activation_keeps_the_second_moment_of_its_positive_part():
    x = torch.tensor([-1.0, 2.0])
    assert torch.allclose(activate(x), torch.tensor([-0.2, 2.0]) * 2**0.5)


def filtered(x, up=1, down=1, pad=(0, 0), gain=1.0):
    """The definition, by loops over the output: zeros between, zeros around, filter, every nth."""
    line = np.array([1, 3, 3, 1]) / 8
    kernel = np.outer(line, line) * gain
    spread = np.zeros((x.shape[0] * up, x.shape[1] * up))
    spread[::up, ::up] = x
    spread = np.pad(spread, pad)
    n = np.array(spread.shape) - 3
    out = [[(spread[i : i + 4, j : j + 4] * kernel).sum() for j in range(n[1])]
           for i in range(n[0])]  # fmt: skip
    return np.array(out)[::down, ::down]


@settings(max_examples=10)
@given(h=st.integers(2, 7), w=st.integers(2, 7), seed=st.integers(0, 99))
def test_blur_and_upsampling_are_the_direct_filter(h, w, seed):
    x = torch.randn(2, 3, h, w, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    cases = [
        (Blur(padding=2), {"pad": (2, 2)}),
        (Blur(padding=1, stride=2), {"pad": (1, 1), "down": 2}),
        (Blur(padding=1, gain=4.0), {"pad": (1, 1), "gain": 4}),
        (Upsample(), {"pad": (2, 1), "up": 2, "gain": 4}),
    ]
    for layer, how in cases:
        found = layer(x)
        for image, its in zip(x.flatten(0, 1), found.flatten(0, 1)):
            np.testing.assert_allclose(its.numpy(), filtered(image.numpy(), **how), atol=1e-12)


def test_upsampling_and_blur_keep_a_flat_image():
    flat = torch.ones(1, 2, 8, 8)
    assert torch.allclose(Upsample()(flat)[..., 1:-1, 1:-1], torch.ones(()))
    assert torch.allclose(Blur(padding=1, stride=2)(flat)[..., 1:-1, 1:-1], torch.ones(()))
    assert list(Blur(padding=1).state_dict()) == []  # a constant, not a weight


@pytest.mark.parametrize(("kernel", "up"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("demodulate", [True, False])
def test_modulated_convolution_is_a_convolution_of_each_image_with_its_own_weights(
    kernel, up, demodulate
):
    torch.manual_seed(0)
    layer = ModulatedConv(5, 4, kernel, 6, demodulate, up).double()
    x, w = torch.randn(3, 5, 8, 8).double(), torch.randn(3, 6).double()
    own = layer.weight / (5 * kernel**2) ** 0.5 * layer.style(w)[:, None, :, None, None]
    if demodulate:
        own = own / (own.square().sum(dim=(2, 3, 4), keepdim=True) + 1e-8).sqrt()
    for image, weight, found in zip(x, own, layer(x, w)):
        if up:
            spread = F.conv_transpose2d(image[None], weight.transpose(0, 1), stride=2)[0]
            maps = [filtered(m.detach().numpy(), pad=(1, 1), gain=4) for m in spread]
            expected = torch.tensor(np.array(maps))
        else:
            expected = F.conv2d(image[None], weight, padding=kernel // 2)[0]
        assert torch.allclose(found, expected, atol=1e-10)


def test_styles_begin_near_one():
    torch.manual_seed(0)
    scales = ModulatedConv(400, 4, 3, 300).style(torch.randn(50, 300))
    assert scales.mean().item() == pytest.approx(1, abs=0.05)
    assert scales.std().item() == pytest.approx(1, abs=0.05)


def test_a_down_block_by_its_definition():
    torch.manual_seed(0)
    block, x = DownBlock(4, 6).double(), torch.randn(2, 4, 8, 8).double()

    def blurred(x, pad):
        maps = [filtered(m.detach().numpy(), pad=(pad, pad)) for m in x.flatten(0, 1)]
        return torch.tensor(np.array(maps)).unflatten(0, x.shape[:2])

    h = activate(block.conv1(x))
    weight = block.conv2.weight / 36**0.5
    h = activate(F.conv2d(blurred(h, 2), weight, block.conv2.bias, stride=2))
    # The shortcut as published: blur at full side, then a 1x1 convolution of every second pixel.
    short = F.conv2d(blurred(x, 1), block.shortcut.weight / 2, stride=2)
    assert torch.allclose(block(x), (h + short) / 2**0.5, atol=1e-10)


# --- the generator -------------------------------------------------------------------------------


def test_the_mapping_ignores_the_length_of_a_latent():
    g, _ = slim()
    z = torch.randn(3, 16)
    assert torch.allclose(g.style(z), g.style(5 * z), atol=1e-5)
    w = z / z.square().mean(1, keepdim=True).sqrt()
    for layer in g.mapping:
        weight, bias = layer.weight * 0.01 / 4, layer.bias * 0.01
        w = F.leaky_relu(w @ weight.T + bias, 0.2) * 2**0.5
    assert len(g.mapping) == 8 and torch.allclose(g.style(z), w, atol=1e-5)


def test_each_layer_has_its_style():
    """An image shares its style with the next block's first convolution."""
    g, _ = slim()
    styles, seen = torch.randn(1, g.n_layers, 16), []
    for layer in (m for m in g.modules() if isinstance(m, ModulatedConv)):
        layer.register_forward_hook(lambda _, args, out: seen.append(args[1]))
    g.synthesise(styles)
    order = [int((styles[0] == w).all(dim=1).nonzero()) for w in seen]
    assert order == [0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7]


def test_mixing_takes_later_layers_from_a_second_latent():
    g, _ = slim(network=replace(SLIM, mixing=1.0))
    z, places = torch.randn(3, 16), set()
    for seed in range(40):
        torch.manual_seed(seed)
        styles = g.styles(z)
        own = (styles == g.style(z)[:, None]).all(dim=2)  # [B, L]
        assert torch.equal(own, own[:1].expand_as(own))  # one place for the batch
        at = int(own[0].sum())
        assert own[0, :at].all() and not own[0, at:].any()
        assert (styles[:, at:] == styles[:, at:][:, :1]).all()
        places.add(at)
    assert places == set(range(1, 8))


def test_mixing_happens_as_often_as_is_said_and_only_in_training():
    g, _ = slim(network=replace(SLIM, mixing=0.3))
    z = torch.randn(1, 16)
    mixed = [not torch.equal(*g.styles(z)[0, [0, -1]]) for _ in range(400)]
    assert np.mean(mixed) == pytest.approx(0.3, abs=0.08)
    g.eval()
    assert all(torch.equal(*g.styles(z)[0, [0, -1]]) for _ in range(40))


def test_noise_has_no_strength_at_first():
    g, _ = slim(network=replace(SLIM, mixing=0.0))
    z = torch.randn(2, 16)
    assert torch.equal(g(z), g(z))
    assert not torch.allclose(louder(g)(z), g(z), atol=1e-2)


def test_in_training_noise_follows_the_global_seed():
    g, _ = slim()
    louder(g)
    z, found = torch.randn(2, 16), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(g(z))
    assert torch.equal(found[0], found[1]) and not torch.allclose(found[0], found[2], atol=1e-2)


def test_in_eval_mode_an_image_is_a_function_of_its_latent():
    """Sampling by a seed gives the same images whatever was drawn before and batch by batch."""
    g = louder(slim()[0]).eval()
    z = torch.randn(4, 16)
    state = torch.get_rng_state()
    images = g(z)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.allclose(torch.cat([g(one[None]) for one in z]), images, atol=1e-5)
    # There is noise, and each image and each layer has its own.
    for parameter in (p for name, p in g.named_parameters() if name.endswith("strength")):
        parameter.data.zero_()
    assert (g(z) - images).flatten(1).std(dim=1).min() > 1e-2
    same_w = g.style(z[:1]).expand(2, -1)[:, None].repeat(1, g.n_layers, 1)
    louder(g)
    one, other = g.synthesise(same_w, noise_of(z[:2]))
    assert not torch.allclose(one, other, atol=1e-2)


# --- the discriminator ---------------------------------------------------------------------------


def test_deviation_by_hand():
    groups = torch.zeros(4, 2, 1, 1, 2)
    groups[:, 1, 0, 0, 0] = torch.tensor([1.0, 3.0, 1.0, 3.0])  # sd 1; the other pixel 0
    assert torch.allclose(deviation(groups), torch.tensor([1e-4, 0.5 + 0.5e-4]), atol=1e-6)


def test_groups_of_four_lie_strided_in_the_batch():
    """Images 0, 2, 4, 6 of eight are mates, and 1, 3, 5, 7."""
    _, d = slim()
    x = torch.randn(8, 3, 32, 32)
    changed = x.clone()
    changed[4] *= 3
    differs = (d(x).logits - d(changed).logits).abs() > 1e-6
    assert differs.tolist() == [True, False] * 4


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_any_batch_can_be_scored(n):
    _, d = slim()
    assert d(torch.randn(n, 3, 32, 32)).logits.isfinite().all()


def test_a_recorded_logit_does_not_change_with_the_other_images_of_its_batch():
    _, d = slim()
    images = torch.randn(12, 3, 32, 32) * torch.linspace(0.1, 4, 12).view(-1, 1, 1, 1)
    d.set_references(torch.randn(N_REFERENCES, 3, 32, 32))

    def recorded(which, batch_size):
        return score_all(d, images[which], lambda x: x, batch_size=batch_size)

    whole = recorded(torch.arange(12), 12)
    for batch_size in (1, 4, 5):
        assert torch.allclose(recorded(torch.arange(12), batch_size), whole, atol=1e-5)
    order = torch.randperm(12)
    assert torch.allclose(recorded(order, 4), whole[order], atol=1e-5)
    # In train mode it does: the test above could not fail on a D without batch statistics.
    in_training = score_all(d, images, lambda x: x, mode="train", batch_size=4, step=1)
    again = score_all(d, images, lambda x: x, mode="train", batch_size=4, step=2)
    assert (in_training - again).abs().max() > 0.01


def test_in_eval_mode_an_image_is_scored_in_a_group_with_the_references():
    """The same as a train-mode batch of just these four."""
    _, d = slim()
    mates, x = torch.randn(N_REFERENCES, 3, 32, 32), torch.randn(2, 3, 32, 32)
    d.set_references(mates)
    expected = [d.train()(torch.cat([image[None], mates])).logits[0] for image in x]
    found = d.eval()(x).logits
    assert torch.allclose(found, torch.stack(expected), atol=1e-5)
    d.set_references(3 * mates)
    assert not torch.allclose(d(x).logits, found, atol=1e-4)


def test_references_come_from_all_over_the_data_and_are_saved():
    data = data_of(CONFIG)
    weighted = Stage("weighted", 0, 2, weighted=True)
    game = new_game(CONFIG, data, launch(CONFIG), weighted, np.ones(data.n))
    expected = torch.from_numpy(data.values[[0, 16, 32]]).float() / 127.5 - 1
    assert [player.name for player in game.players] == ["G", "D", "critic"]
    for player in game.players[1:]:
        assert torch.allclose(player.net.state_dict()["trunk.references"], expected, atol=1e-6)
    packed = build(SLIM, (3, 32, 32), {}, 2)[1]
    packed.set_references(references(data, 2))
    assert packed.eval()(torch.randn(2, 6, 32, 32)).logits.shape == (2,)


def test_heads_leave_the_logit_as_it_was():
    plain, other = slim()[1].state_dict(), slim(heads={"rotation": 4})[1].state_dict()
    assert all(torch.equal(value, other[name]) for name, value in plain.items())


# --- in training ---------------------------------------------------------------------------------


def test_under_autocast_features_are_bfloat16_and_images_and_logits_float32():
    g, d = slim(heads={"rotation": 4})
    louder(g).eval()
    d.eval()
    seen, z = [], torch.randn(2, 16)
    for layer in (g.blocks[0].conv2, d.trunk.blocks[0]):
        layer.register_forward_hook(lambda *args: seen.append(args[2].dtype))
    exact = g(z)
    exact_scores = d(exact)
    with torch.autocast("cpu", torch.bfloat16):
        images = g(z)
        scores = d(exact)
    assert seen == [torch.float32] * 2 + [torch.bfloat16] * 2
    assert images.dtype == scores.logits.dtype == scores.heads["rotation"].dtype == torch.float32
    assert (images - exact).abs().max() < 0.1 * exact.std()
    assert torch.allclose(scores.logits, exact_scores.logits, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_trains_and_every_parameter_learns(precision):
    config = replace(CONFIG, precision=precision)
    game = new_game(config, data_of(config), launch(config), Stage("phase1", 0, 3))
    before = [p.detach().clone() for player in game.players for p in player.net.parameters()]
    assert train(game, until=3)
    names = [f"{p.name}.{n}" for p in game.players for n, _ in p.net.named_parameters()]
    after = [p for player in game.players for p in player.net.parameters()]
    assert [n for n, old, new in zip(names, before, after) if torch.equal(old, new)] == []


def test_second_derivatives_through_both_networks():
    """R1 differentiates D's gradient once more, path length G's with respect to the styles."""
    g, d = slim(network=StyleGAN2(width=1 / 64, latent=4))
    g, d = louder(g).double(), d.double().train()
    torch.manual_seed(0)
    styles = g.styles(torch.randn(2, 4).double()).detach().requires_grad_()
    noise = {side: torch.randn(2, 1, side, side).double() for side in sides(32)}
    images = g.synthesise(styles, noise.__getitem__)
    (slope,) = torch.autograd.grad(images.square().sum(), styles, create_graph=True)
    slope.square().sum().backward()
    assert all(p.grad is not None for n, p in g.named_parameters() if "mapping" not in n)

    weight = d.trunk.conv.weight

    def penalty():
        x = images.detach().requires_grad_()
        (slope,) = torch.autograd.grad(d.trunk(x).sum(), x, create_graph=True)
        return slope.square().sum()

    (found,) = torch.autograd.grad(penalty(), weight)
    direction = torch.randn_like(weight)
    values = []
    for step in (1e-6, -1e-6):
        weight.data.add_(step * direction)
        values.append(penalty().item())
        weight.data.sub_(step * direction)
    assert (values[0] - values[1]) / 2e-6 == pytest.approx(
        (found * direction).sum().item(), rel=1e-4
    )


def test_d_has_its_own_adam():
    optim = Optim(0.0016, (0.0, 0.992), "linear", d_lr=0.001882, d_betas=(0.0, 0.9906))  # FACTS 6
    config = replace(CONFIG, optim=optim)
    data = data_of(config)
    weighted = Stage("weighted", 6, 12, weighted=True)
    game = new_game(config, data, launch(config), weighted, np.ones(data.n))
    assert train(game, until=7)
    groups = {p.name: p.optimiser.param_groups[0] for p in game.players}
    assert groups["G"]["betas"] == (0.0, 0.992)
    assert groups["G"]["lr"] == pytest.approx(0.0016 / 2)
    for name in ("D", "critic"):
        assert groups[name]["betas"] == (0.0, 0.9906)
        assert groups[name]["lr"] == pytest.approx(0.001882 / 2)
    assert configs.from_json(configs.to_json(config)) == config
    for flag, bad in (
        ("d-lr", replace(optim, d_lr=0.0)),
        ("d-betas", replace(optim, d_betas=(0, 1))),
    ):
        with pytest.raises(UserError, match=f"--optim.{flag}"):
            configs.check(replace(config, optim=bad))


def test_recording_leaves_no_trace():
    _, d = slim()
    d.set_references(torch.randn(N_REFERENCES, 3, 32, 32))
    values = torch.randn(6, 3, 32, 32)
    before = {name: value.clone() for name, value in d.state_dict().items()}
    score_all(d, values, lambda x: x, batch_size=4)
    assert same(before, d.state_dict()) and d.training and isinstance(d, nn.Module)


@pytest.mark.slow
def test_it_resumes_to_the_same_bits(tmp_path):
    """With its noise, mixed styles and references, of which the checkpoint must hold all."""
    config = CONFIG
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
