"""`diagan data check`: every finding, and never an end at the first."""

import datasets
import numpy as np
import pytest
from pictures import encoded, photo
from PIL import Image

from diagan import cli
from diagan.data.check import check_images
from diagan.errors import UserError


@pytest.fixture
def mess(tmp_path):
    """A folder with one of everything."""
    for i in range(12):
        (tmp_path / f"{'cats' if i < 9 else 'dogs'}").mkdir(exist_ok=True)
        photo(i, (70, 64)).save(tmp_path / ("cats" if i < 9 else "dogs") / f"{i:02}.png")
    photo(20, (64, 64), "L").save(tmp_path / "cats/grey.png")
    photo(21, (64, 64), "RGBA").save(tmp_path / "cats/alpha.png")
    photo(22, (20, 20)).save(tmp_path / "dogs/small.png")
    for i in range(15):  # more than the notes of a run name
        (tmp_path / f"cats/text{i:02}.png").write_text("no picture")
    (tmp_path / "dogs/cut.jpg").write_bytes(encoded(photo(23, (64, 64)), "JPEG")[:-500])
    (tmp_path / "dogs/empty.png").write_bytes(b"")
    (tmp_path / "phone.heic").write_bytes(b"x")
    return tmp_path


def test_everything_is_listed(mess, capsys):
    cli.main(["data", "check", str(mess)])
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "32 image files, 15 readable; used as 64 x 64 RGB",
        "3 different sizes",
        "12 cropped to the central square",
        "1 converted from grey to RGB",
        "1 with transparency, laid on white",
        "1 enlarged to 64 pixels",
        "2 groups: cats 11, dogs 4",
        "1 other files, not looked at: 1 .heic",
        "unreadable: dogs/empty.png (not an image)",
        *(f"unreadable: cats/text{i:02}.png (not an image)" for i in range(15)),
    ):
        assert line in lines
    assert sum(line.startswith("unreadable: dogs/cut.jpg (") for line in lines) == 1
    assert not any("too few" in line for line in lines)


def test_it_writes_nothing_and_says_what_a_run_would(mess, session_cache):
    before = set(session_cache.iterdir())
    found = list(check_images(str(mess), 32))
    assert set(session_cache.iterdir()) == before
    assert "32 image files, 15 readable; used as 32 x 32 RGB" in found
    assert "14 reduced to 32 pixels" in found


def test_too_few_and_no_groups(tmp_path):
    photo().save(tmp_path / "one.png")
    found: list[str] = []
    with pytest.raises(UserError, match="too few to train on: at least 10 readable images"):
        found.extend(check_images(str(tmp_path)))
    assert any(line.startswith("no groups") for line in found)  # what can be said comes first


def test_columns_and_attributes(tmp_path):
    np.savez(
        tmp_path / "x.npz",
        images=np.zeros((20, 30, 30), np.uint8),
        hat=np.arange(20) < 3,
        label=np.arange(20) % 3,
    )
    found = list(check_images(str(tmp_path / "x.npz")))
    assert "20 images, 20 readable; used as 32 x 32 grey" in found
    assert "columns: hat, label" in found
    assert "attributes that say yes or no: hat 15.0%" in found
    assert "3 groups: 0 7, 1 7, 2 6" in found
    grouped = list(check_images(str(tmp_path / "x.npz"), group_by="hat"))
    assert "2 groups: False 17, True 3" in grouped


@pytest.mark.parametrize("name", ["x.zip", "x.parquet", "x.npy", "x.npz", "x.txt"])
def test_what_cannot_be_used_is_an_error(tmp_path, name, capsys):
    """So that `diagan data check PATH && diagan run --data PATH` stops here."""
    (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises(SystemExit) as stop:
        cli.main(["data", "check", str(tmp_path / name)])
    assert stop.value.code == 2
    assert name in capsys.readouterr().err


def test_only_what_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(UserError, match="does not exist"):
        list(check_images(str(tmp_path / "nowhere")))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: 1 / 0)
    with pytest.raises(SystemExit) as stop:
        cli.main(["data", "check", "no/where"])
    assert stop.value.code == 2
    with pytest.raises(SystemExit) as stop:
        cli.main(["data", "check", str(tmp_path), "--size", "0"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.endswith("--size 0: expected a power of two from 16 to 1024\n")


def test_a_huge_image_does_not_stop_it(tmp_path, monkeypatch):
    for i in range(12):
        photo(i).save(tmp_path / f"{i}.png")
    photo(1, (200, 200)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    found = list(check_images(str(tmp_path)))
    assert any(line.startswith("unreadable: bomb.png (") for line in found)
    assert any(line.startswith("13 image files, 12 readable") for line in found)
