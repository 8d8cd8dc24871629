import pytest
import torch

from diagan.losses import LOSSES, hinge, non_saturating

# ln(1 + e^x) for x = -2, 0, 3, by hand
SOFTPLUS = {-2.0: 0.126928, 0.0: 0.693147, 3.0: 3.048587}


@pytest.mark.parametrize("x", SOFTPLUS)
def test_non_saturating_by_hand(x):
    logit = torch.tensor([x])
    assert non_saturating.d_fake(logit).item() == pytest.approx(SOFTPLUS[x], abs=1e-6)
    assert non_saturating.d_real(-logit).item() == pytest.approx(SOFTPLUS[x], abs=1e-6)
    assert non_saturating.g(-logit).item() == pytest.approx(SOFTPLUS[x], abs=1e-6)


def test_hinge_by_hand():
    logits = torch.tensor([-2.0, -1.0, 0.5, 1.0, 3.0])
    assert hinge.d_real(logits).tolist() == [3.0, 2.0, 0.5, 0.0, 0.0]
    assert hinge.d_fake(logits).tolist() == [0.0, 0.0, 1.5, 2.0, 4.0]
    assert hinge.g(logits).tolist() == [2.0, 1.0, -0.5, -1.0, -3.0]


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_per_example(name):
    loss = LOSSES[name]
    for term in (loss.d_real, loss.d_fake, loss.g):
        assert term(torch.zeros(7)).shape == (7,)


@pytest.mark.parametrize("name", LOSSES)
def test_g_still_learns_from_a_hopeless_fake(name):
    """At a logit of -50 the published epsilon leaves a gradient of exactly 0 (FACTS 1.9)."""
    logit = torch.tensor([-50.0], requires_grad=True)
    LOSSES[name].g(logit).sum().backward()
    assert logit.grad.item() == pytest.approx(-1.0)

    published = torch.tensor([-50.0], requires_grad=True)
    (-torch.log(published.sigmoid() + 1e-8)).sum().backward()
    assert abs(published.grad.item()) < 1e-12


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("x", [-1e4, -50.0, 50.0, 1e4])
def test_losses_stay_finite(name, x):
    loss, logit = LOSSES[name], torch.tensor([x], requires_grad=True)
    total = loss.d_real(logit) + loss.d_fake(logit) + loss.g(logit)
    total.sum().backward()
    assert total.isfinite().all() and logit.grad.isfinite().all()


def test_only_the_logistic_logit_is_an_ldr():
    """The optimum of p softplus(-x) + q softplus(x) is log p / q, that of the hinge a sign."""
    x = torch.linspace(-3, 3, 6001)
    p, q = 0.6, 0.2
    for loss, best in ((non_saturating, torch.log(torch.tensor(p / q)).item()), (hinge, 1.0)):
        found = x[(p * loss.d_real(x) + q * loss.d_fake(x)).argmin()].item()
        assert found == pytest.approx(best, abs=0.01)
    assert non_saturating.is_ldr and not hinge.is_ldr
