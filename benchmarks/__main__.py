"""make bench: every benchmark in turn, one process, nothing beside it.

python -m benchmarks [NAME ...]        # all but `quality`, which takes an hour or more
"""

import sys

from benchmarks import looking, metrics, networks, overhead, quality, report, step, stream

BENCHMARKS = {
    "step": step,
    "networks": networks,
    "overhead": overhead,
    "stream": stream,
    "metrics": metrics,
    "looking": looking,
    "report": report,
    "quality": quality,
}
DEFAULT = ("step", "networks", "overhead", "stream", "metrics", "looking", "report")


def main() -> None:
    names = sys.argv[1:] or DEFAULT
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; expected {', '.join(BENCHMARKS)}")
    for name in names:
        print(f"== {name}: {(BENCHMARKS[name].__doc__ or '').splitlines()[0]}", flush=True)
        BENCHMARKS[name].main()


main()
