"""Anyone's images, other than a plain folder: metadata.csv, zip, parquet, arrays, the hub."""

import io
import struct
import zipfile

import datasets
import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import encoded, photo, pixels
from PIL import Image

from diagan.config import ImageFolder
from diagan.data import load_dataset
from diagan.data.folder import list_images, nearest_side
from diagan.data.listing import binary
from diagan.errors import UserError

N = 20


def load(path, seed=0, size=32, group_by=None):
    return load_dataset(ImageFolder(path=str(path), size=size, group_by=group_by), seed=seed)


def everything(data):
    """All images by their name, those held out too."""
    return data.n + len(data.heldout)


def write_folder(folder, n=N):
    folder.mkdir(exist_ok=True)
    for i in range(n):
        photo(i).save(folder / f"{i:02}.png")


def write_csv(folder, lines, header="file_name,group,hat"):
    (folder / "metadata.csv").write_text("\n".join([header, *lines]) + "\n")


def write_zip(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_parquet(path, columns, image="image"):
    rows = [{"bytes": encoded(photo(i)), "path": None} for i in range(N)]
    pq.write_table(pyarrow.table({image: rows, **columns}), path)
    return path


# --- metadata.csv --------------------------------------------------------------------------------


def test_a_csv_gives_groups_and_attributes(tmp_path):
    write_folder(tmp_path)
    write_csv(tmp_path, [f"{i:02}.png,{'cat' if i < 17 else 'dog'},{i % 2}" for i in range(N)])
    data = load(tmp_path)
    assert data.group_names == ("cat", "dog")
    assert data.rare == 1
    numbers = np.array([int(name[:2]) for name in data.files])
    assert np.array_equal(data.groups, numbers >= 17)
    assert np.array_equal(data.attributes["hat"], numbers % 2)
    assert len(data.heldout_attributes["hat"]) == len(data.heldout) == 1
    assert load(tmp_path, group_by="hat").group_names == ("0", "1")


def test_a_csv_that_disagrees_with_the_folder(tmp_path):
    write_folder(tmp_path)
    lines = [f"{i:02}.png,a,0" for i in range(2, N)]
    write_csv(tmp_path, [*lines, "gone.png,b,1", "../secret.png,b,1", "/etc/passwd,b,1"])
    data = load(tmp_path)
    assert everything(data) == N - 2
    told = "3 that metadata.csv names are not there: ../secret.png, /etc/passwd, gone.png"
    assert told in data.notes
    assert "2 that metadata.csv does not name, left out: 00.png, 01.png" in data.notes


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"name,group\n00.png,a\n", "has the columns name, group; expected file_name"),
        (b"file_name,a,a\n00.png,1,2\n", "no name twice"),
        (b"file_name,a\n00.png,1\n01.png\n", "line 3 of .* has 1 values; expected 2"),
        (b"", "not a sound CSV file"),
        (b"\xff\xfe\x00", "not a sound CSV file"),
    ],
)
def test_a_bad_csv_is_refused(tmp_path, content, told):
    write_folder(tmp_path)
    (tmp_path / "metadata.csv").write_bytes(content)
    with pytest.raises(UserError, match=told):
        load(tmp_path)


def test_a_column_that_is_not_there_is_refused(tmp_path):
    write_folder(tmp_path)
    with pytest.raises(UserError, match="has no column colour to group by"):
        load(tmp_path, group_by="colour")
    write_csv(tmp_path, [f"{i:02}.png,a,0" for i in range(N)])
    with pytest.raises(UserError, match="did you mean group"):
        load(tmp_path, group_by="goup")


def test_a_column_of_names_is_no_group_by_itself(tmp_path):
    write_folder(tmp_path, 12)
    lines = [f"{i:02}.png,{i}" for i in range(12)]
    write_csv(tmp_path, lines, "file_name,person")
    assert load(tmp_path).group_names == ("all",)


# --- zip -----------------------------------------------------------------------------------------


def test_a_zip_is_its_folder(tmp_path):
    for i in range(N):
        folder = tmp_path / "set" / "photos" / ("cats" if i < 15 else "dogs")
        folder.mkdir(parents=True, exist_ok=True)
        photo(i).save(folder / f"{i:02}.png")
    root = tmp_path / "set"
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*.png")}
    path = write_zip(tmp_path / "set.zip", {
        **files, "__MACOSX/photos/._01.png": b"fork", ".thumbnails/01.png": files[min(files)]
    })  # fmt: skip
    packed, loose = load(path), load(root)
    assert packed.group_names == loose.group_names == ("cats", "dogs")  # below what all share
    assert packed.files == loose.files
    assert packed.fingerprint == loose.fingerprint
    assert everything(packed) == N


