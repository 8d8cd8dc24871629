"""Features of real data, computed once: a cache keyed by all that they depend on."""

from collections.abc import Callable, Iterator

import numpy as np

from diagan.data.dataset import fingerprint as fingerprint_of
from diagan.data.pack import Rows, load_or_pack
from diagan.features.common import Extractor, extract

CHUNK = 1024  # images that are picked out at once


def cached_features(
    extractor: Extractor,
    images: np.ndarray,
    fingerprint: str,
    *,
    indices: np.ndarray | None = None,
    batch_size: int = 64,
    on_batch: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Features float32 [N, F] of images (or of those at `indices`), memory-mapped if cached.

    `fingerprint` is that of the images. `on_batch` hears how many more were computed. An extractor
    without a version is never cached: nothing would say when its numbers change.
    """
    chosen = np.arange(len(images)) if indices is None else np.asarray(indices, dtype=np.int64)

    def rows() -> Iterator[np.ndarray]:
        parts = (images[chosen[i : i + CHUNK]] for i in range(0, len(chosen), CHUNK))
        for found in extract(extractor, parts, batch_size):
            yield from found.features.numpy()
            if on_batch:
                on_batch(len(found.features))

    if not extractor.version:
        return np.stack(list(rows()))
    key = (fingerprint, extractor.name, extractor.version, fingerprint_of(chosen), len(chosen))
    source = Rows(len(chosen), (extractor.dim,), rows(), dtype="<f4")
    return load_or_pack(f"features/{extractor.name}", key, lambda: source)[0]
