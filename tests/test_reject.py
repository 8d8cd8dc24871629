import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.reject import (
    RejectionSampler,
    acceptance_probability,
    budget_acceptance,
    budget_level,
    rejection_logit,
)

few = settings(max_examples=50)
ldrs = st.lists(st.floats(-60, 60), min_size=1, max_size=30)

# Generator N(0, 1.5^2), target N(0, 1), exact log-density ratio: log 1.5 - x^2 (1 - 1 / 2.25) / 2,
# at most log 1.5, at x = 0.
SD = 1.5


def gaussian(n, source):
    return SD * torch.randn(n, 1, generator=source, dtype=torch.float64)


def exact_ldr(x):
    return math.log(SD) - x**2 * (1 - SD**-2) / 2


def sampler(**kwargs):
    return RejectionSampler(gaussian, exact_ldr, **{"burn_in": 2560, **kwargs})


def test_what_generate_must_be_is_said_at_once():
    """README's obvious guess is a function of n alone."""
    with pytest.raises(UserError, match=r"called as generate\(n, generator\)"):
        RejectionSampler(lambda n: torch.randn(n, 2), exact_ldr)
    RejectionSampler(lambda n, random=None: torch.randn(n, 2, generator=random), exact_ldr)
    arrays = RejectionSampler(lambda n, source: np.zeros((n, 2)), exact_ldr)
    with pytest.raises(UserError, match="returned a ndarray; expected a tensor"):
        arrays.sample(1)


# --- the acceptance function ---------------------------------------------------------------------


def test_logit_and_probability_by_hand():
    # ldr = M - log 2, so e^a = 1/2: F = log(1/2) - log(1 - 1/2) = 0, sigmoid = 1/2
    # ldr = M - log 4: F = log(1/4) - log(3/4) = -log 3, sigmoid = 1/4; with gamma = log 3: 1/10
    ldr = torch.tensor([5 - math.log(2), 5 - math.log(4)])
    logit = rejection_logit(ldr, 5.0, epsilon=0)
    assert logit.tolist() == pytest.approx([0, -math.log(3)], abs=1e-6)
    assert acceptance_probability(ldr, 5.0, 0.0, 0).tolist() == pytest.approx([0.5, 0.25])
    with_gamma = acceptance_probability(ldr, 5.0, math.log(3), 0).tolist()
    assert with_gamma == pytest.approx([0.25, 0.1], abs=1e-6)


def test_logit_at_the_maximum():
    # a = 0: F = -log(1 - e^-epsilon), which is -log(1e-6) = 13.8155 up to 5e-7
    logit = rejection_logit(torch.tensor([3.0]), 3.0)
    assert logit.dtype == torch.float64
    assert float(logit) == pytest.approx(-math.log(1e-6), abs=1e-6)


def test_logit_far_below_the_maximum_is_the_difference():
    ldr = torch.tensor([-1000.0, -50.0], dtype=torch.float64)
    assert rejection_logit(ldr, 0.0).tolist() == pytest.approx([-1000, -50], rel=1e-12)


@few
@given(ldrs, st.floats(-60, 60), st.floats(-20, 20))
def test_probability_is_monotone_and_bounded(values, ldr_max, gamma):
    # also for logits over the maximum
    ldr = torch.tensor(sorted(values), dtype=torch.float64)
    p = acceptance_probability(ldr, ldr_max, gamma)
    assert ((p >= 0) & (p <= 1)).all()
    assert (p.diff() >= -1e-12).all()  # torch.log need not be monotone in the last bit
    assert (acceptance_probability(ldr, ldr_max, gamma + 1) <= p + 1e-12).all()


@few
@given(ldrs)
def test_gamma_zero_is_plain_rejection_sampling(values):
    ldr = torch.tensor(values, dtype=torch.float64)
    p = acceptance_probability(ldr, float(ldr.max()), 0.0, epsilon=1e-12)
    torch.testing.assert_close(p, torch.exp(ldr - ldr.max()), rtol=0, atol=1e-9)


# --- a budget ------------------------------------------------------------------------------------


def test_budget_by_hand():
    # Ratios 4, 1 and 1. Of three, two are to be kept: 1 + 2 / e^level = 2, so e^level = 2.
    ldr = torch.tensor([4.0, 1.0, 1.0]).log()
    level = budget_level(ldr, 1.5)
    assert level == pytest.approx(math.log(2))
    assert budget_acceptance(ldr, level).tolist() == pytest.approx([1, 0.5, 0.5])
    # Without a bias 6 of 12 are kept: a budget beyond 2 is not needed.
    assert budget_level(ldr, 100.0) == pytest.approx(math.log(4))