def test_a_csv_in_a_zip_lies_beside_its_files(tmp_path):
    files = {f"a/{i:02}.png": encoded(photo(i)) for i in range(N)}
    files["a/metadata.csv"] = "file_name,label\n" + "".join(
        f"./{i:02}.png,{'x' if i else 'y'}\n" for i in range(N)
    )
    assert load(write_zip(tmp_path / "a.zip", files)).group_names == ("x", "y")


def test_a_zip_with_names_that_lead_out(tmp_path):
    files = {f"{i:02}.png": encoded(photo(i)) for i in range(N)}
    for name in ("../evil.png", "/etc/evil.png", "a/../../evil.png", "..\\evil.png", "C:\\e.png"):
        files[name] = encoded(photo(99))
    data = load(write_zip(tmp_path / "x.zip", files))
    assert everything(data) == N
    assert any(note.startswith("5 left out, as they lead out of the zip: ") for note in data.notes)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.zip"]  # nothing was unpacked
    assert not (tmp_path.parent / "evil.png").exists()


@pytest.mark.parametrize("keep", [0, 1, 100, -30])
def test_a_truncated_zip_is_refused(tmp_path, keep):
    path = write_zip(tmp_path / "x.zip", {f"{i}.png": encoded(photo(i)) for i in range(N)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"x\.zip is not a sound zip file"):
        load(path)


def test_a_damaged_entry_is_skipped_and_named(tmp_path):
    path = write_zip(tmp_path / "x.zip", {f"{i:02}.png": encoded(photo(i)) for i in range(N)})
    content = bytearray(path.read_bytes())
    content[content.index(encoded(photo(7))) + 200] ^= 255  # its checksum no longer holds
    path.write_bytes(content)
    data = load(path)
    assert everything(data) == N - 1
    assert "1 unreadable, skipped: 07.png" in data.notes


def test_an_entry_that_is_huge_when_unpacked_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr("diagan.data.tree.MAX_ENTRY_BYTES", 10_000)
    files = {f"{i:02}.png": encoded(photo(i)) for i in range(N)}
    data = load(write_zip(tmp_path / "x.zip", {**files, "bomb.png": b"\0" * 20_000}))
    assert "1 unreadable, skipped: bomb.png" in data.notes


# --- parquet and the hub -------------------------------------------------------------------------


def test_a_parquet_file(tmp_path):
    columns = {"label": np.arange(N) % 2, "hat": np.arange(N) < 5, "weight": np.ones(N)}
    data = load(write_parquet(tmp_path / "x.parquet", columns))
    assert data.group_names == ("0", "1")
    rows = [int(name.removeprefix("row ")) for name in data.files]
    assert np.array_equal(data.attributes["hat"], np.array(rows) < 5)
    assert "weight" not in data.attributes
    for row, value in zip(rows, data.values):
        assert np.array_equal(value, pixels(photo(row)))


def test_a_parquet_file_with_names_of_classes(tmp_path):
    path = tmp_path / "x.parquet"
    features = datasets.Features(
        {"img": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    rows = {"img": [photo(i) for i in range(N)], "label": [i % 2 for i in range(N)]}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(path)
    assert load(path).group_names == ("cat", "dog")


def test_a_parquet_row_cannot_name_a_file_of_the_machine(tmp_path):
    photo(0).save(tmp_path / "secret.png")
    rows = [{"bytes": encoded(photo(i)), "path": None} for i in range(N)]
    rows[3] = {"bytes": None, "path": str(tmp_path / "secret.png")}
    pq.write_table(pyarrow.table({"image": rows}), tmp_path / "x.parquet")
    assert "1 unreadable, skipped: row 3" in load(tmp_path / "x.parquet").notes


def test_bad_parquet_files_are_refused(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", {})
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(UserError, match="not a sound parquet file"):
        load(path)
    pq.write_table(pyarrow.table({"text": ["a"] * N}), path)
    with pytest.raises(UserError, match="has the columns text; expected one with encoded images"):
        load(path)
    pq.write_table(pyarrow.table({"image": pyarrow.array([], pyarrow.binary())}), path)
    with pytest.raises(UserError, match="it has no rows"):
        load(path)


def test_a_hub_name_is_asked_for(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "x.parquet", {"label": np.arange(N) % 2}, image="img")
    asked = []

    def hub(name, split):
        asked.append((name, split))
        return datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "load_dataset", hub)
    data, same = load("someone/cats-and-dogs"), load(path)
    assert asked == [("someone/cats-and-dogs", "train")]
    assert data.fingerprint == same.fingerprint
    assert data.group_names == same.group_names == ("0", "1")


def test_a_hub_out_of_reach_is_one_sentence(tmp_path, monkeypatch):
    def hub(*_, **__):
        raise ConnectionError("Couldn't reach the hub\nand much more")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "load_dataset", hub)
    with pytest.raises(UserError, match="if a folder was meant: there is none") as caught:
        load("photos/cats")
    assert "\n" not in str(caught.value)
    for path in ("photos", "./photos/cats", "photos/cats.zip", "/photos/cats", "a/b/c"):
        with pytest.raises(UserError, match="does not exist"):
            load(path)


# --- arrays --------------------------------------------------------------------------------------

COLOUR = np.random.default_rng(0).integers(0, 256, (N, 40, 36, 3), np.uint8)


@pytest.mark.parametrize(
    ("array", "channels"),
    [
        (COLOUR, 3),
        (COLOUR.transpose(0, 3, 1, 2), 3),
        (COLOUR[..., 0], 1),
        (COLOUR[..., :1], 1),
        (COLOUR[:, None, ..., 0], 1),
    ],
)
def test_arrays_of_every_layout(tmp_path, array, channels):
    np.save(tmp_path / "x.npy", array)
    data = load(tmp_path / "x.npy", size=36)
    assert data.shape == (channels, 36, 36)
    for name, value in zip(data.files, data.values):
        image = COLOUR[int(name.removeprefix("row "))].transpose(2, 0, 1)[:channels]
        assert np.array_equal(value, image[:, 2:38])  # the centre of 40 x 36


def test_an_npz_with_columns(tmp_path):
    classes = np.array(["cat"] * 15 + ["dog"] * 5)
    np.savez(tmp_path / "x.npz", images=COLOUR, label=classes, hat=np.arange(N) % 2, other=[1.5])
    data = load(tmp_path / "x.npz")
    assert data.group_names == ("cat", "dog")
    assert set(data.attributes) == {"hat"}


def lying_npy(shape):
    """A header that promises more than there is."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.npy", npy(np.array([{}, None] * 6)), "pickled"),
        ("x.npz", npz(images=COLOUR, label=np.array([{}] * N)), "pickled"),
        ("x.npy", b"\x80\x04\x95 a pickle", "pickled objects, or is no NumPy file"),
        ("x.npy", b"", "cannot be used"),
        ("x.npy", npy(COLOUR)[:-100], "cannot be used"),
        ("x.npy", lying_npy((10**12, 32, 32)), "cannot be used"),
        ("x.npz", npz(images=COLOUR)[:-100], "cannot be used"),
        ("x.npy", npy(COLOUR.astype(np.float32)), r"holds float32 \(20, 40, 36, 3\); expected"),
        ("x.npy", npy(COLOUR[..., :2]), r"holds uint8 \(20, 40, 36, 2\)"),
        ("x.npy", npy(COLOUR[:0]), r"holds no images: uint8 \(0, 40, 36, 3\)"),
        ("x.npy", npy(np.zeros((20, 2), np.uint8)), r"holds uint8 \(20, 2\)"),
        ("x.npz", npz(a=COLOUR, b=COLOUR), r"holds a .*, b .*; expected uint8 images"),
        ("x.npz", npz(), "holds nothing"),
    ],
)
def test_bad_arrays_are_refused(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=told):
        load(tmp_path / name)


# --- the side, and what says yes or no -----------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "nearest"),
    [(1, 32), (28, 32), (47, 32), (49, 64), (97, 128), (178, 128), (193, 256), (900, 256)],
)
def test_the_nearest_side(tmp_path, side, nearest):
    for i in range(3):
        Image.new("L", (side, side + 30 * i)).save(tmp_path / f"{i}.png")
    (tmp_path / "bad.png").write_text("no picture")
    assert nearest_side(list_images(str(tmp_path))) == nearest


@settings(max_examples=30)
@given(
    has=st.lists(st.booleans(), min_size=1),
    words=st.sampled_from([("0", "1"), ("-1", "1"), ("False", "True"), (" false", "TRUE ")]),
)
def test_yes_and_no_in_every_spelling(has, words):
    column = np.array([words[h] for h in has])
    assert binary(column).tolist() == [int(h) for h in has]


@pytest.mark.parametrize("column", [["0", "1", "2"], ["0", "-1"], ["1", ""], ["yes", "no"]])
def test_columns_that_say_something_else(column):
    assert binary(np.array(column)) is None
