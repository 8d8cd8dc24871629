import hashlib
import json
import os
import urllib.error

import pytest
import torch
from torch import nn

from diagan import weights
from diagan.errors import UserError
from diagan.networks import inception, vgg
from diagan.weights import Known, fetch, find_weights, import_weights, load_weights


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DIAGAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weights"


@pytest.fixture
def download(tmp_path, monkeypatch):
    """Writes a public weight file and makes it the known one: its name has its hash."""

    def write(content: object) -> weights.Path:
        path = tmp_path / "download.pth"
        torch.save(content, path)
        prefix = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        path = path.rename(tmp_path / f"small-{prefix}.pth")
        shapes = {k: v.shape for k, v in tensors().items() if "num_batches" not in k}
        url = path.as_uri()
        known = Known(files=(path.name,), prefix=prefix, url=url, shapes=lambda: shapes)
        monkeypatch.setitem(weights.KNOWN, "small", known)
        return path

    return write


def refused(path, message):
    with pytest.raises(UserError, match=message) as caught:
        import_weights(path)
    assert "\n" not in str(caught.value)
    return True


def nothing_is_kept(cache):
    return not cache.exists() or not list(cache.iterdir())


def test_imported_then_found_and_loaded(cache, download):
    path = download(tensors())
    assert find_weights("small") is None
    stored = import_weights(path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert find_weights("small") == stored
    assert (stored.sha256, stored.source) == (sha256, path.name)
    assert json.loads((cache / "small.json").read_text())["sha256"] == sha256
    loaded = load_weights("small")
    assert loaded.known and loaded.sha256 == sha256
    assert sorted(p.name for p in cache.iterdir()) == ["small.json", "small.safetensors"]
    assert all(torch.equal(value, tensors()[key]) for key, value in loaded.tensors.items())
    assert len(loaded.tensors) == 6  # all but the count of batches


def test_a_name_that_nobody_knows(cache, tmp_path):
    path = tmp_path / "resnet50-0676ba61.pth"
    torch.save(tensors(), path)
    assert refused(path, "resnet50-0676ba61.pth is no weight file.*pt_inception-2015.*vgg16-397")
    with pytest.raises(UserError, match="'resnet'; expected inception or vgg16"):
        load_weights("resnet")


@pytest.mark.parametrize("file", [f for known in weights.KNOWN.values() for f in known.files])
def test_every_public_name_is_recognised_and_its_hash_checked(cache, tmp_path, file):
    path = tmp_path / file
    torch.save(tensors(), path)
    assert refused(path, f"SHA-256 begins with [0-9a-f]{{8}}, not with {file[-12:-4]}")
    assert nothing_is_kept(cache)


def test_truncated(cache, download):
    path = download(tensors())
    path.write_bytes(path.read_bytes()[:-100])
    assert refused(path, "truncated or changed, download it again")
    with pytest.raises(UserError, match="truncated, or no weight file"):
        load_weights("small", path)
    assert nothing_is_kept(cache)


class Payload:
    def __reduce__(self):
        return os.mkdir, ("proof-that-code-ran",)


def test_code_inside_is_not_run(cache, download, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = download({**tensors(), "extra": Payload()})
    assert refused(path, "holds more than tensors, such as code, and was not loaded")
    assert not (tmp_path / "proof-that-code-ran").exists()
    assert nothing_is_kept(cache)


def test_the_file_of_another_network(cache, download):
    assert refused(
        download({**tensors(), "2.weight": torch.zeros(2)}), "1 tensors are .* 2.weight first"
    )
    assert refused(download({**tensors(), "0.weight": torch.zeros(2)}), "0.weight first")
    assert refused(download(nn.Linear(2, 2).state_dict()), "not hold the weights of small: 8 ten")
    assert refused(download([1, 2]), "holds no tensors by name")
    assert nothing_is_kept(cache)


def test_no_file_at_all(cache, tmp_path):
    assert refused(tmp_path / "vgg16-397923af.pth", "cannot read .*No such file")


def test_missing_weights_name_both_commands(cache):
    with pytest.raises(UserError, match=r"`diagan weights fetch vgg16`.*`diagan weights import FI"):
        load_weights("vgg16")


def test_a_damaged_copy_in_the_cache(cache, download):
    stored = import_weights(download(tensors()))
    content = bytearray(stored.path.read_bytes())
    content[-1] ^= 1
    stored.path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged; run `diagan weights import FILE` again"):
        load_weights("small")


def test_by_path_any_name_will_do_but_only_the_public_file_is_known(cache, download, tmp_path):
    path = download(tensors())
    copy = tmp_path / "copy.pt"
    copy.write_bytes(path.read_bytes())
    assert load_weights("small", copy).known
    torch.save(tensors(seed=1), copy)
    assert not load_weights("small", copy).known
    assert nothing_is_kept(cache)


def test_fetch_says_from_where_and_imports(cache, download):
    path = download(tensors())
    said = []
    stored = fetch("small", said.append)
    assert said == [f"fetching {path.as_uri()}"]
    assert stored.source == path.as_uri() and load_weights("small").known
    assert sorted(p.name for p in cache.iterdir()) == ["small.json", "small.safetensors"]


def test_fetch_offline(cache, monkeypatch):
    def offline(*_, **__):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(weights.urllib.request, "urlopen", offline)
    with pytest.raises(UserError, match=r"could not be fetched \(.*not known.*weights import FILE"):
        fetch("vgg16", lambda _: None)
    assert nothing_is_kept(cache)


def test_the_known_files():
    for known in weights.KNOWN.values():
        assert all(f"-{known.prefix}.pth" in file for file in known.files)
        assert known.url.startswith("https://") and known.url.endswith(known.files[0])
    assert weights.KNOWN["inception"].shapes == inception.shapes
    assert weights.KNOWN["vgg16"].shapes == vgg.shapes
