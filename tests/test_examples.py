import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "your_own_loop.py"


def test_the_example_is_short_and_has_none_of_our_trainer():
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) <= 70
    ours = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "diagan"
    ]
    assert [node.module for node in ours] == ["diagan"]  # public names only
    assert {"LdrRecord", "diagnose", "WeightedSampler", "RejectionSampler"} <= {
        alias.name for alias in ours[0].names
    }
    assert [mark in text for mark in ("# 1.", "# 2.", "# 3.", "# 4.")] == [True] * 4


@pytest.mark.slow
def test_the_example_does_what_it_says(tmp_path):
    env = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 60
    auc = float(re.search(r"with probability (\d\.\d+)\.", done.stdout)[1])
    assert auc > 0.9
    shares = [float(share) for share in re.findall(r"^ *([\d.]+)% of", done.stdout, re.M)]
    data, plain, weighted, kept = shares
    assert data == pytest.approx(5, abs=1)
    assert plain < data  # the plain GAN forgets
    assert weighted > plain + 10  # the weights bring them back, and more than that
    assert kept > plain and abs(kept - data) < abs(weighted - data)  # rejection undoes the excess
