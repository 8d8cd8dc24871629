import numpy as np
import pytest
import torch

from diagan import reconstruct
from diagan.config import DemoDigits
from diagan.data import load_dataset
from diagan.errors import UserError
from diagan.metrics import reconstruction_error
from diagan.reconstruct import BATCH, errors, rebuild, settle_on, train_autoencoder


def by_colour(dataset):
    """Red and green digits."""
    return dataset.values[dataset.groups == 0], dataset.values[dataset.groups == 1]


@pytest.fixture(scope="module")
def digits():
    return by_colour(load_dataset(DemoDigits(n=800, majority=0.7), seed=0))


@pytest.fixture(scope="module")
def trained(digits):
    """Knows red digits only."""
    net = train_autoencoder(digits[0][:512], seed=0, epochs=5, batch_size=32)
    settle_on(net, digits[0][:512], batch_size=32)
    return net


def test_what_was_never_seen_is_rebuilt_badly(digits, trained):
    red, green = digits[0][512:], digits[1]
    black = reconstruction_error(real=green, rebuilt=np.full(green.shape, -1.0)).mean()
    assert errors(trained, red).mean() < 0.6 * errors(trained, green).mean()
    assert errors(trained, red).mean() < 0.6 * black  # it learned to rebuild, not only red


def test_errors_are_those_of_what_is_rebuilt_whatever_the_batches(digits, trained):
    real = digits[0][: BATCH + 20]
    rebuilt = rebuild(trained, real)
    assert rebuilt.shape == real.shape and rebuilt.dtype == np.float32
    assert np.abs(rebuilt).max() <= 1
    found = errors(trained, real)
    assert found == pytest.approx(reconstruction_error(real=real, rebuilt=rebuilt))
    assert errors(trained, real[::-1])[::-1] == pytest.approx(found, abs=1e-6)
    assert errors(trained, real[:1]) == pytest.approx(found[:1], abs=1e-6)  # not batch statistics


@pytest.mark.slow
def test_bfloat16_gives_the_same_errors(digits, monkeypatch):
    found = []
    for precision in ("float32", "bfloat16"):
        monkeypatch.setattr(reconstruct, "best_precision", lambda device, p=precision: p)
        net = train_autoencoder(digits[0][:512], seed=0, epochs=3, batch_size=32)
        settle_on(net, digits[0][:512])
        assert {p.dtype for p in net.parameters()} == {torch.float32}
        found.append([errors(net, part[-100:]).mean() for part in digits])
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], rel=0.03)


@pytest.mark.slow
def test_settled_it_rebuilds_as_well_as_it_does_in_training(digits):
    """Statistics kept while training are of weights that it no longer has."""
    fake = digits[0][:512]
    net = train_autoencoder(fake, seed=0, epochs=5, batch_size=32)
    with torch.no_grad():
        batch = torch.from_numpy(fake[:256]) / 127.5 - 1
        in_training = reconstruction_error(real=fake[:256], rebuilt=net.train()(batch).numpy())
    before = errors(net, fake[:256]).mean()
    settle_on(net, fake, batch_size=256)
    after = errors(net, fake[:256]).mean()
    assert not net.training
    assert after == pytest.approx(in_training.mean(), rel=0.03)
    assert abs(before / in_training.mean() - 1) > 0.03


def test_a_network_left_in_train_mode_gives_the_same(digits, trained):
    expected = errors(trained, digits[1][:5])
    trained.train()
    assert errors(trained, digits[1][:5]).tolist() == expected.tolist()


def test_the_seed_decides(digits):
    fake = digits[0][:40]
    nets = [train_autoencoder(fake, seed=s, epochs=1, batch_size=16) for s in (3, 3, 4)]
    a, b, c = (rebuild(net, fake) for net in nets)
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize(("precision", "close"), [("float32", 1e-5), ("bfloat16", 1e-3)])
def test_settings_are_the_published_ones(digits, monkeypatch, precision, close):
    fitted = []
    monkeypatch.setattr(reconstruct, "best_precision", lambda device: precision)
    monkeypatch.setattr(reconstruct, "fit", lambda *a, **how: fitted.append((*a, how)))
    fake = digits[0][:16]
    train_autoencoder(fake, seed=0)
    net, adam, loss, n, how = fitted[0]
    assert type(adam) is torch.optim.Adam
    group = adam.param_groups[0]
    assert (group["lr"], group["eps"], group["weight_decay"]) == (1e-3, 1e-7, 5e-4)
    assert group["betas"] == (0.9, 0.999)
    assert len(group["params"]) == len(list(net.parameters()))
    assert (n, how["epochs"], how["batch_size"]) == (16, 50, 128)
    chosen = np.array([3, 5, 8])
    x = fake[chosen] / 127.5 - 1
    expected = np.mean((rebuild(net, fake[chosen]) - x) ** 2)
    assert loss(chosen).item() == pytest.approx(expected, rel=close)  # in eval mode, both


@pytest.mark.parametrize("shape", [(12, 1, 8, 8), (12, 3, 24, 40)])
def test_grey_tiny_and_oblong(shape):
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    net = train_autoencoder(images, seed=0, epochs=1)
    assert errors(net, images).shape == (12,)


def test_epochs_are_told(digits):
    told = []
    train_autoencoder(digits[0][:40], seed=0, epochs=2, on_epoch=lambda *a: told.append(a))
    assert [done for done, _ in told] == [1, 2]
    assert 0 < told[1][1] < told[0][1]


def test_other_images_than_it_was_trained_on_are_refused(trained):
    with pytest.raises(UserError, match=r"\(1, 16, 16\) for an autoencoder of \(3, 16, 16\)"):
        errors(trained, np.zeros((2, 1, 16, 16), np.uint8))
    with pytest.raises(UserError, match="no images"):  # an empty group
        errors(trained, np.zeros((0, 3, 16, 16), np.uint8))
