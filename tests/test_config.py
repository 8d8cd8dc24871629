"""A run is its config: JSON round trips, and whatever is wrong is refused by name."""

import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import DIGITS, POINTS

from diagan import config as configs
from diagan.config import (
    DCGAN,
    FFHQ,
    MLP,
    Augment,
    CelebA,
    Cifar10,
    ColoredMnist,
    Config,
    Critic,
    DemoDigits,
    DrawnFaces,
    Gaussians25,
    ImageFolder,
    Methods,
    MnistFmnist,
    Optim,
    Record,
    Rejection,
    Score,
    SingleGaussian,
)
from diagan.errors import UserError
from diagan.experiments import EXPERIMENTS, SCALES, at_scale

count = st.integers(2, 10**6)
positive = st.floats(1e-9, 1e9)
share = st.floats(0.01, 0.99)
size = st.sampled_from([16, 32, 64, 128])
digits = st.one_of(
    *(st.builds(kind, n=count, majority=share, size=size)
      for kind in (ColoredMnist, MnistFmnist, DemoDigits))
)  # fmt: skip
data = st.one_of(
    digits,
    st.builds(SingleGaussian, n=count, sigma=positive),
    st.builds(Gaussians25, n=count),
    st.builds(Cifar10, n=count, size=size),
    st.builds(CelebA, n=count, size=size, attribute=st.text(), path=st.none() | st.text()),
    st.builds(FFHQ, n=count, size=size, path=st.none() | st.text()),
    st.builds(
        DrawnFaces, n=count, size=size, hat=share, attribute=st.sampled_from(["hat", "pale"])
    ),
    st.builds(ImageFolder, path=st.text(), size=size, group_by=st.none() | st.text()),
)
network = st.one_of(
    st.builds(MLP, width=count, latent=count, init_std=st.none() | positive),
    st.builds(DCGAN, width=st.floats(0.25, 4), latent=count, dropout=st.floats(0, 0.9)),
)
sound = st.builds(
    Config,
    data=data,
    network=network,
    steps=st.integers(100, 10**7),
    phase1_share=st.floats(0.5, 1),
    batch_size=count,
    n_dis=st.integers(1, 5),
    optim=st.builds(
        Optim,
        lr=positive,
        betas=st.tuples(share, share),
        decay=st.sampled_from(["linear", "restart", "none"]),
    ),
    record=st.builds(
        Record, every=st.integers(1, 5), window=st.integers(2, 8), include_end=st.booleans()
    ),
    score=st.builds(Score, k=st.none() | positive, floor=positive, ratio=st.floats(1, 1e6)),
    critic=st.builds(Critic, on=st.booleans()),
    rejection=st.builds(Rejection, burn_in=count, percentile=st.floats(1, 99)),
    plain_arm=st.booleans(),
    seed=st.integers(-(2**62), 2**62),
    data_root=st.none() | st.text(),
)


