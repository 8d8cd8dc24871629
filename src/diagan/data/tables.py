"""Tables with a column of encoded images: a parquet file, or a dataset on the Hugging Face hub."""

import io
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diagan.data.images import Source
from diagan.data.listing import Listing, Opener
from diagan.data.tree import file_digest
from diagan.errors import UserError

HUB = {
    "mnist": "ylecun/mnist",
    "fashion_mnist": "zalando-datasets/fashion_mnist",
    "cifar10": "uoft-cs/cifar10",
    "celeba": "flwrlabs/celeba",
    "ffhq": "merkol/ffhq-256",
}
BATCH = 256  # rows that are read at a time


def list_split(name: str, split: str, root: str | None) -> Listing:
    """A split of a set of the paper: ROOT/name/split.parquet, or the hub's."""
    if root is None:
        return list_hub(HUB[name], split, f"pass --data-root FOLDER, with {name}/ in it")
    path = Path(root).expanduser() / name / f"{split}.parquet"
    if not path.is_file():
        raise UserError(f"{path} is not there; --data-root expects a folder with {name}/ in it")
    return list_parquet(path)


def list_parquet(path: Path) -> Listing:
    """The rows of a parquet file, read a few at a time."""
    import datasets
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        features = datasets.Features.from_arrow_schema(file.schema_arrow)
        column = _image_column(str(path), features)
        known = [name for name in features if name != column and _is_plain(features[name])]
        table = file.read(columns=known)
    except (OSError, ValueError, KeyError, TypeError) as error:  # pyarrow's are ValueErrors
        raise UserError(f"{path} is not a sound parquet file: {first_line(error)}") from None
    columns = {name: _values(features[name], table[name].to_pylist()) for name in known}

    def openers() -> Iterator[Opener]:
        with pyarrow.parquet.ParquetFile(path) as rows:
            for batch in rows.iter_batches(BATCH, columns=[column]):
                yield from (partial(_encoded, cell) for cell in batch[0].to_pylist())

    return _listing(str(path), file.metadata.num_rows, openers, file_digest(path), columns)


def list_hub(name: str, split: str = "train", otherwise: str = "") -> Listing:
    """The rows of a dataset on the hub; datasets keeps its own copy of what it fetched."""
    import datasets

    rows = fetch(name, split, otherwise)
    column = _image_column(name, rows.features)
    known = [c for c in rows.features if c != column and _is_plain(rows.features[c])]
    columns = {c: _values(rows.features[c], list(rows[c])) for c in known}
    images = rows.select_columns([column]).cast_column(column, datasets.Image(decode=False))
    inside = Path(datasets.config.HF_CACHE_HOME)

    def openers() -> Iterator[Opener]:
        for batch in images.iter(BATCH):
            yield from (partial(_encoded, cell, inside) for cell in batch[column])

    return _listing(name, len(rows), openers, f"{rows._fingerprint}-{len(rows)}", columns)


def fetch(name: str, split: str, otherwise: str = "") -> Any:
    """A dataset of the hub; `otherwise` says what to do where it cannot be had."""
    import datasets

    try:
        return datasets.load_dataset(name, split=split)
    except Exception as error:  # offline, gated, proxy, disk: the hub has a dozen exceptions
        raise UserError(
            f"{name} could not be fetched from the Hugging Face hub ({first_line(error)}); "
            f"{otherwise or 'check the name and the connection'}"
        ) from None


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _listing(
    where: str, n: int, openers: Any, content: str, columns: dict[str, np.ndarray]
) -> Listing:
    if n == 0:
        raise UserError(f"{where} holds no images: it has no rows")
    return Listing(where, [f"row {i}" for i in range(n)], openers, lambda: content, columns)


def _image_column(where: str, features: Mapping[str, Any]) -> str:
    """`image` or `img`, or else the only column that can hold images."""
    able = [name for name, kind in features.items() if _holds_images(kind)]
    for name in ("image", "img"):
        if name in able:
            return name
    if len(able) != 1:
        raise UserError(
            f"{where} has the columns {', '.join(features)}; expected one with encoded images, "
            "named image"
        )
    return able[0]


def _holds_images(kind: Any) -> bool:
    import datasets

    if isinstance(kind, dict):
        return "bytes" in kind
    return isinstance(kind, datasets.Image) or getattr(kind, "dtype", "").endswith("binary")


def _is_plain(kind: Any) -> bool:
    dtype = getattr(kind, "dtype", "")
    return isinstance(dtype, str) and dtype.startswith(("string", "large_string", "int", "bool"))


def _values(kind: Any, cells: list[Any]) -> np.ndarray:
    """A column [N]; the names of classes instead of their numbers, where they are known."""
    if hasattr(kind, "int2str"):
        return np.array(["" if c is None or c < 0 else kind.int2str(c) for c in cells], dtype=str)
    return np.array(["" if c is None else str(c) for c in cells], dtype=str)


def _encoded(cell: Any, inside: Path | None = None) -> Source:
    """The bytes of a cell; a path only where it lies in the hub's cache, never anywhere else."""
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    if isinstance(content, bytes):
        return io.BytesIO(content)
    path = cell.get("path") if isinstance(cell, dict) else None
    if path and inside and Path(path).resolve().is_relative_to(inside.resolve()):
        return Path(path)
    raise ValueError("no bytes of an image")