@few
@given(ldrs, st.floats(1, 50))
def test_a_budget_is_kept_to_and_spent_on_the_largest(values, budget):
    ldr = torch.tensor(sorted(values), dtype=torch.float64)
    p = budget_acceptance(ldr, budget_level(ldr, budget))
    plain = budget_acceptance(ldr, float(ldr.max()))
    assert float(p.mean()) == pytest.approx(max(1 / budget, float(plain.mean())), abs=1e-6)
    assert (p.diff() >= 0).all() and (p >= plain - 1e-12).all()


# The largest ratio is 1.5: that many proposals for a sample are enough to be exact.
@pytest.mark.parametrize(
    ("budget", "rate", "low", "high"),
    [(1, 1.0, 2.2, 2.3), (1.2, 1 / 1.2, 1.05, 2.2), (9, 1 / 1.5, 0.97, 1.03)],
)
def test_a_budget_corrects_a_known_density(budget, rate, low, high):
    rejection = sampler(budget=budget, batch_size=1024, burn_in=40_960)
    x = rejection.sample(20_000).numpy()
    assert rejection.acceptance_rate == pytest.approx(rate, rel=0.02)
    assert rejection.mean_ratio == pytest.approx(1, abs=0.01)
    assert low < x.var() < high


def test_a_large_budget_is_not_cut_short():
    rejection = RejectionSampler(gaussian, lambda x: 8 * x, burn_in=25_600, budget=5_000.0)
    assert len(rejection.sample(3)) == 3
    assert rejection.acceptance_rate < 1e-3


def test_a_discriminator_that_knows_the_fakes_has_a_low_mean_ratio():
    rejection = RejectionSampler(gaussian, lambda x: torch.full((len(x),), -5.0), burn_in=512)
    rejection.sample(1)
    assert rejection.mean_ratio == pytest.approx(math.exp(-5))
    rejection = RejectionSampler(gaussian, lambda x: torch.full((len(x),), 1e4), burn_in=512)
    rejection.sample(1)
    assert math.isfinite(rejection.mean_ratio)


@pytest.mark.parametrize("budget", [0.5, 0, -1, math.nan, math.inf])
def test_a_budget_below_one(budget):
    with pytest.raises(UserError, match="expected 1 proposal for a kept sample, or more"):
        sampler(budget=budget)


# --- the sampler corrects a known density --------------------------------------------------------


def expected(percentile):
    """Acceptance rate and variance of what is accepted, by quadrature, for a global gamma."""
    x = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    q = torch.exp(-((x / SD) ** 2) / 2)
    q /= q.sum()
    logit = rejection_logit(exact_ldr(x), math.log(SD))
    order = logit.argsort()
    gamma = np.interp(percentile / 100, q[order].cumsum(0), logit[order])
    p = q * acceptance_probability(exact_ldr(x), math.log(SD), float(gamma))
    return float(p.sum()), float((p * x**2).sum() / p.sum())


# 29.23 is where gamma is 0 in this example: F > 0 iff e^a > 1/2 iff |x| < 1.58 = 1.053 sd, which
# 70.77 % of the proposals are. There, and only there, the accepted follow the target exactly. Lower
# percentiles keep nearly everything (variance to 2.25), higher ones keep the middle only.
@pytest.mark.parametrize(("percentile", "variance"), [(1, 1.988), (29.23, 1.0), (80, 0.307)])
def test_a_known_density_is_corrected(percentile, variance):
    n = 20_000
    rejection = sampler(percentile=percentile, gamma="global", batch_size=1024, burn_in=40_960)
    x = rejection.sample(n).numpy()
    rate, exact_variance = expected(percentile)
    assert exact_variance == pytest.approx(variance, abs=2e-3)
    # the standard error of a Gaussian's variance is sqrt(2 / n) of it, here 1 %; gamma adds some
    assert x.var() == pytest.approx(variance, rel=0.05)
    assert abs(x.mean()) < 0.05
    assert rejection.acceptance_rate == pytest.approx(rate, rel=0.05)


def test_gamma_of_each_batch_gives_the_same_rate_for_a_known_density():
    rejection = sampler(percentile=80)
    rejection.sample(3000)
    assert rejection.acceptance_rate == pytest.approx(expected(80)[0], rel=0.1)
    assert rejection.acceptance_rate == rejection.accepted / rejection.proposals


