"""The command line as a person types it: help, overrides, and config.json as the way back."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import DIGITS

from diagan import cli
from diagan import config as configs
from diagan.config import DCGAN, Config, ImageFolder, Optim, Record, Score, StyleGAN2
from diagan.experiments import EXPERIMENTS, at_scale, find
from diagan.verbs.common import parse_budget


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """What `pipeline.run` was asked for, instead of doing it."""
    from diagan.rundir import RunDir

    calls: list[tuple[Config, str, float | None]] = []

    def note(config: Config, path: str, budget_seconds: float | None = None) -> RunDir:
        calls.append((config, path, budget_seconds))
        return RunDir(tmp_path)

    monkeypatch.setattr("diagan.pipeline.run", note)
    return calls


HELP = {
    "": ["run", "demo", "diagnose run", "sample", "report", "list", "under-represents"],
    "demo": ["--out", "--seed", "--scale", "{cpu,smoke}"],
    "run": ["EXPERIMENT", "--data PATH", "--config FILE", "--budget TIME", "--optim.lr", "--k"],
    "run gaussian_3": ["--data.sigma", "(default: 1024)"],
    "diagnose": ["diagnose run"],
    "diagnose run": ["RUN", "--exponent", "--clip"],
    "sample": ["RUN", "--n INT", "--drs, --no-drs", "--budget", "{auto,weighted,plain,phase1}"],
    "report": ["RUN"],
    "list": ["List the experiments"],
}


@pytest.mark.parametrize("words", HELP)
def test_help_at_every_level(words: str, capsys: pytest.CaptureFixture[str]):
    try:
        cli.main([*words.split(), "--help"])
    except SystemExit as stop:
        assert stop.code in (0, None)
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.startswith("usage: diagan")
    for part in HELP[words]:
        assert part in told.out
    assert max(len(line) for line in told.out.splitlines()) <= 80


def test_help_names_every_extractor(capsys: pytest.CaptureFixture[str]):
    from diagan.features import NAMES

    with pytest.raises(SystemExit):
        cli.main(["evaluate", "--help"])
    assert set(NAMES) <= set(re.findall(r"[\w-]+", capsys.readouterr().out))


def test_the_version(capsys: pytest.CaptureFixture[str]):
    cli.main(["--version"])
    assert re.fullmatch(r"diagan \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_no_words_are_a_question(capsys: pytest.CaptureFixture[str]):
    cli.main([])
    assert capsys.readouterr().out.startswith("usage: diagan VERB")


def test_help_and_list_import_nothing_heavy():
    """In a process of its own, and as `python -m diagan` finds it."""
    script = """
