"""MNIST and Fashion-MNIST: parquet files or the Hugging Face hub -> one packed array a split."""

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from diagan.data.pack import Rows, load_or_pack
from diagan.data.tables import HUB, fetch, first_line
from diagan.errors import UserError

Transform = Literal["grey", "binary"]


def load_split(
    name: str, split: str, transform: Transform, size: int, root: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [N, size, size] (memory-mapped) and labels int64 [N] of `train` or `test`."""
    if root is None:
        table = fetch(
            HUB[name], split, f"pass --data-root FOLDER, with {name}/{split}.parquet in it"
        )
        source = f"{table._fingerprint}-{len(table)}"
    else:
        path = Path(root).expanduser() / name / f"{split}.parquet"
        table = None  # read only if it is not packed yet
        try:
            with path.open("rb") as file:
                source = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            raise UserError(
                f"{path} cannot be read; --data-root expects a folder with {name}/train.parquet "
                f"and {name}/test.parquet in it"
            ) from None

    def read() -> Rows:
        rows = _from_parquet(path) if table is None else table
        return _decoded(rows, f"{name}/{split}", transform, size)

    packed = f"{name}-{split}-{transform}-{size}"
    images, about = load_or_pack(packed, (source, transform, size), read)
    return images, np.array(about["labels"], dtype=np.int64)


def resized(grey: Image.Image, transform: Transform, size: int) -> np.ndarray:
    """`grey`, or `binary` (every non-zero pixel 255), then PIL's bilinear resize: uint8 [H, W]."""
    if transform == "binary":
        grey = grey.point([0] + [255] * 255)
    return np.asarray(grey.resize((size, size), Image.Resampling.BILINEAR))


def _from_parquet(path: Path) -> Any:
    """A Hugging Face dataset in memory: nothing of it is cached on the disk."""
    import datasets
    import pyarrow.parquet

    try:
        return datasets.Dataset(pyarrow.parquet.read_table(path))
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise UserError(f"{path} is not a sound parquet file: {first_line(error)}") from None


def _decoded(table: Any, where: str, transform: Transform, size: int) -> Rows:
    import datasets

    missing = {"image", "label"} - set(table.column_names)
    if missing:
        raise UserError(f"{where} has no column {' or '.join(sorted(missing))}; see --data-root")
    table = table.cast_column("image", datasets.Image(decode=False))
    labels: list[int] = []

    def rows() -> Iterator[np.ndarray]:
        for batch in table.iter(1000):
            for image, label in zip(batch["image"], batch["label"]):
                try:
                    with Image.open(io.BytesIO(image["bytes"])) as opened:
                        row = resized(opened.convert("L"), transform, size)
                except (OSError, ValueError, SyntaxError, TypeError) as error:
                    raise UserError(f"row {len(labels)} of {where}: {error}") from None
                labels.append(label)
                yield row

    return Rows(len(table), (size, size), rows(), {"labels": labels})
