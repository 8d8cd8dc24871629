import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.theory import Information

few = settings(max_examples=25)
seeds = st.integers(0, 2**32 - 1)


def problem(seed: int, n: int = 40, n_features: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and features of a made-up D."""
    random = np.random.default_rng(seed)
    features = torch.from_numpy(random.normal(0.0, 2.0, (n, n_features)))
    return features @ torch.from_numpy(random.normal(0.0, 1.0, n_features)) + 0.3, features


def information(logits: torch.Tensor, features: torch.Tensor) -> Information:
    found = Information(features.shape[1])
    found.add(logits, features)
    return found


def close(mine: torch.Tensor, other: torch.Tensor, rtol: float = 1e-9) -> bool:
    return torch.allclose(mine, other, rtol=rtol, atol=0)


# --- Eq. 4 and 5 ---------------------------------------------------------------------------------


def test_by_hand():
    # Features 2 and 0, logits 0 and log 3: D (1 - D) is 1/4 and 3/16, phi (2, 1) and (0, 1).
    # S_n^{-1} = [[1, 0.5], [0.5, 0.25 + 0.1875]] + I / 2, of determinant 1.15625.
    found = information(torch.tensor([0.0, np.log(3.0)]), torch.tensor([[2.0], [0.0]]))
    inverse = np.array([[1.5, 0.5], [0.5, 0.9375]])
    assert np.allclose(found.matrix + torch.eye(2) / 2, inverse)
    ldrv = found.posterior(2.0).ldrv(torch.tensor([[2.0], [0.0]]))
    assert ldrv.tolist() == pytest.approx([3.25 / 1.15625, 1.5 / 1.15625])
    assert ldrv.dtype == torch.float64 and found.n == 2


def test_against_the_definition():
    logits, features = problem(1)
    phi = np.c_[features.numpy(), np.ones(len(features))]
    p = 1 / (1 + np.exp(-logits.numpy()))
    s_n = np.linalg.inv((phi.T * (p * (1 - p))) @ phi + np.eye(4) / 0.7)
    wanted = np.array([row @ s_n @ row for row in phi])
    assert np.allclose(information(logits, features).posterior(0.7).ldrv(features), wanted)


def test_against_the_posterior_itself():
    """A logistic regression on one feature: the variance of each logit by adding up over a grid."""
    random, s_0 = np.random.default_rng(0), 4.0
    x = np.r_[random.normal(1.0, 1.0, 300), random.normal(-0.5, 1.0, 300)]  # reals, fakes
    y = np.r_[np.ones(300), np.zeros(300)]
    axes = np.linspace(-1.0, 4.0, 201), np.linspace(-2.0, 2.0, 201)  # weight, bias
    weight, bias = (axis.ravel() for axis in np.meshgrid(*axes))
    log_p = -(weight**2 + bias**2) / (2 * s_0)
    for x_i, y_i in zip(x, y):
        log_p -= np.logaddexp(0, (1 - 2 * y_i) * (weight * x_i + bias))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    best = log_p.argmax()  # theta_MAP, to the grid's width
    logits = torch.from_numpy(weight[best] * x + bias[best])
    at = np.array([-3.0, 0.0, 0.5, 3.0])
    logit = weight[:, None] * at + bias[:, None]  # [theta, 4]
    variance = p @ logit**2 - (p @ logit) ** 2
    found = information(logits, torch.from_numpy(x)[:, None]).posterior(s_0)
    assert found.ldrv(torch.from_numpy(at)[:, None]).numpy() == pytest.approx(variance, rel=0.05)


def test_a_feature_that_few_samples_have_is_uncertain():
    """The paper's argument: minor features are hardly seen by S_n^{-1} (Eq. 6)."""
    features = torch.zeros(1000, 2)
    features[:990, 0], features[990:, 1] = 1.0, 1.0
    major, minor = information(torch.zeros(1000), features).posterior(1.0).ldrv(torch.eye(2))
    assert minor > 20 * major


def test_the_default_prior_is_that_of_a_fresh_layer():
    logits, features = problem(0, n_features=8)
    assert information(logits, features).posterior().s_0 == 1 / 24
    drawn = torch.nn.Linear(8, 4000).weight.var().item()
    assert drawn == pytest.approx(1 / 24, rel=0.05)


def test_a_sure_discriminator_still_tells_something():
    """D (1 - D) at a logit of 60 is e^-60, and not 0."""
    found = information(torch.tensor([60.0, -60.0]), torch.ones(2, 1))
    assert found.matrix[0, 0].item() == pytest.approx(2 * np.exp(-60), rel=1e-9)


# --- laws ----------------------------------------------------------------------------------------


@few
@given(seed=seeds, batch=st.integers(1, 45), s_0=st.floats(1e-3, 1e3))
def test_batches_and_order_change_nothing(seed, batch, s_0):
    logits, features = problem(seed)
    whole = information(logits, features).posterior(s_0).ldrv(features)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(logits)))
    parts = Information(3)
    for indices in order.split(batch):
        parts.add(logits[indices], features[indices])
    posterior = parts.posterior(s_0)
    one_by_one = torch.cat([posterior.ldrv(row[None]) for row in features])
    assert close(one_by_one, whole)