import contextlib, io, sys
from diagan.cli import main
for words in (["--help"], ["run", "--help"], ["sample", "-h"], ["diagnose", "run", "-h"], ["list"]):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(words)
print([m for m in ("torch", "datasets", "bokeh", "numpy", "pyarrow") if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert out.stdout == "[]\n", out.stderr


def test_python_dash_m():
    command = [sys.executable, "-m", "diagan", "lsit"]
    out = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert (out.returncode, out.stdout) == (2, "")
    assert out.stderr == "diagan: there is no verb 'lsit'; did you mean list?\n"


def test_list_names_every_experiment(capsys: pytest.CaptureFixture[str]):
    cli.main(["list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[: len(EXPERIMENTS)]] == list(EXPERIMENTS)


# --- overrides -----------------------------------------------------------------------------------


def test_flags_override_the_experiment(asked: list):
    cli.main(["run", "colored_mnist_95", "--steps", "400", "--batch-size", "32", "--optim.lr",
              "0.003", "--k", "1.5", "--seed", "7", "--precision", "float32", "--record.every",
              "4", "--device", "cpu", "--no-plain-arm", "--data.n", "1000", "--loss", "hinge",
              "--out", "somewhere"])  # fmt: skip
    (config, path, budget) = asked[0]
    base = find("colored_mnist_95")
    assert config == replace(
        base, steps=400, batch_size=32, optim=replace(base.optim, lr=0.003),
        score=replace(base.score, k=1.5), seed=7, precision="float32",
        record=replace(base.record, every=4), device="cpu", plain_arm=False,
        data=replace(base.data, n=1000), loss="hinge",
    )  # fmt: skip
    assert (path, budget) == ("somewhere", None)


@pytest.mark.slow
def test_no_flags_no_changes(asked: list):
    for name in EXPERIMENTS:
        cli.main(["run", name])
    assert [call[0] for call in asked] == [find(name) for name in EXPERIMENTS]
    assert [call[1] for call in asked] == [f"runs/{name}" for name in EXPERIMENTS]


def test_flags_come_after_the_scale_and_in_any_order(asked: list):
    smoke = at_scale(find("mnist_fmnist_99"), "smoke")
    cli.main(["run", "mnist_fmnist_99", "--steps", "30", "--scale", "smoke"])
    cli.main(["run", "--steps", "30", "--scale=smoke", "mnist_fmnist_99", "--k", "None"])
    cli.main(["run", "--data.n", "250", "--no-plain-arm", "gaussians25", "--out", "demo"])
    assert asked[0][0] == replace(smoke, steps=30)
    assert asked[1][0] == replace(smoke, steps=30, score=replace(smoke.score, k=None))
    assert (asked[2][0].data.n, asked[2][1]) == (250, "demo")


def test_a_folder_of_images_has_the_robust_settings(asked: list, tmp_path: Path):
    cli.main(["run", "--data", str(tmp_path), "--budget", "1.5h", "--record.window", "20"])
    config, path, budget = asked[0]
    assert config.data == ImageFolder(path=str(tmp_path))
    assert config.score == Score(k=None, centre="median", clip="floor")
    assert config.record == Record(every=50, window=20)
    assert path == f"runs/{tmp_path.name}"
    assert budget == 5400


@pytest.mark.parametrize(
    ("side", "size", "network"),
    [(28, 32, DCGAN), (60, 64, DCGAN), (150, 128, StyleGAN2), (1000, 256, StyleGAN2)],
)
def test_the_side_and_the_network_follow_from_the_images(
    asked: list, tmp_path: Path, side: int, size: int, network: type
):
    np.save(tmp_path / "a.npy", np.zeros((2, side, side), np.uint8))
    cli.main(["run", "--data", str(tmp_path / "a.npy")])
    cli.main(["run", "--data", str(tmp_path / "a.npy"), "--data.size", "64"])
    (config, path, _), (given, *_) = asked
    assert (config.data.size, type(config.network)) == (size, network)
    assert path == "runs/a"
    assert (given.data.size, type(given.network), given.network.width) == (64, DCGAN, 0.5)


def test_the_folder_we_stand_in_has_a_name(
    asked: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    cli.main(["run", "--data", "."])
    assert asked[0][1] == f"runs/{tmp_path.name}"


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200)])
def test_budget(text: str, seconds: float):
    assert parse_budget(text) == seconds


def test_the_demo_is_an_experiment(asked: list):
    cli.main(["demo", "--seed", "3", "--out", "here"])
    assert asked == [(replace(find("demo"), seed=3), "here", None)]


def test_a_config_file_is_the_base_that_flags_override(asked: list, tmp_path: Path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(configs.to_json(DIGITS)))
    cli.main(["run", "--config", str(file)])
    cli.main(["run", "--config", str(file), "--optim.betas", "0.1", "0.2"])
    optim = Optim(lr=DIGITS.optim.lr, betas=(0.1, 0.2))
    assert [call[0] for call in asked] == [DIGITS, replace(DIGITS, optim=optim)]


# --- the way back --------------------------------------------------------------------------------


@pytest.mark.slow
def test_config_json_runs_again_to_the_same_end(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("diagan.pipeline.report", lambda run: None)
    cli.main(["run", "--config", str(finished_run / "config.json"), "--out", str(tmp_path / "b")])
    names = ["config.json", "samples.parquet", "diagnosis.json", "metrics.jsonl",
             "record/000006.npy", "checkpoints/weighted-000012/critic.safetensors",
             "checkpoints/weighted-000012/G.optim.safetensors"]  # fmt: skip
    for name in names:
        assert (tmp_path / "b" / name).read_bytes() == (finished_run / name).read_bytes(), name


def test_what_ran_holds_no_auto(finished_run: Path):
    stored = json.loads((finished_run / "config.json").read_text())
    assert stored["device"] == "cpu"
    assert stored["precision"] == "float32"
    assert configs.from_json(stored) == DIGITS


@pytest.mark.parametrize("run_first", [True, False])
def test_diagnose_run_starts_from_the_run_s_own_settings(
    run_first: bool, finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    monkeypatch.setattr("diagan.pipeline.report", lambda run: None)
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    stored = configs.to_json(replace(DIGITS, score=Score(centre="mean", exponent=0.5)))
    (run / "config.json").write_text(json.dumps(stored))
    words = [str(run), "--k", "2"] if run_first else ["--k", "2", str(run)]
    cli.main(["diagnose", "run", *words])
    found = json.loads((run / "diagnosis.json").read_text())
    assert (found["k"], found["centre"], found["exponent"]) == (2.0, "mean", 0.5)
    assert "diagnosed 48 samples from 3 records, k = 2\n" in capsys.readouterr().out


def test_sample_and_report(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    out = tmp_path / "images"
    cli.main(["sample", str(run), "--n", "3", "--out", str(out), "--no-drs", "--arm", "plain"])
    assert capsys.readouterr().out == f"wrote 3 samples of plain at step 12 to {out}\n"
    names = ["000000.png", "000001.png", "000002.png"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert (tmp_path / "images.png").exists()
    (run / "report.html").unlink()
    cli.main(["report", str(run)])
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert (run / "report.html").stat().st_size > 10_000


def test_evaluate_prints_a_table_or_json(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    words = ["evaluate", str(run), "--metrics", "pr20_k3", "shares20", "--arms", "plain"]
    cli.main(words)
    table = capsys.readouterr().out
    assert table.split()[:4] == ["metric", "protocol", "group", "plain"]
    assert "precision" in table and "discriminator, not comparable with published FID" in table
    cli.main([*words, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [line["metric"] for line in found] == ["precision", "recall"] + 2 * ["group_share"]


def test_an_unknown_metric_is_refused_with_the_known_ones(
    finished_run: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as left:
        cli.main(["evaluate", str(finished_run), "--metrics", "fid"])
    assert left.value.code == 2
    assert "expected one of fid{n}_{split}, kid{n}_{split}" in capsys.readouterr().err


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), cli.Interrupted("saved")])
def test_a_stop_has_its_own_exit_code(
    stop: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def stopped(words: list[str]) -> None:
        raise stop

    monkeypatch.setattr(cli, "dispatch", stopped)
    with pytest.raises(SystemExit) as left:
        cli.main(["list"])
    assert left.value.code == 130
    assert capsys.readouterr().err == f"diagan: {str(stop) or 'stopped'}\n"
