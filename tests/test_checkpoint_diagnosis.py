import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tiny import DIGITS, data_of
from torch import nn

from diagan import config
from diagan.checkpoint_diagnosis import (
    diagnose_checkpoint,
    diagnose_discriminator,
    doubts,
    look,
)
from diagan.config import MLP, Score
from diagan.data import as_input
from diagan.diagnosis import Grouping
from diagan.errors import UserError
from diagan.networks import build
from diagan.record import score_all
from diagan.rundir import read_json
from diagan.sample import load_generator
from diagan.theory import Information


@pytest.fixture
def unrecorded(finished_run, tmp_path):
    """A finished run that has neither a record nor a diagnosis."""
    run = shutil.copytree(finished_run, tmp_path / "run")
    shutil.rmtree(run / "record")
    for name in ("samples.parquet", "diagnosis.json", "thumbnails.npz", "report.html"):
        (run / name).unlink()
    return run


def points(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, 2, generator=torch.Generator().manual_seed(seed))


def two_groups() -> tuple[torch.Tensor, torch.Tensor]:
    """990 reals on the first axis, 10 on the second, and fakes that have the first alone."""
    real, fake = torch.zeros(1000, 2), torch.zeros(1000, 2)
    real[:990, 0], real[990:, 1], fake[:, 0] = 1.0, 1.0, 1.0
    return real, fake


