import numpy as np
import pytest
import torch
from torch import nn

from diagan.errors import UserError
from diagan.fitting import check_images, fit, initialised


def run(n=10, epochs=3, batch_size=4, seed=0):
    """Indices seen by each step, and the weights learned with dropout on."""
    net = initialised(lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout()), seed)
    x, seen, told = torch.arange(3.0 * n).reshape(n, 3) / n, [], []

    def loss(indices):
        assert net.training
        seen.append(indices)
        return net(x[indices]).square().mean()

    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    fit(net, sgd, loss, n, epochs=epochs, batch_size=batch_size, seed=seed,
        on_epoch=lambda done, value: told.append((done, value)))  # fmt: skip
    assert not net.training
    return seen, told, net[0].weight.detach()


def test_batches_are_whole_and_every_sample_comes_once_a_pass():
    seen, told, _ = run(n=10, epochs=3, batch_size=4)
    assert [len(s) for s in seen] == [4] * 9  # ceil(10 / 4) an epoch
    draws = np.concatenate(seen)
    for start in (0, 10, 20):
        assert sorted(draws[start : start + 10]) == list(range(10))
    assert draws[:10].tolist() != draws[10:20].tolist()
    assert [done for done, _ in told] == [1, 2, 3]
    assert told[-1][1] < told[0][1]


def test_a_small_set_is_one_batch():
    seen, _, _ = run(n=3, epochs=2, batch_size=128)
    assert [sorted(s) for s in seen] == [[0, 1, 2]] * 2


def test_the_seed_says_it_all_and_global_randomness_is_left_alone():
    first = run(seed=1)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    again, other = run(seed=1), run(seed=2)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first[2], again[2])
    assert not torch.equal(first[2], other[2])


@pytest.mark.parametrize(("n", "epochs"), [(1, 3), (5, 0)])
def test_too_little_is_refused(n, epochs):
    with pytest.raises(UserError, match="at least 2, and 1 epoch"):
        run(n=n, epochs=epochs)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 3, 8, 8), np.float32), "float32"),
        (np.zeros((2, 8, 8, 3), np.uint8), r"\(2, 8, 8, 3\)"),  # channels last
        (np.zeros((2, 8, 8), np.uint8), "1 or 3 channels"),
        (np.zeros((0, 3, 8, 8), np.uint8), "no images"),
    ],
)
def test_what_is_no_image_is_refused(images, message):
    with pytest.raises(UserError, match=message):
        check_images(images)
