"""Missing modes: kinds of real images that a generator makes less than half as often."""

from diagan.report.contents import ARMS, Contents, arm_label
from diagan.report.sections.common import Section, capital, thumbs


def missing(c: Contents) -> Section | None:
    """For each arm the modes that `missing_modes` found, with their clearest members."""
    found = [line for line in c.metrics if line["metric"] == "missing_modes"]
    if not found or c.sprite is None:
        return None
    about = {key: found[-1][key] for key in ("n_real", "n_fake", "extractor")}
    lines = {arm_label(line): line for line in found if line.items() >= about.items()}
    order = [*(label for label in ARMS.values() if label in lines), *lines]
    arms = [
        {"label": capital(label), "modes": [mode | {"thumbs": thumbs(c, mode["examples"])}
                                            for mode in lines[label]["modes"]]}
        for label in dict.fromkeys(order)
    ]  # fmt: skip
    kept = [{"arm": label, "modes": line["modes"]} for label, line in lines.items()]
    return Section({"arms": arms, **about}, {**about, "arms": kept},
                   sources=("metrics.jsonl", "thumbnails.npz"))  # fmt: skip