@few
@given(seed=seeds, more=st.integers(1, 20), s_0=st.floats(1e-3, 1e3))
def test_more_data_never_raise_the_variance(seed, more, s_0):
    logits, features = problem(seed, n=30 + more)
    some, all_ = information(logits[:30], features[:30]), information(logits, features)
    anywhere = problem(seed + 1)[1]
    before, after = (found.posterior(s_0).ldrv(anywhere) for found in (some, all_))
    assert bool((after <= before * (1 + 1e-9)).all()) and bool((after > 0).all())


@few
@given(seed=seeds, s_0=st.floats(1e-3, 1e3), factor=st.floats(1, 100))
def test_a_wider_prior_never_lowers_the_variance(seed, s_0, factor):
    logits, features = problem(seed)
    found = information(logits, features)
    narrow, wide = (found.posterior(s).ldrv(features) for s in (s_0, s_0 * factor))
    assert bool((narrow <= wide * (1 + 1e-9)).all())
    assert bool((wide <= narrow * factor * (1 + 1e-9)).all())


@few
@given(seed=seeds)
def test_the_limits_of_the_prior(seed):
    logits, features = problem(seed)
    found = information(logits, features)
    phi = torch.cat([features, torch.ones(len(features), 1)], 1)
    tight = found.posterior(1e-9).ldrv(features)  # all prior: s_0 |phi|^2
    assert close(tight, 1e-9 * phi.square().sum(1), rtol=1e-5)
    loose = found.posterior(1e9).ldrv(features)  # all data
    assert close(loose, (phi @ torch.linalg.inv(found.matrix) * phi).sum(1), rtol=1e-5)


@few
@given(seed=seeds, s_0=st.floats(1e-2, 1e2))
def test_turning_the_features_changes_nothing(seed, s_0):
    logits, features = problem(seed)
    turn = torch.linalg.qr(problem(seed + 1, n=3)[1])[0]
    straight = information(logits, features).posterior(s_0).ldrv(features)
    turned = information(logits, features @ turn).posterior(s_0).ldrv(features @ turn)
    assert close(turned, straight, rtol=1e-6)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("s_0", [0.0, -1.0, float("inf"), float("nan")])
def test_a_prior_that_is_none(s_0):
    with pytest.raises(UserError, match=r"s_0 .*: expected a positive number"):
        information(*problem(0)).posterior(s_0)


def test_what_has_diverged():
    logits, features = problem(0)
    for bad in (float("nan"), float("inf")):
        with pytest.raises(UserError, match=r"infinite logits: it has diverged"):
            information(logits.index_fill(0, torch.tensor([3]), bad), features)
        with pytest.raises(UserError, match=r"infinite features: it has diverged"):
            information(logits, features.index_fill(0, torch.tensor([3]), bad))


def test_shapes_that_do_not_fit():
    logits, features = problem(0)
    found = information(logits, features)
    with pytest.raises(UserError, match=r"features have shape \(40, 2\), expected \[B, 3\]"):
        found.posterior(1.0).ldrv(features[:, :2])
    with pytest.raises(UserError, match=r"logits have shape \(39,\) beside features of 40"):
        found.add(logits[1:], features)


def test_features_that_repeat_each_other():
    """A feature that is always 1 is the bias once more: without a prior S_n^{-1} is singular."""
    found = information(torch.zeros(16), torch.ones(16, 1))
    assert found.matrix.tolist() == [[4, 4], [4, 4]]
    with pytest.raises(UserError, match="give a smaller s_0"):
        found.posterior(1e300)
    assert found.posterior(1.0).ldrv(torch.ones(1, 1)).item() == pytest.approx(2 / 9)