def on_coordinates(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return 0.1 * x.sum(1), x


# --- any discriminator ---------------------------------------------------------------------------


def test_a_module_by_the_pieces():
    torch.manual_seed(0)
    d = build(MLP(width=8), (2,))[1]
    real, fake = points(700, 0), points(600, 1)
    found = look(d, real=real.numpy(), fake=fake, s_0=0.5)
    with torch.no_grad():
        on_real, on_fake = d(real), d(fake)
    information = Information(8)
    information.add(on_real.logits, on_real.features)
    information.add(on_fake.logits, on_fake.features)
    assert np.allclose(found.ldrv, information.posterior(0.5).ldrv(on_real.features), rtol=1e-5)
    assert np.array_equal(found.ldr, score_all(d, real, as_input).numpy())  # as a record has it
    assert (found.s_0, found.n_fake) == (0.5, 600)
    assert look(d, real=real, fake=fake).s_0 == 1 / 24


def test_a_callable_finds_the_rare_and_missing():
    real, fake = two_groups()
    grouping = Grouping(np.repeat([0, 1], [990, 10]), ["major", "minor"], rare=1)
    found = diagnose_discriminator(
        on_coordinates, real=real, fake=fake, s_0=1.0, score=Score(k=1.0), grouping=grouping
    )
    assert found.auc == {"ldrm": 0.5, "ldrv": 1.0, "score": 1.0}
    assert found.n_records == 1
    assert found.groups[1].ldrv > 20 * found.groups[0].ldrv
    assert found.groups[1].weight_share > found.groups[1].share


def test_scores_and_tuples_and_columns_of_logits_are_the_same():
    torch.manual_seed(0)
    d = build(MLP(width=8), (2,))[1].eval()
    real, fake = points(50, 0), points(50, 1)

    def as_column(x):
        found = d(x)
        return found.logits[:, None], found.features

    mine, other = (look(net, real=real, fake=fake) for net in (d, as_column))
    assert np.array_equal(mine.ldr, other.ldr) and np.array_equal(mine.ldrv, other.ldrv)


def test_fakes_in_batches_of_any_size():
    real, fake = points(50, 0), points(1200, 1)
    whole = look(on_coordinates, real=real, fake=fake)
    streamed = look(on_coordinates, real=real, fake=iter(fake.split(7)))
    assert np.allclose(whole.ldrv, streamed.ldrv, rtol=1e-9)


def test_pixels_are_given_as_floats():
    seen = []

    def d(x):
        seen.append((x.dtype, x.min().item(), x.max().item()))
        return x.mean((1, 2, 3)), x.flatten(1)

    images = np.random.default_rng(0).integers(0, 256, (20, 1, 4, 4)).astype(np.uint8)
    images[0, 0, 0, :2] = 0, 255
    look(d, real=images, fake=images)
    assert set(seen) == {(torch.float32, -1.0, 1.0)}


def test_the_discriminator_stays_as_it_is():
    data = data_of(DIGITS)
    d = build(DIGITS.network, data.shape)[1].train()  # with BatchNorm and dropout
    before = {name: tensor.clone() for name, tensor in d.state_dict().items()}
    state = torch.get_rng_state()
    once, twice = (look(d, real=data.values, fake=data.heldout) for _ in range(2))
    assert np.array_equal(once.ldr, twice.ldr) and np.array_equal(once.ldrv, twice.ldrv)
    assert all(torch.equal(before[name], tensor) for name, tensor in d.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert all(module.training for module in d.modules())


def test_centring_moves_the_ldr_and_not_its_variance():
    real, fake = points(50, 0), points(50, 1)
    plain, centred = (
        diagnose_discriminator(on_coordinates, real=real, fake=fake, score=Score(centre=how))
        for how in ("none", "median")
    )
    assert np.median(centred.ldrm) == pytest.approx(0, abs=1e-6)
    assert np.array_equal(plain.ldrv, centred.ldrv)


# --- a run folder --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_without_a_record(unrecorded):
    found = diagnose_checkpoint(unrecorded)
    table = pq.read_table(unrecorded / "samples.parquet")
    known, scored = ["index", "group", "label"], ["ldrm", "ldrv", "score", "weight"]
    assert table.column_names == [*known, "flag", "cluster", *scored]
    assert np.array_equal(table["score"], found.score)
    assert np.sum(table["weight"]) == pytest.approx(1)
    about = read_json(unrecorded / "diagnosis.json")
    wanted = {"mode": "checkpoint", "arm": "weighted", "scored_by": "critic", "is_ldr": True,
              "last_step": 12, "n": 48, "n_fake": 48, "n_records": 1}  # fmt: skip
    assert {key: about[key] for key in wanted} == wanted
    assert about["k_is_auto"]
    assert about["s_0"] == pytest.approx(1 / (3 * load_generator(unrecorded).d.logit.in_features))
    assert (unrecorded / "thumbnails.npz").exists() and (unrecorded / "report.html").exists()
    again = diagnose_checkpoint(unrecorded)
    assert np.array_equal(again.score, found.score)


def test_arm_prior_and_score_are_settings(finished_run, tmp_path):
    def diagnosed(s_0):
        score = Score(k=2.0)
        return diagnose_checkpoint(finished_run, arm="phase1", s_0=s_0, score=score, out=tmp_path)

    loose, tight = diagnosed(10.0), diagnosed(0.1)
    about = read_json(tmp_path / "diagnosis.json")
    assert (about["arm"], about["scored_by"], about["last_step"]) == ("phase1", "D", 6)
    assert (about["s_0"], about["k"]) == (0.1, 2.0)
    assert np.array_equal(loose.ldrm, tight.ldrm) and (loose.ldrv > tight.ldrv).all()


def test_what_a_record_has_told_is_not_overwritten(finished_run, tmp_path):
    before = (finished_run / "samples.parquet").read_bytes()
    with pytest.raises(UserError, match=r"has a record, .* `diagan diagnose run`, or .* --out"):
        diagnose_checkpoint(finished_run)
    diagnose_checkpoint(finished_run, out=tmp_path / "elsewhere")
    assert (finished_run / "samples.parquet").read_bytes() == before
    assert pq.read_table(tmp_path / "elsewhere" / "samples.parquet").num_rows == 48


def test_doubts_are_said(finished_run):
    trained = load_generator(finished_run, "weighted")
    assert doubts(trained) == [] and trained.is_ldr
    hinge = replace(trained, config=replace(trained.config, loss="hinge"))
    assert doubts(hinge) == [] and hinge.is_ldr  # the critic is logistic all the same
    without_critic = replace(hinge, rejects_by="D")
    assert len(doubts(without_critic)) == 2 and not without_critic.is_ldr


# --- bad input -----------------------------------------------------------------------------------


def test_no_samples():
    real, none = points(5, 0), points(0, 0)
    with pytest.raises(UserError, match="no fakes"):
        look(on_coordinates, real=real, fake=none)
    with pytest.raises(UserError, match="no real samples"):
        look(on_coordinates, real=none, fake=real)


def test_a_bad_prior_is_refused_before_any_work():
    with pytest.raises(UserError, match="s_0 0: expected a positive number"):
        look(lambda x: pytest.fail("looked at"), real=points(5, 0), fake=points(5, 1), s_0=0)


@pytest.mark.parametrize(
    ("d", "sentence"),
    [
        (lambda x: x.sum(1), "neither Scores nor"),
        (lambda x: (x.sum(1), None), "neither Scores nor"),
        (lambda x: (x.sum(1), x.sum(1)), r"features \[5\] for 5 samples"),
        (lambda x: (x, x), r"logits \[5, 2\]"),
        (lambda x: (x.sum(), x), r"logits \[\]"),
        (lambda x: (x.sum(1) / 0 * 0, x), "it has diverged"),
    ],
)
def test_a_discriminator_that_returns_something_else(d, sentence):
    with pytest.raises(UserError, match=sentence):
        look(d, real=points(5, 0), fake=points(5, 1))


def test_not_a_run_no_checkpoint_other_data(unrecorded, tmp_path):
    with pytest.raises(UserError, match="not a run folder"):
        diagnose_checkpoint(tmp_path)
    settings = config.loads((unrecorded / "config.json").read_text(), "config")
    other = config.to_json(replace(settings, seed=settings.seed + 1))
    (unrecorded / "config.json").write_text(json.dumps(other))
    with pytest.raises(UserError, match="the data are not those"):
        diagnose_checkpoint(unrecorded)
    (unrecorded / "config.json").write_text(json.dumps(config.to_json(settings)))
    shutil.rmtree(unrecorded / "checkpoints")
    with pytest.raises(UserError, match="no checkpoint"):
        diagnose_checkpoint(unrecorded)


def test_a_last_layer_of_its_own():
    """Any module whose last layer is linear, not only ours."""

    class Theirs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.last = nn.Sequential(nn.Linear(2, 5), nn.Tanh()), nn.Linear(5, 1)

        def forward(self, x):
            phi = self.body(x)
            return self.last(phi), phi

    found = diagnose_discriminator(Theirs(), real=points(30, 0), fake=points(30, 1))
    assert np.isfinite(found.score).all() and (found.ldrv > 0).all()