# --- how it draws --------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", ["batch", "global"])
def test_surplus_is_kept(gamma):
    whole = sampler(gamma=gamma, seed=3).sample(100)
    parts = sampler(gamma=gamma, seed=3)
    joined = torch.cat([parts.sample(30), parts.sample(1), parts.sample(69)])
    assert whole.shape == (100, 1)
    assert torch.equal(joined, whole)
    assert not torch.equal(sampler(gamma=gamma, seed=4).sample(100), whole)


def test_counters_leave_the_burn_in_out():
    rejection = sampler(batch_size=100, burn_in=250, percentile=0)
    assert math.isnan(rejection.acceptance_rate) and math.isnan(rejection.mean_ratio)
    sizes = []
    rejection._generate = lambda n, source: sizes.append(n) or gaussian(n, source)
    rejection.sample(10)
    # ceil(250 / 100) = 3 batches of burn-in, then one
    assert sizes == [100, 100, 100, 100]
    assert rejection.proposals == 100
    assert 10 <= rejection.accepted <= 100
    rejection.sample(10)
    assert len(sizes) == 4  # from the surplus


def test_the_maximum_is_raised_before_use():
    # burn-in: logit 0 throughout; the first batch after it holds one of 50, the others 0
    batches = []

    def ldr(x):
        batches.append(x)
        return torch.zeros(len(x)) if len(batches) == 1 else 50.0 * (torch.arange(len(x)) == 7)

    rejection = RejectionSampler(gaussian, ldr, batch_size=64, burn_in=64)
    accepted = rejection.sample(1)
    assert rejection.ldr_max == 50
    # F of the others is -50, gamma is -50 as well (80th percentile): each is kept at 1/2; the one
    # has F - gamma > 60 and is certain
    assert float(batches[1][7]) in torch.cat([accepted, *rejection._queue]).flatten().tolist()


def test_a_global_gamma_follows_a_raised_maximum():
    # burn-in logits 0; later ones have 5 as well. Against M = 5 the burn-in has F = -5 (about), so
    # that gamma is -5 and zeros are kept at 1/2; with the old gamma of +13.8 hardly one would be
    calls = []

    def ldr(x):
        calls.append(1)
        return torch.zeros(len(x)) if len(calls) == 1 else 5.0 * (torch.arange(len(x)) == 0)

    rejection = RejectionSampler(gaussian, ldr, batch_size=512, burn_in=512, gamma="global")
    rejection.sample(1)
    assert 0.4 < rejection.acceptance_rate < 0.6


def test_logits_may_have_a_column():
    flat = sampler(seed=1).sample(20)
    column = RejectionSampler(gaussian, lambda x: exact_ldr(x)[:, 0], burn_in=2560, seed=1)
    assert torch.equal(column.sample(20), flat)


def test_no_gradient_is_kept():
    scale = torch.ones(1, requires_grad=True)
    rejection = RejectionSampler(
        lambda n, source: scale * gaussian(n, source), exact_ldr, burn_in=256
    )
    assert not rejection.sample(5).requires_grad


def test_the_budget():
    # one proposal of 256 has a high logit in the burn-in alone, so that nobody is kept after it
    calls = []

    def ldr(x):
        calls.append(1)
        return torch.linspace(0, 100, len(x)) if len(calls) == 1 else torch.full((len(x),), -100.0)

    rejection = RejectionSampler(
        gaussian, ldr, burn_in=256, gamma="global", max_proposals_per_sample=600
    )
    with pytest.raises(UserError, match=r"600 proposals did not give 1 samples .*0\.00%"):
        rejection.sample(1)
    assert rejection.proposals == 768  # the batch that crosses the budget is the last


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite_are_refused(bad):
    rejection = RejectionSampler(gaussian, lambda x: torch.full((len(x),), bad))
    with pytest.raises(UserError, match="NaN or infinite"):
        rejection.sample(1)


def test_bad_arguments_are_refused():
    with pytest.raises(UserError, match="percentile 101"):
        sampler(percentile=101)
    with pytest.raises(UserError, match="burn-in 0"):
        sampler(burn_in=0)
    with pytest.raises(UserError, match="gamma 'none'"):
        sampler(gamma="none")
    with pytest.raises(UserError, match="0 samples"):
        sampler().sample(0)
    with pytest.raises(UserError, match="came with 1 logits"):
        RejectionSampler(gaussian, lambda x: x.mean()).sample(1)
