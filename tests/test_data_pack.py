import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from diagan.data.pack import Rows, load_or_pack
from diagan.errors import UserError

PIXELS = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)


class Source:
    """Rows that count how often they were read; `n_max` may promise more than there are."""

    def __init__(self, pixels=PIXELS, n_max=5, fail_at=None):
        self.pixels, self.n_max, self.fail_at, self.n_read = pixels, n_max, fail_at, 0

    def __call__(self):
        self.n_read += 1

        def rows():
            for i, row in enumerate(self.pixels):
                if i == self.fail_at:
                    raise KeyboardInterrupt
                yield row

        return Rows(self.n_max, (2, 3), rows(), {"labels": [1, 2]})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DIAGAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_packed_once_then_memory_mapped(cache):
    source = Source()
    for _ in range(2):
        rows, about = load_or_pack("set", ("key", 32), source)
        assert np.array_equal(rows, PIXELS)
        assert isinstance(rows, np.memmap)
        assert not rows.flags.writeable
        assert about == {"labels": [1, 2]}
    assert source.n_read == 1
    assert sorted(p.suffix for p in cache.iterdir()) == [".json", ".npy"]


def test_another_key_is_another_array(cache):
    load_or_pack("set", ("key", 32), Source())
    other = Source(255 - PIXELS)
    rows, _ = load_or_pack("set", ("key", 64), other)
    assert other.n_read == 1
    assert np.array_equal(rows, 255 - PIXELS)


@pytest.mark.parametrize("n_max", [5, 99, 123_456])
def test_fewer_rows_than_promised_leave_a_sound_file(cache, n_max):
    rows, _ = load_or_pack("set", ("key",), Source(n_max=n_max))
    assert np.array_equal(rows, PIXELS)
    (path,) = cache.glob("*.npy")
    assert np.array_equal(np.load(path, allow_pickle=False), PIXELS)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path):
    path.write_bytes(b"")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def delete(path):
    path.unlink()


@pytest.mark.parametrize("damage", [truncate, empty, flip_a_bit, delete])
@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_a_damaged_cache_is_rebuilt(cache, damage, suffix):
    load_or_pack("set", ("key",), Source())
    (path,) = cache.glob(f"*{suffix}")
    damage(path)
    source = Source()
    rows, about = load_or_pack("set", ("key",), source)
    assert np.array_equal(rows, PIXELS)
    assert about == {"labels": [1, 2]}
    assert source.n_read == 1


def test_a_json_of_another_make_is_rebuilt(cache):
    load_or_pack("set", ("key",), Source())
    (path,) = cache.glob("*.json")
    path.write_text(json.dumps([1, 2]))
    assert np.array_equal(load_or_pack("set", ("key",), Source())[0], PIXELS)


def test_an_interrupted_packing_leaves_nothing(cache):
    with pytest.raises(KeyboardInterrupt):
        load_or_pack("set", ("key",), Source(fail_at=3))
    assert list(cache.iterdir()) == []
    assert np.array_equal(load_or_pack("set", ("key",), Source())[0], PIXELS)


def test_a_full_disk_is_refused_before_anything_is_written(cache, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=64 * 2**20 + 29))
    with pytest.raises(UserError, match=r"needs 67 MB .* set DIAGAN_CACHE"):
        load_or_pack("set", ("key",), Source())
    assert list(cache.iterdir()) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=64 * 2**20 + 30))
    load_or_pack("set", ("key",), Source())


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIAGAN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match=r"cannot be written .* DIAGAN_CACHE"):
        load_or_pack("set", ("key",), Source())
