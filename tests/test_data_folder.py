import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diagan.config import ImageFolder
from diagan.data import load_dataset
from diagan.data.images import decode, fit
from diagan.errors import UserError


def photo(seed=0, size=(32, 32), mode="RGB"):
    shape = (size[1], size[0], 3)
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, shape, np.uint8)).convert(
        mode
    )


def fill(folder, n=12, mode="RGB", prefix="a"):
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        photo(i, mode=mode).save(folder / f"{prefix}{i:03}.png")


def load(folder, seed=0, size=32):
    return load_dataset(ImageFolder(path=str(folder), size=size), seed=seed)


def notes(data):
    return "\n".join(data.notes)


# --- what is refused -----------------------------------------------------------------------------


def test_no_folder_a_missing_one_and_a_file_are_refused(tmp_path):
    (tmp_path / "file.png").write_text("")
    for path, message in [
        ("", "expected a folder"),
        (tmp_path / "none", "does not exist"),
        (tmp_path / "file.png", "is a file"),
    ]:
        with pytest.raises(UserError, match=message):
            load(path)


def test_an_empty_folder_and_one_of_other_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="holds no images; expected files that end in"):
        load(tmp_path)
    (tmp_path / "notes.txt").write_text("no picture")
    with pytest.raises(UserError, match="holds no images"):
        load(tmp_path)


def test_one_image_only_is_refused(tmp_path, session_cache):
    fill(tmp_path, 1)
    before = set(session_cache.iterdir())
    with pytest.raises(UserError, match="1 readable images of 1 files; at least 10"):
        load(tmp_path)
    assert set(session_cache.iterdir()) == before


def test_a_folder_of_text_named_png_is_refused_with_names(tmp_path):
    for i in range(12):
        (tmp_path / f"{i:02}.png").write_text("no picture")
    with pytest.raises(
        UserError, match=r"0 readable images of 12 files.*00\.png.*09\.png and 2 more$"
    ):
        load(tmp_path)


# --- what is skipped -----------------------------------------------------------------------------


def test_bad_files_are_skipped_and_named(tmp_path, monkeypatch):
    fill(tmp_path, 12)
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.jpg").write_bytes(b"")
    whole = tmp_path / "whole.jpg"
    photo(99, (64, 64)).save(whole)
    (tmp_path / "cut.jpg").write_bytes(whole.read_bytes()[:-400])
    whole.unlink()
    photo(98, (200, 200)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)  # Pillow raises beyond twice of it
    data = load(tmp_path)
    assert data.n + len(data.heldout) == 12
    assert "16 image files, 12 readable" in data.notes[0]
    assert "4 unreadable, skipped: bomb.png, cut.jpg, empty.jpg, text.png" in data.notes
    assert load(tmp_path).notes == data.notes  # the same from the cache


# --- what is converted ---------------------------------------------------------------------------


def test_mixed_sizes_and_modes_are_converted_and_said_so(tmp_path):
    fill(tmp_path, 10)
    photo(1, (80, 40), "L").save(tmp_path / "grey.png")
    photo(2, (40, 90), "RGBA").save(tmp_path / "alpha.png")
    photo(3, (20, 20), "P").save(tmp_path / "palette.png")
    photo(4, (32, 32), "CMYK").save(tmp_path / "print.jpg")
    Image.fromarray(np.full((32, 32), 40_000, np.uint16)).save(tmp_path / "deep.png")
    data = load(tmp_path)
    assert data.shape == (3, 32, 32)
    assert data.n + len(data.heldout) == 15
    for words in (
        "15 image files, 15 readable; used as 32 x 32 RGB",
        "2 converted from grey to RGB",
        "1 with transparency, laid on white",
        "1 converted from palette to RGB",
        "1 converted from CMYK to RGB",
        "1 scaled from 16 bit to 8 bit",
        "4 different sizes",
        "2 reduced to 32 pixels",
        "1 enlarged to 32 pixels",
        "2 cropped to the central square",
    ):
        assert words in data.notes, notes(data)


def test_a_grey_folder_keeps_one_channel(tmp_path):
    fill(tmp_path, 12, "L")
    photo(50, mode="LA").save(tmp_path / "alpha.png")
    data = load(tmp_path)
    assert data.shape == (1, 32, 32)
    for name, value in zip(data.files, data.values):
        if name != "alpha.png":
            assert np.array_equal(value[0], np.asarray(Image.open(tmp_path / name)))


