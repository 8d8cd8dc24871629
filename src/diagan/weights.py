"""Public weight files: imported once, checked, and kept where no file that is loaded can run code.

`<cache>/weights/<name>.safetensors` holds the tensors, `<name>.json` where they come from. Nothing
is downloaded but by `fetch`.
"""

import hashlib
import json
import shutil
import tempfile
import urllib.request
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from diagan.data.pack import cache_dir
from diagan.errors import UserError
from diagan.networks import inception, vgg
from diagan.rundir import replacing, write_json, writing

Shapes = Mapping[str, torch.Size]


@dataclass(frozen=True)
class Known:
    """A public weight file: its names, how its SHA-256 begins, where it lies, what is in it."""

    files: tuple[str, ...]
    prefix: str
    url: str
    shapes: Callable[[], Shapes]


KNOWN = {
    "inception": Known(
        files=(
            "pt_inception-2015-12-05-6726825d.pth",
            "weights-inception-2015-12-05-6726825d.pth",
        ),
        prefix="6726825d",
        url="https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/"
        "pt_inception-2015-12-05-6726825d.pth",
        shapes=inception.shapes,
    ),
    "vgg16": Known(
        files=("vgg16-397923af.pth",),
        prefix="397923af",
        url="https://download.pytorch.org/models/vgg16-397923af.pth",
        shapes=vgg.shapes,
    ),
}


@dataclass(frozen=True)
class Stored:
    """A file that was imported. `sha256` is that of the original, `content` of what is kept."""

    name: str
    sha256: str
    source: str
    content: str

    @property
    def path(self) -> Path:
        return _folder() / f"{self.name}.safetensors"


class Weights(NamedTuple):
    """Tensors by name, the SHA-256 of their file, and whether it is the public one."""

    tensors: dict[str, Tensor]
    sha256: str
    known: bool


def import_weights(file: str | Path, source: str | None = None) -> Stored:
    """Check a downloaded file and keep its tensors in the cache; nothing is kept of a wrong one."""
    path = Path(file).expanduser()
    name = _name_of(path)
    sha256 = _sha256(path)
    if not sha256.startswith(KNOWN[name].prefix):
        raise UserError(
            f"{path} is not the file that its name says: its SHA-256 begins with {sha256[:8]}, not "
            f"with {KNOWN[name].prefix}; it is truncated or changed, download it again"
        )
    content = save(_read(path, name))
    stored = Stored(name, sha256, source or path.name, hashlib.sha256(content).hexdigest())
    with replacing(stored.path) as temporary:
        temporary.write_bytes(content)
    write_json(_about(name), asdict(stored))  # last: it vouches for the tensors
    return stored


def find_weights(name: str) -> Stored | None:
    """What was imported under this name, if anything."""
    _expect_known(name)
    try:
        return Stored(**json.loads(_about(name).read_text()))
    except (OSError, ValueError, TypeError):  # absent or garbled
        return None


def load_weights(name: str, path: str | Path | None = None) -> Weights:
    """The tensors from a given file of any name, or else from what was imported."""
    _expect_known(name)
    if path is not None:
        path = Path(path).expanduser()
        sha256 = _sha256(path)
        return Weights(_read(path, name), sha256, sha256.startswith(KNOWN[name].prefix))
    stored = find_weights(name)
    if stored is None:
        raise UserError(
            f"there are no weights of {name} here: run `diagan weights fetch {name}`, or download "
            f"{KNOWN[name].url} and run `diagan weights import FILE`"
        )
    if not stored.path.exists() or _sha256(stored.path) != stored.content:
        raise UserError(f"{stored.path} is damaged; run `diagan weights import FILE` again")
    return Weights(_read(stored.path, name), stored.sha256, known=True)


def fetch(name: str, say: Callable[[str], None] = print) -> Stored:
    """Download a known file from its public place, say from where, and import it."""
    _expect_known(name)
    url = KNOWN[name].url
    say(f"fetching {url}")
    with writing(_about(name)), tempfile.TemporaryDirectory(dir=_folder()) as folder:
        path = Path(folder) / url.rpartition("/")[2]
        try:
            with urllib.request.urlopen(url, timeout=60) as answer, path.open("wb") as out:
                shutil.copyfileobj(answer, out)
        except OSError as error:  # no network, no such file, cut off: all of them are OSErrors
            raise UserError(
                f"{url} could not be fetched ({error}); download it where there is a network and "
                "run `diagan weights import FILE`"
            ) from None
        return import_weights(path, source=url)


def _folder() -> Path:
    return cache_dir() / "weights"


def _about(name: str) -> Path:
    return _folder() / f"{name}.json"


def _expect_known(name: str) -> None:
    if name not in KNOWN:
        raise UserError(f"there are no known weights of {name!r}; expected {' or '.join(KNOWN)}")


def _name_of(path: Path) -> str:
    for name, known in KNOWN.items():
        if path.name in known.files:
            return name
    files = ", ".join(file for known in KNOWN.values() for file in known.files)
    raise UserError(f"{path.name} is no weight file that diagan knows; it knows {files}")


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _read(path: Path, name: str) -> dict[str, Tensor]:
    """The tensors of a .safetensors or .pth file, if they are those of the network."""
    found = _load(path)
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no tensors by name; give a weight file of {name}")
    wanted = KNOWN[name].shapes()
    # torch counts batches in newer files; nothing depends on it
    keys = {key for key in found if not str(key).endswith("num_batches_tracked")}
    odd = sorted(
        str(key)
        for key in wanted.keys() | keys
        if wanted.get(key) != getattr(found.get(key), "shape", None)
    )
    if odd:
        raise UserError(
            f"{path} does not hold the weights of {name}: {len(odd)} tensors are missing, unknown "
            f"or of another shape, {odd[0]} first"
        )
    return {key: found[key].contiguous() for key in wanted}


def _load(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd about the file is said below
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises a dozen kinds, down to KeyError
        if "Weights only load failed" in str(error):
            what = "holds more than tensors, such as code, and was not loaded"
        else:
            what = "is truncated, or no weight file"
        raise UserError(f"{path} {what}; download it again from its public place") from None
