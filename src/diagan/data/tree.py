"""Files in folders, on the disk or in a zip, with what a metadata.csv says about them."""

import csv
import hashlib
import io
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from diagan.data.images import SUFFIXES
from diagan.data.listing import Listing, Opener, listed
from diagan.errors import UserError

METADATA = "metadata.csv"
NAME_COLUMN = "file_name"
MAX_ENTRY_BYTES = 256 * 2**20  # of one file in a zip, unpacked


def list_folder(folder: Path) -> Listing:
    """Every image file below a folder; links are followed, each folder once."""
    found = _walk(folder)
    names = [name for name in found if _is_image(name)]
    table, notes = _metadata(folder, found, names, lambda name: (folder / name).read_bytes())
    if table:
        names = [name for name in names if name in table.rows]
    return Listing(
        where=str(folder),
        names=[printable(name) for name in _expect_some(folder, names)],
        openers=lambda: (partial(Path, folder, name) for name in names),
        content=lambda: content_digest(folder, names),
        columns=table.columns(names) if table else {},
        notes=(*notes, *_others(found)),
        each="image files",
    )


def list_zip(path: Path) -> Listing:
    """Every image file in a zip, read where it is: nothing is unpacked on the disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {e.filename: e for e in archive.infolist() if not e.is_dir()}
            safe = sorted(name for name in entries if not _leads_out(name))
            names = [name for name in safe if _is_image(name)]
            read = partial(_entry, archive)
            table, notes = _metadata(path, safe, names, lambda name: read(entries[name]).read())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise UserError(f"{path} is not a sound zip file: {error}") from None
    outside = sorted(entries.keys() - set(safe))
    if outside:
        notes.append(listed(f"{len(outside):,} left out, as they lead out of the zip: ", outside))
    if table:
        names = [name for name in names if name in table.rows]

    def openers() -> Iterator[Opener]:
        with zipfile.ZipFile(path) as archive:
            for name in names:
                yield partial(_entry, archive, entries[name])

    return Listing(
        where=str(path),
        names=[printable(name) for name in _expect_some(path, names)],
        openers=openers,
        content=lambda: file_digest(path),
        columns=table.columns(names) if table else {},
        notes=(*notes, *_others(safe)),
        each="image files",
    )


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def printable(name: str) -> str:
    """A name that is no UTF-8 can still be printed."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _walk(folder: Path) -> list[str]:
    """Paths of files below the folder, relative and sorted."""
    found: list[str] = []
    seen: set[str] = set()
    for parent, children, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        if real in seen:  # a link back to a folder that was walked already
            children.clear()
            continue
        seen.add(real)
        paths = (Path(parent, name) for name in names)
        found += (path.relative_to(folder).as_posix() for path in paths if path.is_file())
    return sorted(found)


def _is_image(name: str) -> bool:
    path = PurePosixPath(name)
    # What is hidden, as thumbnails are, and what a Mac leaves behind.
    is_hidden = any(part.startswith(".") for part in path.parts) or "__MACOSX" in path.parts
    return path.suffix.lower() in SUFFIXES and not is_hidden


def _others(names: list[str]) -> list[str]:
    """That there are files which do not end as images do, such as .heic."""
    paths = [PurePosixPath(name) for name in names if not _is_image(name)]
    ends = Counter(path.suffix.lower() or path.name for path in paths if path.name != METADATA)
    kinds = [f"{n:,} {printable(end)}" for end, n in ends.most_common()]
    return [listed(f"{ends.total():,} other files, not looked at: ", kinds)] if kinds else []


def _expect_some(where: Path, names: list[str]) -> list[str]:
    if not names:
        suffixes = ", ".join(sorted(SUFFIXES))
        raise UserError(f"{where} holds no images; expected files that end in {suffixes}")
    return names


def content_digest(folder: Path, names: list[str]) -> str:
    """sha256 over every file's relative path and bytes."""
    digest = hashlib.sha256()
    for name in names:
        try:
            content = hashlib.sha256((folder / name).read_bytes()).digest()
        except OSError:  # will be listed as unreadable
            content = b"unreadable"
        digest.update(hashlib.sha256(os.fsencode(name)).digest() + content)
    return digest.hexdigest()


def _leads_out(name: str) -> bool:
    """Absolute, on a drive, or upwards; by the rules of Windows, which include those of POSIX."""
    path = PureWindowsPath(name)
    return bool(path.anchor) or ".." in path.parts


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> io.BytesIO:
    if entry.file_size > MAX_ENTRY_BYTES:
        raise ValueError(f"{entry.file_size / 2**20:,.0f} MiB when unpacked")
    return io.BytesIO(archive.read(entry))


# --- metadata.csv --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """The rows of a metadata.csv by the path of their file, which is relative to the csv."""

    header: list[str]
    rows: dict[str, list[str]]

    def columns(self, names: list[str]) -> dict[str, np.ndarray]:
        place = self.header.index(NAME_COLUMN)
        cells = np.array([self.rows[name] for name in names], dtype=str)  # [N, columns]
        return {h: cells[:, i] for i, h in enumerate(self.header) if i != place}


def _metadata(
    where: Path, found: list[str], images: list[str], read: Callable[[str], bytes]
) -> tuple[_Table | None, list[str]]:
    """The table of the metadata.csv nearest to the top, and what it and the files disagree on."""
    tables = [name for name in found if PurePosixPath(name).name == METADATA]
    if not tables:
        return None, []
    name = min(tables, key=lambda name: (name.count("/"), name))
    table, notes = _parse(f"{where}/{name}", PurePosixPath(name).parent, read(name)), []
    missing = sorted(table.rows.keys() - set(found))
    if missing:
        notes.append(listed(f"{len(missing):,} that {METADATA} names are not there: ", missing))
    unnamed = [image for image in images if image not in table.rows]
    if unnamed:
        notes.append(listed(f"{len(unnamed):,} that {METADATA} does not name, left out: ", unnamed))
    return table, notes


def _parse(where: str, parent: PurePosixPath, content: bytes) -> _Table:
    try:
        header, *lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except (ValueError, csv.Error) as error:  # empty, no text, or a quote that never ends
        raise UserError(f"{where} is not a sound CSV file: {error}") from None
    if NAME_COLUMN not in header or len(set(header)) < len(header):
        raise UserError(
            f"{where} has the columns {', '.join(header)}; expected {NAME_COLUMN} and no name twice"
        )
    rows: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=2):
        if line and len(line) != len(header):
            raise UserError(
                f"line {number} of {where} has {len(line)} values; expected {len(header)}"
            )
        if line:
            path = line[header.index(NAME_COLUMN)].replace("\\", "/")
            rows[(parent / path).as_posix()] = line
    return _Table(header, rows)
