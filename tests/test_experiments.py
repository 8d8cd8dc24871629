from dataclasses import replace

import numpy as np
import pytest

from diagan import config as configs
from diagan.config import DCGAN, MLP, DemoDigits, Gaussians25, MnistFmnist, Optim, SingleGaussian
from diagan.data import Dataset, load_dataset
from diagan.engine import launch
from diagan.errors import UserError
from diagan.estimate import n_records
from diagan.experiments import EXPERIMENTS, SCALES, at_scale, find
from diagan.stages import new_game, stages
from diagan.train import train

DIGIT_SETS = [f"{name}_{p}" for name in ("colored_mnist", "mnist_fmnist") for p in (99, 95, 90)]
GAUSSIANS = ["gaussian_3", "gaussian_2.5", "gaussian_2"]


BASELINES = ("gold", "topk", "pacgan", "inclusive")
PHOTOS = [f"{d}_{n}" for d in ("cifar10", "celeba") for n in ("sngan", "ssgan", "sngan_hinge")]


def test_the_experiments_there_are():
    on_photos = [f"{n}_{b}" for n in PHOTOS for b in BASELINES[:2] if not n.endswith("hinge")]
    on_digits = [f"{n}_{b}" for n in DIGIT_SETS for b in BASELINES]
    assert set(EXPERIMENTS) == {
        *("demo", "gaussians25", *GAUSSIANS, *DIGIT_SETS, *PHOTOS, "ffhq_stylegan2", "drawn_faces"),
        *(*on_photos, *on_digits, "ffhq_stylegan2_gold"),
    }
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())
    assert all(e.paper and e.about for e in EXPERIMENTS.values() if e.name != "demo")


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_at_every_scale(name, scale):
    config = at_scale(find(name), scale)
    assert configs.check(config) is config
    assert configs.from_json(configs.to_json(config)) == config
    assert stages(config)[-1].end == config.steps


# FACTS 1.1: n, batch, lr, betas, decay, steps, phase 1, record every, window
ONE = (10_000, 1024, 1e-3, (0.5, 0.9), "none", 200 * 10, 200 * 10, 10, 200)
GRID = (10_000, 128, 2e-4, (0.5, 0.999), "none", 300 * 79, 300 * 79, 79, 50)
DIGITS = (60_000, 64, 1e-4, (0.5, 0.9), "linear", 20_000, 15_000, 100, 50)
PAPER = {
    **dict.fromkeys(GAUSSIANS, ONE),
    "gaussians25": GRID,
    **dict.fromkeys(DIGIT_SETS, DIGITS),
}


@pytest.mark.parametrize("name", PAPER)
def test_settings_of_the_paper(name):
    c = find(name)
    assert PAPER[name] == (
        *(c.data.n, c.batch_size, c.optim.lr, c.optim.betas, c.optim.decay),
        *(c.steps, c.phase1_steps, c.record.every, c.record.window),
    )
    assert (c.loss, c.n_dis, c.seed) == ("non_saturating", 1, 0)
    assert c.network == (DCGAN() if name in DIGIT_SETS else MLP())
    # What the paper leaves out of the score, an experiment of the paper does not do either.
    s = c.score
    assert (s.centre, s.clip, s.floor, s.ratio, s.exponent) == ("none", "cap", 0.01, 50.0, 1.0)


def test_networks_and_rejection_of_the_paper():
    assert (DCGAN().latent, DCGAN().dropout, DCGAN().width) == (100, 0.5, 1.0)
    assert (MLP().latent, MLP().width) == (2, 512)
    r = find("colored_mnist_99").rejection
    assert (r.burn_in, r.batch_size, r.percentile, r.epsilon) == (12_800, 256, 80.0, 1e-6)
    assert r.gamma == "batch"
    critic = find("colored_mnist_99").critic
    assert (critic.on, critic.stream, critic.fakes) == (True, "uniform", "shared")


@pytest.mark.parametrize("percent", [99, 95, 90])
def test_the_digit_sets(percent):
    colored, mixed = (find(f"{name}_{percent}") for name in ("colored_mnist", "mnist_fmnist"))
    assert colored.data.majority == mixed.data.majority == percent / 100
    assert (colored.score.k, mixed.score.k) == (3.0, 6.0)
    assert (colored.record.mode, mixed.record.mode) == ("train", "eval")
    assert colored.data.size == mixed.data.size == 32
    for c in (colored, mixed):  # t1 belongs to the window in the paper
        assert c.record_start == 10_100 and n_records(c) == 50
        published = replace(c, record=replace(c.record, include_end=False))
        assert published.record_start == 10_000


def test_the_gaussians():
    assert [find(name).data.sigma for name in GAUSSIANS] == [3.0, 2.5, 2.0]
    for name in (*GAUSSIANS, "gaussians25"):
        assert [stage.name for stage in stages(find(name))] == ["phase1"]  # diagnosis only
        c = find(name)
        assert c.record_start == c.record.every  # from the first epoch on
    assert n_records(find("gaussian_3")) == 200
    assert n_records(find("gaussians25")) == 300