def test_16_bit_is_scaled_not_clipped(tmp_path):
    levels = np.array([[0, 257, 32_768, 65_535]], dtype=np.uint16)
    Image.fromarray(levels).save(tmp_path / "deep.png")
    assert np.asarray(decode(tmp_path / "deep.png").image).tolist() == [[0, 1, 128, 255]]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_becomes_white(tmp_path, mode):
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    image.putpixel((0, 0), (10, 10, 10, 255))
    if mode == "P":
        flat = Image.new("P", (4, 4), 0)
        flat.putpalette([0, 0, 0, 10, 10, 10])
        flat.putpixel((0, 0), 1)
        flat.save(tmp_path / "x.png", transparency=0)
    else:
        image.convert(mode).save(tmp_path / "x.png")
    pixels = np.asarray(decode(tmp_path / "x.png").image)
    assert (pixels[0, 0] == 10).all()
    assert (pixels[1:] == 255).all()


def test_exif_orientation_is_applied(tmp_path):
    image = photo(0, (8, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 270 degrees to see it upright
    image.save(tmp_path / "x.png", exif=exif)
    decoded = decode(tmp_path / "x.png")
    assert decoded.turned
    assert np.array_equal(np.asarray(decoded.image), np.rot90(np.asarray(image), -1))


@pytest.mark.parametrize("size", [(178, 218), (218, 178), (10, 30), (32, 32), (33, 32), (3, 400)])
def test_fit_is_pils_resize_and_the_centre(size):
    image = photo(1, size)
    short = min(size)
    resized = image.resize(tuple(max(64, round(s * 64 / short)) for s in size), Image.BILINEAR)
    left, top = ((s - 64) // 2 for s in resized.size)
    expected = np.asarray(resized)[top : top + 64, left : left + 64]
    assert np.array_equal(np.asarray(fit(image, 64)), expected)


# --- groups, held-out, cache ---------------------------------------------------------------------


def test_sub_folders_are_groups_and_the_small_one_is_rare(tmp_path):
    fill(tmp_path / "cats" / "deep", 90)
    fill(tmp_path / "dogs", 15, prefix="b")
    data = load(tmp_path)
    assert data.group_names == ("cats", "dogs")
    assert data.rare == 1
    assert all(name.startswith(data.group_names[g]) for name, g in zip(data.files, data.groups))
    everything = np.bincount(data.groups) + np.bincount(data.heldout_groups, minlength=2)
    assert everything.tolist() == [90, 15]


def test_even_groups_have_no_rare_one_and_loose_images_form_a_group(tmp_path):
    fill(tmp_path / "cats", 10)
    fill(tmp_path / "dogs", 10, prefix="b")
    fill(tmp_path, 10, prefix="c")
    data = load(tmp_path)
    assert data.group_names == ("(top level)", "cats", "dogs")
    assert data.rare is None


@pytest.mark.parametrize("folders", [["cats"], [f"person{i}" for i in range(12)]])
def test_one_folder_or_one_image_a_folder_is_a_single_group(tmp_path, folders):
    for i, name in enumerate(folders):
        fill(tmp_path / name, 12 // len(folders), prefix=f"{i}-")
    data = load(tmp_path)
    assert data.group_names == ("all",)
    assert data.rare is None
    assert (data.n, len(data.heldout)) == (11, 1)


def test_heldout_is_that_of_every_seed_disjoint_and_empties_no_group(tmp_path):
    """The same for every seed: runs of a folder are compared image by image."""
    fill(tmp_path / "many", 149)
    fill(tmp_path / "one", 1, prefix="b")
    splits = [load(tmp_path, seed=s) for s in range(3)]
    assert len({s.fingerprint for s in splits}) == 1
    for data in splits:
        assert (data.n, len(data.heldout)) == (147, 3)
        assert "one/b000.png" in data.files
        assert data.files == tuple(sorted(data.files))
        held = {h.tobytes() for h in data.heldout}
        trained = {v.tobytes() for v in data.values[data.groups == 0]}
        assert not held & trained


def test_values_are_the_files_in_order(tmp_path):
    fill(tmp_path, 30)
    data = load(tmp_path)
    for name, value in zip(data.files, data.values):
        expected = np.asarray(Image.open(tmp_path / name)).transpose(2, 0, 1)
        assert np.array_equal(value, expected)


def test_a_changed_or_renamed_image_is_seen(tmp_path):
    fill(tmp_path, 12)
    before = load(tmp_path)
    photo(77).save(tmp_path / before.files[0])
    changed = load(tmp_path)
    assert changed.fingerprint != before.fingerprint
    (tmp_path / before.files[0]).rename(tmp_path / "zz.png")
    assert "zz.png" in (*load(tmp_path).files, *load(tmp_path, seed=1).files)


def test_a_name_that_is_no_utf8_can_still_be_printed(tmp_path):
    fill(tmp_path, 12)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")).write_bytes(b"")
    data = load(tmp_path)
    assert "1 unreadable, skipped: \\xff.png" in data.notes


def test_a_link_to_a_folder_is_followed_and_a_loop_ends(tmp_path):
    fill(tmp_path / "elsewhere", 12)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data/loop").symlink_to(tmp_path / "data")
    data = load(tmp_path / "data")
    assert data.n + len(data.heldout) == 12
