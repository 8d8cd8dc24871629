"""What the tests share: where the real data are, and a cache that is not the user's own."""

import os
from pathlib import Path

# Before torch is imported, and for the processes that tests start: networks this small are slower
# with two threads, and much slower where the machine is busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# What a busy machine makes slow is not wrong.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(scope="session")
def data_root() -> str:
    root = os.environ.get("DIAGAN_DATA")
    if not root:
        pytest.skip("DIAGAN_DATA is not set to a folder with <name>/<split>.parquet")
    return root


@pytest.fixture(scope="session")
def golden(data_root: str) -> Path:
    """Golden values, which lie beside the real data."""
    folder = Path(data_root).resolve().parent / "golden"
    if not folder.is_dir():
        pytest.skip("there is no folder `golden` beside DIAGAN_DATA")
    return folder


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIAGAN_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole tiny run on digits: look, copy, but change nothing."""
    from tiny import DIGITS

    from diagan import pipeline

    return pipeline.run(DIGITS, tmp_path_factory.mktemp("finished") / "run").path