@settings(max_examples=60)
@given(config=sound)
def test_json_round_trip(config: Config):
    text = json.dumps(configs.to_json(config), allow_nan=False)
    assert configs.loads(text, "it") == config


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_sound_and_round_trips(name: str, scale: str):
    config = at_scale(EXPERIMENTS[name].config, scale)
    assert configs.from_json(json.loads(json.dumps(configs.to_json(config)))) == config


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"steps": 0}, "--steps 0: expected at least 1"),
        ({"phase1_share": 0.0}, "--phase1-share 0.0: expected over 0, at most 1"),
        ({"phase1_share": 1.5}, "--phase1-share 1.5: expected over 0, at most 1"),
        ({"phase1_share": 0.01}, "--steps 12: too few for a phase 1; expected more"),
        ({"batch_size": 1}, "--batch-size 1: expected at least 2"),
        ({"n_dis": 0}, "--n-dis 0: expected at least 1"),
        ({"optim": Optim(lr=0.0)}, "--optim.lr 0.0: expected a positive number"),
        ({"optim": Optim(lr=math.nan)}, "--optim.lr nan: expected a positive number"),
        ({"optim": Optim(lr=math.inf)}, "--optim.lr inf: expected a positive number"),
        ({"optim": Optim(betas=(0.5, 1.0))}, "--optim.betas: expected two numbers in [0, 1)"),
        ({"record": Record(every=0)}, "--record.every 0: expected at least 1"),
        ({"record": Record(every=1, window=1)}, "--record.window 1: expected at least 2"),
        ({"record": Record(every=1, start=0)}, "--record.start 0: expected at least 1"),
        ({"record": Record(every=6)}, "--record.every 6 leaves 1 records in a phase 1 of 6 steps"),
        ({"record": Record(every=1, start=9)}, "--record.every 1 leaves 0 records in a phase 1"),
        ({"score": Score(k=-1.0)}, "--k -1.0: expected 0 or more"),
        ({"score": Score(k=math.inf)}, "--k inf: expected 0 or more"),
        ({"score": Score(floor=0.0)}, "--floor 0.0: expected a positive number"),
        ({"score": Score(ratio=0.5)}, "--ratio 0.5: expected at least 1"),
        ({"score": Score(exponent=0.0)}, "--exponent 0.0: expected a positive number"),
        ({"rejection": Rejection(percentile=100.0)}, "--rejection.percentile: expected between"),
        ({"rejection": Rejection(burn_in=0)}, "--rejection.burn-in: expected at least 1"),
        ({"rejection": Rejection(batch_size=0)}, "--rejection.batch-size: expected at least 1"),
        ({"rejection": Rejection(epsilon=0.0)}, "--rejection.epsilon: expected a positive"),
        ({"network": MLP(width=0)}, "--network.width 0: expected at least 1"),
        ({"network": DCGAN(width=0.01)}, "--network.width 0.01: expected at least 0.0625"),
        ({"network": MLP(latent=0)}, "--network.latent 0: expected at least 1"),
        ({"network": DCGAN(dropout=1.0)}, "--network.dropout 1.0: expected at least 0, under 1"),
        (
            {"record": Record(mode="none")},
            "--record.mode none leaves nothing to weigh the images",
        ),
        (
            {
                "record": Record(mode="free"),
                "data": DemoDigits(),
                "methods": Methods(augment=Augment(translation=0.1)),
            },
            "--record.mode free keeps the logits of what D sees in training",
        ),
        ({"log_every": 0}, "--log-every 0: expected at least 1"),
        ({"n_evaluate": 0}, "--n-evaluate 0: expected at least 1"),
        ({"data": SingleGaussian(n=1)}, "--data.n 1: expected at least 2"),
        ({"data": DemoDigits(majority=1.0)}, "--data.majority 1.0: expected between 0 and 1"),
        ({"data": DemoDigits(size=20)}, "--data.size 20: expected a power of two from 16 to 1024"),
    ],
)
def test_out_of_range(change: dict[str, Any], told: str):
    with pytest.raises(UserError) as error:
        configs.check(replace(POINTS, **change))
    assert str(error.value).startswith(told)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (["stesp"], 5, "config has no key 'stesp'; did you mean steps?"),
        (["optim", "learning"], 5, "config.optim has no key 'learning'; expected one of lr, betas"),
        (["data", "sigm"], 5, "config.data has no key 'sigm'; did you mean sigma?"),
        (["data", "kind"], "mnits", "config.data: expected a kind of single_gaussian, gaussians25"),
        (["data", "kind"], ["mlp"], "config.data: expected a kind of"),
        (["network"], None, "config.network: expected a kind of mlp, dcgan"),
        (["steps"], "5", "config.steps: expected int, got '5'"),
        (["steps"], 5.5, "config.steps: expected int, got 5.5"),
        (["steps"], True, "config.steps: expected int, got True"),
        (["plain_arm"], 1, "config.plain_arm: expected bool, got 1"),
        (["optim"], [], "config.optim: expected an object, got []"),
        (["optim", "betas"], [0.5], "config.optim.betas: expected a list of 2 numbers"),
        (["optim", "betas"], [0.5, "a"], "config.optim.betas: expected float, got 'a'"),
        (["loss"], "hing", "config.loss: expected one of non_saturating, hinge, got 'hing'"),
        (["steps"], 0, "--steps 0: expected at least 1"),
        (["format"], 2, "config.json has format 2; this diagan reads format 1"),
    ],
)
def test_what_no_config_says_is_refused_by_name(path: list[str], value: object, told: str):
    obj = configs.to_json(POINTS)
    inner = obj
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(UserError) as error:
        configs.from_json(obj)
    assert str(error.value).startswith(told)


def test_what_is_missing_has_its_default_or_is_asked_for():
    assert configs.from_json({"data": {"kind": "gaussians25"}, "network": {"kind": "mlp"}}) == (
        Config(Gaussians25(), MLP())
    )
    with pytest.raises(UserError, match="config needs the key 'data'"):
        configs.from_json({"network": {"kind": "mlp"}})


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "it is not valid JSON"), ("", "it is not valid JSON"), ("[]", "it holds no config")],
)
def test_what_is_no_json_object(text: str, told: str):
    with pytest.raises(UserError, match=told):
        configs.loads(text, "it")


def places(obj: dict, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every path of keys into nested objects."""
    return [p for k, v in obj.items()
            for p in ((*at, k), *(places(v, (*at, k)) if isinstance(v, dict) else ()))]  # fmt: skip


json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(max_examples=150)
@given(place=st.sampled_from(places(configs.to_json(DIGITS))), value=json_value)
def test_any_change_gives_a_config_or_a_sentence(place: tuple[str, ...], value: object):
    obj = copy.deepcopy(configs.to_json(DIGITS))
    inner = obj
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    try:
        config = configs.from_json(obj)
    except UserError as error:
        assert str(error)
    else:
        assert configs.from_json(configs.to_json(config)) == config


def test_settings_that_follow_from_others():
    config = replace(POINTS, steps=100, phase1_share=0.75, record=Record(every=5, window=4))
    assert config.phase1_steps == 75
    assert config.record_start == 60  # 60, 65, 70, 75
    before_end = replace(config, record=Record(every=5, window=4, include_end=False))
    assert before_end.record_start == 55
    assert replace(config, record=Record(every=5, window=99)).record_start == 5
    assert replace(config, record=Record(every=5, start=33)).record_start == 33
