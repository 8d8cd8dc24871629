"""What an experiment is."""

from dataclasses import dataclass

from diagan.config import Config


@dataclass(frozen=True)
class Experiment:
    """A named config. `paper` says which table or figure it belongs to, `needs` what it takes."""

    name: str
    about: str
    paper: str
    config: Config
    needs: str = ""
