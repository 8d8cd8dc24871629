"""MNIST, Fashion-MNIST and the demo's digits; the big ones need DIAGAN_DATA."""

import io

import datasets
import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
from PIL import Image

from diagan.config import ColoredMnist, DemoDigits, MnistFmnist
from diagan.data import load_dataset
from diagan.data.sources import load_split
from diagan.errors import UserError


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def write_split(root, name, split, n, seed=0):
    """A small parquet file like the real ones."""
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 256, (n, 28, 28), dtype=np.uint8)
    pixels *= random.random((n, 28, 28)) < 0.3
    rows = [{"bytes": png(p), "path": None} for p in pixels]
    path = root / name / f"{split}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pyarrow.table({"image": rows, "label": np.arange(n) % 10}), path)
    return pixels


@pytest.fixture
def small_root(tmp_path):
    for seed, name in enumerate(("mnist", "fashion_mnist")):
        write_split(tmp_path, name, "train", 60, seed)
        write_split(tmp_path, name, "test", 10, seed + 2)
    return str(tmp_path)


def by_hand(raw: bytes, size: int, *, binary: bool) -> np.ndarray:
    image = Image.open(io.BytesIO(raw))
    if binary:
        image = Image.fromarray(((np.asarray(image) > 0) * 255).astype(np.uint8))
    return np.asarray(image.resize((size, size), Image.BILINEAR))


def raw_images(root, name, split):
    return [
        row["bytes"] for row in pq.read_table(f"{root}/{name}/{split}.parquet")["image"].to_pylist()
    ]


# --- the real data -------------------------------------------------------------------------------


@pytest.mark.slow
def test_colored_mnist_counts_colours_and_pixels(data_root):
    data = load_dataset(ColoredMnist(), seed=0, root=data_root)
    assert data.values.shape == (60_000, 3, 32, 32)
    assert data.values.dtype == np.uint8
    assert np.bincount(data.groups).tolist() == [59_400, 600]
    assert data.heldout.shape == (10_000, 3, 32, 32)
    assert np.bincount(data.heldout_groups).tolist() == [9_900, 100]
    assert data.group_names == ("red", "green")
    assert data.rare == 1
    lit = data.values.reshape(60_000, 3, -1).any(axis=2)  # [N, 3]
    assert np.array_equal(lit, np.eye(3, dtype=bool)[data.groups])  # one channel each, blue never
    assert data.labels[:5].tolist() == [5, 0, 4, 1, 9]
    raw = raw_images(data_root, "mnist", "train")
    for i in (0, 1, 31_234, 59_999):
        assert np.array_equal(data.values[i].max(0), by_hand(raw[i], 32, binary=True))


@pytest.mark.slow
def test_mnist_fmnist_takes_each_index_from_one_set(data_root, tmp_path):
    for name in ("mnist", "fashion_mnist"):  # a part of the real files: decoding all takes long
        (tmp_path / name).mkdir()
        for split, n in (("train", 2_000), ("test", 500)):
            table = pq.read_table(f"{data_root}/{name}/{split}.parquet").slice(0, n)
            pq.write_table(table, tmp_path / name / f"{split}.parquet")
    data = load_dataset(MnistFmnist(n=2_000, majority=0.9), seed=3, root=str(tmp_path))
    assert data.values.shape == (2_000, 1, 32, 32)
    assert np.bincount(data.groups).tolist() == [1_800, 200]
    assert len(data.heldout) == 333
    sets = [raw_images(tmp_path, name, "train") for name in ("mnist", "fashion_mnist")]
    for i in range(2_000):
        expected = by_hand(sets[data.groups[i]][i], 32, binary=False)
        assert np.array_equal(data.values[i, 0], expected)
    assert len(np.unique(data.values[0])) > 2  # grey levels are kept


@pytest.mark.slow
def test_the_second_load_is_the_same_data_without_decoding(data_root, monkeypatch):
    first = load_dataset(ColoredMnist(n=2_000), seed=0, root=data_root)

    def refuse(*_):
        raise AssertionError("decoded again")

    monkeypatch.setattr("diagan.data.sources._from_parquet", refuse)
    assert (
        load_dataset(ColoredMnist(n=2_000), seed=0, root=data_root).fingerprint == first.fingerprint
    )


# --- small files of the same kind ----------------------------------------------------------------


@pytest.mark.parametrize("kind", [ColoredMnist, MnistFmnist])
def test_the_seed_moves_the_split_and_nothing_else(small_root, kind):
    config = kind(n=60, majority=0.8)
    first, again, other = (load_dataset(config, seed=s, root=small_root) for s in (0, 0, 1))
    assert first.fingerprint == again.fingerprint
    assert not np.array_equal(first.groups, other.groups)
    assert np.bincount(first.groups).tolist() == np.bincount(other.groups).tolist() == [48, 12]
    same = first.groups == other.groups
    assert np.array_equal(first.values[same], other.values[same])


