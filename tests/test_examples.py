"""The examples, with what diagan adds and without it; docs/integrate.md shows the difference.

`python tests/test_examples.py` prints the diffs that the page has to have.
"""

import ast
import difflib
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
EXAMPLES = sorted(path for path in (HOME / "examples").glob("*.py") if path.name != "toy.py")
MARK = re.compile(r"  # \+")  # at the end of a line, a comment may follow
ids = {"argvalues": EXAMPLES, "ids": [path.stem for path in EXAMPLES]}


def without_diagan(example: Path) -> list[str]:
    """What a person already has."""
    return [line for line in example.read_text().splitlines(keepends=True) if not MARK.search(line)]


def diff(example: Path) -> str:
    """What they add, with a little of what is around it; the marks are no part of it."""
    lines = example.read_text().splitlines(keepends=True)
    with_it = [MARK.sub("  #", line) for line in lines]
    with_it = [re.sub(r"  #\n", "\n", line) for line in with_it]
    found = difflib.unified_diff(without_diagan(example), with_it, n=1)
    return "".join(line for line in found if not line.startswith(("---", "+++")))


def test_there_are_four():
    assert [path.stem for path in EXAMPLES] == [
        "accelerate_loop", "lightning_module", "stylegan_loop", "your_own_loop",
    ]  # fmt: skip


@pytest.mark.parametrize("example", **ids)
def test_ten_lines_and_public_names_only(example: Path):
    text = example.read_text()
    assert 1 <= len(MARK.findall(text)) <= 10
    assert max(map(len, text.splitlines())) <= 100  # no ten long ones
    ours = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)
            and node.module.split(".")[0] == "diagan"]  # fmt: skip
    assert [node.module for node in ours] == ["diagan"]
    names = {alias.name for alias in ours[0].names}
    assert names == {"LdrRecord", "diagnose", "WeightedSampler", "RejectionSampler"}
    assert "diagan" not in "".join(without_diagan(example)).partition('"""\n\n')[2]


@pytest.mark.parametrize("example", **ids)
def test_the_page_shows_the_diff(example: Path):
    assert f"```diff\n{diff(example)}```" in (HOME / "docs" / "integrate.md").read_text()


def run(file: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a script says of the share of rare points, in percent."""
    monkeypatch.syspath_prepend(str(file.parent))
    sys.modules.pop("toy", None)  # which seeds, so that every script begins alike
    runpy.run_path(str(file))
    return [
        float(share) for share in re.findall(r"^ *([\d.]+)% rare", capsys.readouterr().out, re.M)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("example", **ids)
def test_it_runs_without_diagan(example: Path, tmp_path: Path, capsys, monkeypatch):
    toy = (HOME / "examples" / "toy.py").read_text()
    assert "N_STEPS, BATCH = 1_000" in toy
    (tmp_path / "toy.py").write_text(toy.replace("N_STEPS, BATCH = 1_000", "N_STEPS, BATCH = 60"))
    (tmp_path / example.name).write_text("".join(without_diagan(example)))
    assert len(run(tmp_path / example.name, capsys, monkeypatch)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("example", **ids)
def test_it_does_what_it_says(example: Path, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    *course, data, weighted, kept = run(example, capsys, monkeypatch)
    plain = course[len(course) // 2 - 1]  # when the first half is over
    assert data == pytest.approx(4, abs=1)
    assert plain < data / 2  # the plain GAN forgets
    assert weighted > data  # the weights bring them back, and more than that
    assert plain < kept < weighted  # rejection undoes the excess
    assert abs(kept - data) < abs(plain - data)
    assert any(tmp_path.rglob("record/meta.json"))
    shutil.rmtree(tmp_path)


if __name__ == "__main__":
    for path in EXAMPLES:
        print(f"{path.name}\n```diff\n{diff(path)}```\n")
