"""A metric's name pins its protocol: `fid50k_train` is FID of 50,000 fakes to the training data."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from diagan.errors import UserError


@dataclass(frozen=True)
class Protocol:
    """What a name says; numbers that a family does not have are 0."""

    name: str
    family: str
    n: int  # generated samples
    k: int = 0  # nearest neighbours
    ends: int = 0  # how many of the highest and of the lowest scored
    epochs: int = 0
    split: str = "train"


@dataclass(frozen=True)
class Family:
    form: str
    about: str

    @property
    def name(self) -> str:
        return self.form.partition("{")[0]


FAMILIES = (
    Family("fid{n}_{split}", "Fréchet distance of n fakes to all of a split (train, heldout)"),
    Family("kid{n}_{split}", "kernel distance, with its standard error"),
    Family("is{n}", "Inception Score in 10 splits; needs an extractor with classes"),
    Family("pr{n}_k{k}", "precision and recall of n reals and n fakes, k nearest neighbours"),
    Family("dc{n}_k{k}", "density and coverage"),
    Family("partial_recall{n}_k{k}", "recall within each group"),
    Family("partial_fid{n}_ends{ends}", "FID to the highest and to the lowest scored reals"),
    Family("group_fid{n}", "FID to the reals of each group"),
    Family("re{n}_epochs{epochs}", "reconstruction error by group, autoencoder trained on n fakes"),
    Family("shares{n}", "how often each group occurs"),
    Family("missing{n}", "kinds of reals that are less than half as frequent among the fakes"),
)
FIELDS = {"n": r"[1-9]\d*k?", "split": "train|heldout", "k": r"[1-9]\d*", "ends": r"[1-9]\d*k?",
          "epochs": r"[1-9]\d*"}  # fmt: skip


def parse(name: str) -> Protocol:
    """The protocol of a name, or a sentence that lists the forms there are."""
    for family in FAMILIES:
        pattern = re.sub(r"\{(\w+)\}", lambda m: f"(?P<{m[1]}>{FIELDS[m[1]]})", family.form)
        if match := re.fullmatch(pattern, name):
            found = {"split": "train", "k": "0", "ends": "0", "epochs": "0"} | match.groupdict()
            numbers = {key: count(found[key]) for key in ("n", "k", "ends", "epochs")}
            return Protocol(name, family.name, split=found["split"], **numbers)
    forms = ", ".join(family.form for family in FAMILIES)
    raise UserError(f"there is no metric {name!r}; expected one of {forms}, such as fid10k_train")


def defaults(n: int, *, with_groups: bool) -> tuple[str, ...]:
    """What is measured if nothing is said: quick, and without a network to be trained."""
    each = short(n)
    names = (f"fid{each}_train", f"kid{each}_train", f"pr{each}_k3", f"dc{each}_k5",
             f"missing{each}")  # fmt: skip
    return (*names, f"partial_recall{each}_k3", f"shares{each}") if with_groups else names


def parse_all(names: Sequence[str]) -> list[Protocol]:
    return [parse(name) for name in dict.fromkeys(names)]


def count(text: str) -> int:
    """50000 of `50k`."""
    return int(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)


def short(n: int) -> str:
    """`50k` of 50000; `1234` as it is."""
    return f"{n // 1000}k" if n % 1000 == 0 else str(n)
