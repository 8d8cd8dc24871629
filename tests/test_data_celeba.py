"""CelebA, by generated faces in its layouts: the real one may not be passed on."""

import datasets
import numpy as np
import pytest
from pictures import photo, pixels
from PIL import Image

from diagan.config import CelebA
from diagan.data import load_dataset
from diagan.data.celeba import load_split
from diagan.errors import UserError

NAMES = ["Bald", "Eyeglasses", "Male", *(f"Attribute_{i}" for i in range(37))]
SIZE = (178, 218)
COUNTS = {"train": 30, "valid": 12, "test": 15}


def has(i):
    """-1 or 1 for each of the 40 attributes of face i."""
    return [1 if (i * 7 + j * 3) % (j + 9) == 0 else -1 for j in range(40)]


def write_original(folder, flat=True):
    """The files as their publishers name them, at the top or in Img, Anno and Eval."""
    places = ("", "", "") if flat else ("Img", "Anno", "Eval")
    images, annotations, partition = (folder / place for place in places)
    (images / "img_align_celeba").mkdir(parents=True)
    for place in (annotations, partition):
        place.mkdir(exist_ok=True)
    rows, parts = [], []
    for i, split in enumerate(s for s, n in COUNTS.items() for _ in range(n)):
        name = f"{i + 1:06}.jpg"
        photo(i, SIZE).save(images / "img_align_celeba" / name)
        rows.append(" ".join([name, *(f"{value:2}" for value in has(i))]))
        parts.append(f"{name} {list(COUNTS).index(split)}")
    lines = [str(len(rows)), " ".join(NAMES) + " ", *rows]
    (annotations / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    (partition / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("celeba")
    write_original(folder)
    return folder


def load(path, n=30, attribute="Bald", root=None):
    config = CelebA(n=n, path=path and str(path), attribute=attribute)
    return load_dataset(config, seed=0, root=root)


def test_the_original_folder(original):
    data = load(original)
    assert data.values.shape == (30, 3, 64, 64)
    assert len(data.heldout) == 3  # 30 x 19,962 / 162,770
    table = np.array([has(i) for i in range(30)]) == 1  # [30, 40]
    assert list(data.attributes) == NAMES
    assert np.array_equal(np.stack(list(data.attributes.values()), axis=1), table)
    assert data.group_names == ("not Bald", "Bald")
    assert np.array_equal(data.groups, table[:, 0])
    held = np.array([has(i) for i in range(42, 45)]) == 1  # the first of the test split
    assert np.array_equal(np.stack(list(data.heldout_attributes.values()), axis=1), held)
    assert np.array_equal(data.heldout_groups, held[:, 0])


def test_resized_to_64_by_78_and_the_centre(original):
    """FACTS 1.7, by hand."""
    data = load(original)
    for i in (0, 17, 29):
        face = Image.open(original / "img_align_celeba" / f"{i + 1:06}.jpg")
        assert face.size == SIZE
        small = face.resize((64, 78), Image.BILINEAR).crop((0, 7, 64, 71))
        assert np.array_equal(data.values[i], pixels(small))


def test_the_splits(original):
    for split, n in COUNTS.items():
        assert len(load_split(split, 64, str(original)).images) == n


def test_values_can_be_trained_on_without_a_copy_of_all(original):
    data = load(original)
    assert data.values.flags.writeable
    before = data.values[0].copy()
    data.values[0] = 0  # stays in memory: the cache is as it was
    assert np.array_equal(load(original).values[0], before)


def test_published_sub_folders_and_the_data_root(tmp_path, original):
    write_original(tmp_path / "celeba", flat=False)
    assert load(None, root=str(tmp_path)).fingerprint == load(original).fingerprint


def hub_of(original, embedded):
    """The hub's table; images as bytes, or as files that were fetched with it."""

    def hub(name, split):
        assert name == "flwrlabs/celeba"
        start = {"train": 0, "valid": 30, "test": 42}[split]
        rows = range(start, start + COUNTS[split])
        table = {n: [has(i)[j] == 1 for i in rows] for j, n in enumerate(NAMES)}
        files = [original / "img_align_celeba" / f"{i + 1:06}.jpg" for i in rows]
        images = [{"bytes": f.read_bytes(), "path": None} if embedded else str(f) for f in files]
        table |= {"image": images, "celeb_id": [i + 100 for i in rows]}
        return datasets.Dataset.from_dict(table).cast_column("image", datasets.Image())

    return hub


def test_the_hub_and_parquet_files(original, tmp_path, monkeypatch):
    (tmp_path / "celeba").mkdir()
    for split in COUNTS:
        table = hub_of(original, embedded=True)("flwrlabs/celeba", split)
        table.to_parquet(tmp_path / "celeba" / f"{split}.parquet")
    files = load(None, root=str(tmp_path))
    monkeypatch.setattr(datasets, "load_dataset", hub_of(original, embedded=False))
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", str(original))
    fetched = load(None)
    for data in (files, fetched):
        assert data.fingerprint == load(original).fingerprint
        assert list(data.attributes) == NAMES  # and not the number of the person


def test_any_attribute_makes_the_groups(original):
    data = load(original, attribute="Eyeglasses")
    assert data.group_names == ("not Eyeglasses", "Eyeglasses")
    assert np.array_equal(data.groups, data.attributes["Eyeglasses"])
    with pytest.raises(UserError, match=r"no such attribute; did you mean Bald\?"):
        load(original, attribute="bald")


def test_a_face_that_is_missing_is_skipped_with_its_attributes(tmp_path):
    write_original(tmp_path)
    (tmp_path / "img_align_celeba/000003.jpg").unlink()
    (tmp_path / "img_align_celeba/000005.jpg").write_text("no picture")
    with pytest.raises(UserError, match="at most 28, of CelebA's training faces"):
        load(tmp_path)
    data = load(tmp_path, n=28)
    assert "2 unreadable, skipped: 000003.jpg, 000005.jpg" in data.notes
    kept = [i for i in range(30) if i not in (2, 4)]
    assert np.array_equal(data.groups, [has(i)[0] == 1 for i in kept])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("list_attr_celeba.txt", None, "has no list_attr_celeba.txt; expected CelebA's"),
        ("list_attr_celeba.txt", "3\nBald Male\n000001.jpg 1\n", "one value for each of 2"),
        ("list_attr_celeba.txt", "", "no file has one value"),
        ("list_eval_partition.txt", None, "has no list_eval_partition.txt"),
        ("list_eval_partition.txt", "x.jpg 0\n", "names x.jpg, of which"),
        ("list_eval_partition.txt", "../up.jpg 0\n", "names ../up.jpg, of which"),
        ("list_eval_partition.txt", "000001.jpg 2\n", "names no train"),
    ],
)
def test_bad_lists_are_refused(tmp_path, name, content, told):
    write_original(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=told):
        load(tmp_path)


def test_an_empty_root_is_told_what_to_hold(tmp_path):
    with pytest.raises(UserError, match=r"or train\.parquet and test\.parquet"):
        load(None, root=str(tmp_path))
