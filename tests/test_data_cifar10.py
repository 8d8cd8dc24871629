"""CIFAR-10: the real one where DIAGAN_DATA has it, else small files of the same kind."""

import io

import datasets
import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
from pictures import encoded, photo, pixels
from PIL import Image

from diagan.config import Cifar10
from diagan.data import load_dataset
from diagan.data.cifar10 import CLASSES
from diagan.errors import UserError


@pytest.fixture
def small_root(tmp_path):
    (tmp_path / "cifar10").mkdir()
    for split, n in (("train", 50), ("test", 12)):
        rows = [{"bytes": encoded(photo(i + n)), "path": None} for i in range(n)]
        table = pyarrow.table({"image": rows, "label": np.arange(n) % 10})
        pq.write_table(table, tmp_path / "cifar10" / f"{split}.parquet")
    return tmp_path


@pytest.mark.slow
def test_the_real_images_in_order(data_root, tmp_path):
    (tmp_path / "cifar10").mkdir()
    tables = {}
    for split, n in (("train", 1_000), ("test", 300)):  # a part: decoding all takes ten seconds
        table = pq.read_table(f"{data_root}/cifar10/{split}.parquet")
        assert len(table) == {"train": 50_000, "test": 10_000}[split]
        tables[split] = table.slice(0, n)
        pq.write_table(tables[split], tmp_path / "cifar10" / f"{split}.parquet")
    data = load_dataset(Cifar10(n=1_000), seed=0, root=str(tmp_path))
    assert data.values.shape == (1_000, 3, 32, 32)
    assert data.heldout.shape == (200, 3, 32, 32)
    labels = tables["train"]["label"].to_numpy()
    assert np.array_equal(data.groups, labels) and np.array_equal(data.labels, labels)
    assert np.array_equal(data.heldout_groups, tables["test"]["label"].to_numpy()[:200])
    assert [data.group_names[g] for g in data.groups[:4]] == ["frog", "truck", "truck", "deer"]
    for i, row in enumerate(tables["train"]["image"].to_pylist()[:50]):
        image = Image.open(io.BytesIO(row["bytes"]))
        assert np.array_equal(data.values[i], pixels(image))  # no flips, no resizing


def test_small_files(small_root):
    data = load_dataset(Cifar10(n=40), seed=3, root=str(small_root))
    again = load_dataset(Cifar10(n=40), seed=4, root=str(small_root))
    assert data.fingerprint == again.fingerprint  # the seed moves nothing
    assert (data.n, len(data.heldout), data.group_names) == (40, 8, CLASSES)
    assert data.rare is None
    assert np.array_equal(data.values[7], pixels(photo(57)))
    with pytest.raises(UserError, match="at most 50, of CIFAR-10's training images"):
        load_dataset(Cifar10(n=51), seed=0, root=str(small_root))


def test_the_hubs_own_layout(small_root, monkeypatch):
    names = {"label": datasets.ClassLabel(names=list(CLASSES)), "img": datasets.Image()}

    def hub(name, split):
        assert name == "uoft-cs/cifar10"
        table = pq.read_table(small_root / "cifar10" / f"{split}.parquet")
        rows = {"img": table["image"].to_pylist(), "label": table["label"].to_pylist()}
        return datasets.Dataset.from_dict(rows, features=datasets.Features(names))

    monkeypatch.setattr(datasets, "load_dataset", hub)
    mine = load_dataset(Cifar10(n=50), seed=0)
    assert mine.fingerprint == load_dataset(Cifar10(n=50), seed=0, root=str(small_root)).fingerprint


def test_what_is_missing_is_said(small_root, tmp_path):
    (small_root / "cifar10/test.parquet").unlink()
    with pytest.raises(UserError, match=r"test\.parquet is not there; --data-root expects"):
        load_dataset(Cifar10(n=50), seed=0, root=str(small_root))
    table = pq.read_table(small_root / "cifar10/train.parquet").drop(["label"])
    pq.write_table(table, small_root / "cifar10/train.parquet")
    with pytest.raises(UserError, match="has no column label, only images"):
        load_dataset(Cifar10(n=50), seed=0, root=str(small_root))