@pytest.mark.parametrize("name", DIGIT_SETS)
def test_the_digit_sets_on_a_cpu(name):
    paper, cpu = find(name), at_scale(find(name), "cpu")
    assert cpu.data.n == 10_000
    assert (cpu.phase1_steps, cpu.steps - cpu.phase1_steps) == (3_000, 1_000)
    assert (cpu.record.every, n_records(cpu)) == (20, 50)
    assert 2_000 < cpu.record_start <= 2_020  # the last 1,000 steps of phase 1
    assert (cpu.network.width, cpu.network.dropout) == (0.5, 1 / 3)
    assert cpu.optim.lr == 2 * paper.optim.lr
    # and nothing else is another experiment
    same = replace(cpu, data=paper.data, steps=paper.steps, record=paper.record,
                   network=paper.network, optim=paper.optim)  # fmt: skip
    assert same == paper


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke_is_tiny(name):
    paper, smoke = find(name), at_scale(find(name), "smoke")
    assert smoke.steps <= 24 and smoke.data.n <= 250 and smoke.batch_size <= 16
    assert smoke.network.width <= 128
    assert smoke.rejection.burn_in <= 128 and smoke.n_evaluate <= 128
    assert n_records(smoke) >= 2 or smoke.record.mode == "none"
    assert len(stages(smoke)) == len(stages(paper))
    assert smoke.optim == paper.optim


def test_the_paper_scale_is_the_experiment_itself():
    for name, experiment in EXPERIMENTS.items():
        assert at_scale(find(name), "paper") is experiment.config


def test_a_misspelt_name_is_refused_with_its_neighbour():
    with pytest.raises(UserError, match="'colored_mnist_98'; did you mean colored_mnist_9"):
        find("colored_mnist_98")
    with pytest.raises(UserError, match=r"'zebra'; expected one of demo, gaussian_3"):
        find("zebra")


# FACTS 1.1: n, steps, phase 1, k
@pytest.mark.parametrize(
    ("name", "expected"),
    [("cifar10", (50_000, 50_000, 40_000, 0.3)), ("celeba", (162_770, 75_000, 60_000, 5.0))],
)
def test_photos(name, expected):
    for kind in ("sngan", "ssgan", "sngan_hinge"):
        c = find(f"{name}_{kind}")
        assert (c.data.n, c.steps, c.phase1_steps, c.score.k) == expected
        assert (c.batch_size, c.n_dis, c.optim) == (64, 5, Optim(2e-4, (0.0, 0.9), "linear"))
        assert c.record_start == c.phase1_steps - 4_900 and n_records(c) == 50
        assert c.loss == ("hinge" if kind.endswith("hinge") else "non_saturating")
        assert (c.methods.rotation.d, c.methods.rotation.g) == (
            (1.0, 0.2) if kind == "ssgan" else (0.0, 0.0)
        )


def test_ffhq():
    c = find("ffhq_stylegan2")
    assert (c.steps, c.phase1_steps, c.batch_size, c.score.k) == (250_000, 200_000, 16, 3.0)
    assert (c.record_start, n_records(c)) == (195_000, 51)
    assert (c.penalty.r1, c.penalty.every, c.penalty.path_length, c.penalty.path_every) == (
        *(0.1, 16),
        *(2.0, 4),
    )


def test_the_cpu_scale_keeps_a_baseline_s_single_phase():
    assert [s.name for s in stages(at_scale(find("colored_mnist_99_topk"), "cpu"))] == ["phase1"]
    assert [s.name for s in stages(at_scale(find("cifar10_sngan_gold"), "cpu"))] == [
        *("phase1", "plain"),
    ]


def some_data(c):
    """Of the layout that the experiment's data have."""
    if isinstance(c.data, DemoDigits | SingleGaussian | Gaussians25):
        return load_dataset(c.data, seed=0)
    channels = 1 if isinstance(c.data, MnistFmnist) else 3
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, (40, channels, c.data.size, c.data.size), dtype=np.uint8)
    groups = np.arange(40) % 2
    return Dataset(values, groups, ("major", "minor"), values[:4], groups[:4], "some")


def narrow(width):
    return type(width)(width / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_two_steps_of_each_phase(name):
    c = replace(at_scale(find(name), "smoke"), device="cpu", precision="float32")
    c = replace(c, batch_size=4, n_dis=1, network=replace(c.network, width=narrow(c.network.width)))
    data = some_data(c)
    for stage in stages(c):
        game = new_game(c, data, launch(c), stage, np.full(data.n, 1 / data.n))
        assert train(game, until=stage.start + 2)
        assert all(p.isfinite().all() for p in game.g.net.parameters())
