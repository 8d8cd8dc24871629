"""The settings of a run that is there, and its data, if they are still those that it saw."""

from diagan import config
from diagan.config import Config, ImageFolder
from diagan.data import Dataset, load_dataset
from diagan.errors import UserError
from diagan.rundir import RunDir, read_json


def read_settings(run: RunDir) -> Config:
    return config.loads(run.config.read_text(), str(run.config))


def load_data(run: RunDir, settings: Config) -> Dataset:
    try:
        data = load_dataset(settings.data, seed=settings.seed, root=settings.data_root)
    except UserError as error:
        if not isinstance(settings.data, ImageFolder):
            raise
        moved = f"diagan run --config {run.config} --out {run.path} --data.path PLACE"
        raise UserError(f"{error}; if they were moved, tell the run: {moved}") from None
    refuse_other_data(run, data)
    return data


def refuse_other_data(run: RunDir, data: Dataset) -> None:
    """The same config can mean other data, where a person's folder has changed."""
    if read_json(run.provenance)["data"]["fingerprint"] != data.fingerprint:
        raise UserError(
            f"the data are not those that {run.path} was trained on; bring them back as they "
            "were, or train on these with another --out"
        )
