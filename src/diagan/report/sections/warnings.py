"""What went wrong, and what was done to the data."""

from diagan.report.contents import Contents
from diagan.report.sections.common import Section, all_warnings


def warnings(c: Contents) -> Section | None:
    """What went wrong, and what was done to the data."""
    data = c.provenance.get("data") or {}
    found, notes = all_warnings(c), [*(c.provenance.get("notes") or ()), *(data.get("notes") or ())]
    if not found and not notes:
        return None
    return Section({"warnings": found, "notes": notes}, {"warnings": found, "notes": notes},
                   sources=("diagnosis.json", "log.jsonl", "provenance.json"))  # fmt: skip
