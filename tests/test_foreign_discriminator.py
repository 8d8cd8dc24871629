"""`diagnose checkpoint --discriminator`: anyone's model through three lines of their own."""

import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from pictures import photo

from diagan import cli
from diagan.errors import UserError
from diagan.foreign.discriminator import load_discriminator
from diagan.rundir import RunDir, read_json

ADAPTER = """
import torch

def load(path=None):
    weights = torch.load(path, weights_only=True) if path else torch.ones(3 * 32 * 32) / 1000
    return lambda x: (x.flatten(1) @ weights, x.flatten(1)[:, :8])

def features_only():
    return lambda x: x.flatten(1)

answer = lambda: 42
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_own_gan.py").write_text(ADAPTER)
    for kind, seeds in (("real", range(30)), ("fake", range(100, 125))):
        (tmp_path / kind).mkdir()
        for seed in seeds:
            photo(seed).save(tmp_path / kind / f"{seed}.png")
    yield tmp_path
    sys.modules.pop("my_own_gan", None)


def ask(*more):
    cli.main(["diagnose", "checkpoint", *more, "--data", "real", "--fake", "fake"])


def test_a_discriminator_by_its_import_path(place, capsys):
    ask("--discriminator", "my_own_gan:load", "--out", "found")
    assert "diagnosed 30 samples from 1 record," in capsys.readouterr().out
    table = pq.read_table(place / "found" / "samples.parquet")
    brightness = [np.asarray(photo(i)).mean() for i in sorted(range(30), key=str)]
    assert np.corrcoef(table["ldrm"].to_numpy(), brightness)[0, 1] > 0.99
    about = read_json(RunDir(place / "found").diagnosis)
    assert about["mode"] == "checkpoint" and about["n_fake"] == 25 and about["is_ldr"]
    assert (place / "found" / "report.html").exists()


def test_a_file_goes_to_its_load_function(place):
    import torch

    torch.save(-torch.ones(3 * 32 * 32) / 1000, place / "model.pt")
    ask("model.pt", "--discriminator", "my_own_gan:load", "--hinge")
    table = pq.read_table(place / "diagnosis" / "samples.parquet")
    brightness = [np.asarray(photo(i)).mean() for i in sorted(range(30), key=str)]
    assert np.corrcoef(table["ldrm"].to_numpy(), brightness)[0, 1] < -0.99
    assert read_json(RunDir(place / "diagnosis").diagnosis)["is_ldr"] is False


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("my_own_gan", "expected MODULE:FUNCTION"),
        ("no_such_gan:load", "cannot import no_such_gan"),
        ("my_own_gan:lode", "has no lode"),
        ("my_own_gan:answer", "returned int"),
    ],
)
def test_what_cannot_be_loaded_is_said(place, where, said):
    with pytest.raises(UserError, match=said):
        load_discriminator(where)


def test_one_that_returns_no_features_is_told_what_to_do(place, capsys):
    with pytest.raises(SystemExit):
        ask("--discriminator", "my_own_gan:features_only")
    assert "wrap it in a function" in capsys.readouterr().err
    assert not (place / "diagnosis").exists()


def test_what_belongs_together_is_asked_for(place, capsys):
    for words, said in (
        (["--discriminator", "my_own_gan:load"], "needs --data"),
        (["--data", "real"], "RUN is missing"),
    ):
        with pytest.raises(SystemExit):
            cli.main(["diagnose", "checkpoint", *words])
        assert said in capsys.readouterr().err
