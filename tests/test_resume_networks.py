"""Every network and every method that has a state of its own: killed, resumed, the same end.

As in test_resume.py, whose processes these are; the data are drawn faces, or points.
"""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from test_resume import Nursery, assert_same_end, nursery  # noqa: F401
from tiny import POINTS

from diagan import checkpoint
from diagan import config as configs
from diagan.config import SNGAN, Augment, Config, DrawnFaces, Inclusive, Methods, Penalty, StyleGAN2
from diagan.experiments import at_scale, find

pytestmark = pytest.mark.slow

# 6 steps of phase 1 and 6 of each arm, with a checkpoint at every 4th.
SHORT = {"steps": 12, "phase1_share": 0.5, "checkpoint_every": 4, "record": POINTS.record}
# The n-th time that a place is come to: step 6, with steps 5 and 6 to be played again; the first
# file of the checkpoint at 6; and step 9 of the weighted arm, after 2 + 6 steps of this process.
MOMENTS = (("step", 6), ("checkpoint", 1), ("step", 11))


def on_faces(experiment: str, network: SNGAN | StyleGAN2) -> Config:
    """An experiment of the paper on few images and with a thin network, else as it is."""
    smoke = at_scale(find(experiment), "smoke")
    return replace(smoke, data=DrawnFaces(n=24, hat=0.2), network=network, batch_size=4,
                   n_dis=min(smoke.n_dis, 2), rejection=POINTS.rejection, n_evaluate=16,
                   device="cpu", precision="float32", **SHORT)  # fmt: skip


def on_points(methods: Methods = POINTS.methods, penalty: Penalty = POINTS.penalty) -> Config:
    return replace(POINTS, methods=methods, penalty=penalty, **SHORT)


SSGAN_RUN = on_faces("cifar10_ssgan", SNGAN(width=1 / 16, latent=8))
STYLE_RUN = on_faces("ffhq_stylegan2", StyleGAN2(width=1 / 16, latent=8))
# Lazy terms and searches come between two checkpoints as well as on one.
CASES = {
    "sngan with a rotation head, augmented": replace(
        SSGAN_RUN, methods=replace(SSGAN_RUN.methods, augment=Augment(True, 0.125, 0.5))
    ),
    "stylegan2": replace(STYLE_RUN, penalty=replace(STYLE_RUN.penalty, every=3, path_every=3)),
    "ema": on_points(Methods(ema=0.9)),
    "path length": on_points(penalty=Penalty(path_length=2.0, path_every=3)),
    "inclusive": on_points(Methods(inclusive=Inclusive(10.0, 4.0, passes=0.5))),
}
STATE = {  # what has to come back beside networks and Adam
    "stylegan2": {"ema.constant", "path_length.mean"},
    "ema": {"ema.0.0.weight"},
    "path length": {"path_length.mean"},
    "inclusive": {"inclusive.latents", "inclusive.n_searches"},
}


def state(run: Path, stage: str, step: int) -> dict:
    return checkpoint.load(run / "checkpoints" / f"{stage}-{step:06d}").get("state", {})


@pytest.mark.parametrize("name", CASES)
def test_killed_it_ends_the_same(name: str, nursery: Nursery, tmp_path: Path):  # noqa: F811
    file = tmp_path / "config.json"
    file.write_text(json.dumps(configs.to_json(CASES[name])))
    command = ["run", "--config", str(file), "--out"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    end = nursery.run([*command, str(whole)])
    assert end.code == 0, end.said
    before, after = (state(whole, *at) for at in (("phase1", 4), ("weighted", 12)))
    for tensor in STATE.get(name, ()):  # else coming back would be nothing
        assert not before[tensor].equal(after[tensor]), tensor
    for moment, nth in MOMENTS:
        end = nursery.run([*command, str(killed)], moment, nth)
        assert end.code == -signal.SIGKILL, f"{moment} {nth}: {end.said}"
    end = nursery.run([*command, str(killed)])
    assert end.code == 0, end.said
    assert_same_end(killed, whole)