def test_every_digit_appears_once_and_in_order(small_root):
    data = load_dataset(ColoredMnist(n=30, majority=0.5, size=16), seed=0, root=small_root)
    for i, raw in enumerate(raw_images(small_root, "mnist", "train")[:30]):
        assert np.array_equal(data.values[i].max(0), by_hand(raw, 16, binary=True))
    for i, raw in enumerate(raw_images(small_root, "mnist", "test")[:5]):
        assert np.array_equal(data.heldout[i].max(0), by_hand(raw, 16, binary=True))
    assert len(data.heldout) == 5


@pytest.mark.parametrize("kind", [ColoredMnist, MnistFmnist])
def test_more_than_there_is_is_refused(small_root, kind):
    with pytest.raises(UserError, match="at most 60"):
        load_dataset(kind(n=61), seed=0, root=small_root)


def test_a_changed_file_is_decoded_again(tmp_path):
    write_split(tmp_path, "mnist", "train", 12, seed=0)
    before, _ = load_split("mnist", "train", "grey", 28, str(tmp_path))
    pixels = write_split(tmp_path, "mnist", "train", 12, seed=9)
    after, labels = load_split("mnist", "train", "grey", 28, str(tmp_path))
    assert not np.array_equal(before, after)
    assert np.array_equal(after, pixels)
    assert labels.tolist() == [*range(10), 0, 1]


def test_a_missing_file_is_named_with_the_layout(tmp_path):
    with pytest.raises(
        UserError, match=r"mnist/train\.parquet cannot be read; --data-root expects"
    ):
        load_dataset(ColoredMnist(), seed=0, root=str(tmp_path))


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/train.parquet").write_text("not parquet")
    with pytest.raises(UserError, match="not a sound parquet file"):
        load_split("mnist", "train", "grey", 32, str(tmp_path))


def test_a_row_that_is_no_image_is_named(tmp_path):
    (tmp_path / "mnist").mkdir()
    rows = [
        {"bytes": png(np.ones((28, 28), np.uint8)), "path": None},
        {"bytes": b"x", "path": None},
    ]
    table = pyarrow.table({"image": rows, "label": [1, 2]})
    pq.write_table(table, tmp_path / "mnist/train.parquet")
    with pytest.raises(UserError, match="row 1 of mnist/train"):
        load_split("mnist", "train", "grey", 32, str(tmp_path))


def test_the_hub_gives_the_same_as_a_file(small_root, monkeypatch):
    def hub(name, split):
        assert name == "ylecun/mnist"
        return datasets.Dataset(pq.read_table(f"{small_root}/mnist/{split}.parquet"))

    monkeypatch.setattr(datasets, "load_dataset", hub)
    images, labels = load_split("mnist", "test", "binary", 32, None)
    expected, expected_labels = load_split("mnist", "test", "binary", 32, small_root)
    assert np.array_equal(images, expected)
    assert np.array_equal(labels, expected_labels)


def test_a_hub_out_of_reach_is_one_sentence(monkeypatch):
    def hub(*_, **__):
        raise ConnectionError("Couldn't reach the hub\nand much more")

    monkeypatch.setattr(datasets, "load_dataset", hub)
    with pytest.raises(UserError, match="pass --data-root") as caught:
        load_dataset(ColoredMnist(), seed=0)
    assert "\n" not in str(caught.value)


# --- the demo ------------------------------------------------------------------------------------


def test_demo_digits_need_no_other_file():
    data = load_dataset(DemoDigits(), seed=0)
    assert data.values.shape == (4_000, 3, 16, 16)
    assert np.bincount(data.groups).tolist() == [3_880, 120]
    assert data.heldout.shape == (1_000, 3, 16, 16)
    assert np.bincount(data.labels, minlength=10).min() > 300
    lit = data.values.reshape(4_000, 3, -1).any(axis=2)
    assert np.array_equal(lit, np.eye(3, dtype=bool)[data.groups])


@pytest.mark.slow
def test_demo_digits_are_mnists_first(data_root):
    demo = load_dataset(DemoDigits(n=12_900, size=32), seed=0)
    real, labels = load_split("mnist", "train", "binary", 32, data_root)
    assert np.array_equal(demo.values.max(axis=1), real[:12_900])
    assert np.array_equal(demo.heldout.max(axis=1), real[12_900:13_000])
    assert np.array_equal(demo.labels, labels[:12_900])


def test_heldout_digits_have_a_permutation_of_their_own():
    data = load_dataset(DemoDigits(n=1_000), seed=0)
    assert np.bincount(data.groups).tolist() == np.bincount(data.heldout_groups).tolist()
    assert not np.array_equal(data.groups, data.heldout_groups)


def test_demo_digits_keep_some_held_out():
    with pytest.raises(UserError, match="12,900"):
        load_dataset(DemoDigits(n=12_901), seed=0)
