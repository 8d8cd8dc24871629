"""The title, and what the page is about."""

from diagan.report.contents import Contents
from diagan.report.sections.common import Section

MODES = {
    "record": "a record of another trainer",
    "folders": "two folders of images",
    "checkpoint": "one look at a discriminator",
}


def head(c: Contents) -> Section:
    """Name, data, size and day."""
    diagnosis = c.diagnosis or {}
    kind = c.config.data.kind if c.config else MODES.get(diagnosis.get("mode", ""), "a diagnosis")
    about = {"kind": kind, "date": c.date, "n": diagnosis.get("n")}
    network = c.config.network.kind if c.config else None
    return Section({"name": c.name, "network": network, **about}, about)
