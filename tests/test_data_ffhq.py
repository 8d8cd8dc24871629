"""FFHQ, by generated images in its layouts: the real one may not be passed on."""

import zipfile

import datasets
import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
from pictures import photo, pixels
from PIL import Image

from diagan.config import FFHQ
from diagan.data import load_dataset
from diagan.errors import UserError

N = 16


@pytest.fixture
def folder(tmp_path):
    """As it is handed out: 00000/00000.png, a thousand in each sub-folder."""
    for i in range(N):
        place = tmp_path / "ffhq" / f"{i // 10 * 1000:05}"
        place.mkdir(parents=True, exist_ok=True)
        photo(i, (80, 80)).save(place / f"{i:05}.png")
    return tmp_path / "ffhq"


def load(path=None, n=12, size=64, root=None):
    config = FFHQ(n=n, size=size, path=path and str(path))
    return load_dataset(config, seed=0, root=root)


def test_a_folder_in_order_with_the_rest_held_out(folder):
    data = load(folder)
    assert data.values.shape == (12, 3, 64, 64)
    assert len(data.heldout) == 4
    assert data.group_names == ("all",)
    for i in (0, 9, 10, 11):  # Lanczos, as in the published code (FACTS 6)
        expected = pixels(photo(i, (80, 80)).resize((64, 64), Image.LANCZOS))
        assert np.array_equal(data.values[i], expected)
    assert np.array_equal(data.heldout[0], pixels(photo(12, (80, 80)).resize((64, 64), 1)))
    assert data.values.flags.writeable


def test_a_folder_a_zip_a_parquet_file_and_the_hub_are_the_same(folder, tmp_path, monkeypatch):
    expected = load(folder).fingerprint
    assert load(root=str(tmp_path)).fingerprint == expected
    files = sorted(folder.rglob("*.png"))
    with zipfile.ZipFile(tmp_path / "faces.zip", "w") as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
    assert load(tmp_path / "faces.zip").fingerprint == expected
    (tmp_path / "other").mkdir()
    (tmp_path / "faces.zip").rename(tmp_path / "other/ffhq.zip")
    assert load(root=str(tmp_path / "other")).fingerprint == expected

    cells = [{"bytes": file.read_bytes(), "path": None} for file in files]
    (tmp_path / "third/ffhq").mkdir(parents=True)
    pq.write_table(pyarrow.table({"image": cells}), tmp_path / "third/ffhq/train.parquet")
    assert load(root=str(tmp_path / "third")).fingerprint == expected

    def hub(name, split):
        assert (name, split) == ("merkol/ffhq-256", "train")
        rows = datasets.Dataset.from_dict({"image": [str(file) for file in files]})
        return rows.cast_column("image", datasets.Image())

    monkeypatch.setattr(datasets, "load_dataset", hub)
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", str(folder))
    assert load().fingerprint == expected


def test_at_least_one_is_held_out(folder):
    assert len(load(folder, n=15).heldout) == 1
    with pytest.raises(UserError, match="at most 15, of FFHQ's faces"):
        load(folder, n=16)


def test_a_corrupt_face_is_skipped(folder):
    (folder / "00000/00004.png").write_bytes(b"corrupt")
    data = load(folder)
    assert "1 unreadable, skipped: 00000/00004.png" in data.notes
    assert np.array_equal(data.values[4], pixels(photo(5, (80, 80)).resize((64, 64), 1)))


def test_nothing_there(tmp_path):
    with pytest.raises(UserError, match="holds no images"):
        load(root=str(tmp_path))
