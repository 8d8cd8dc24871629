"""Checkpoints: safetensors and a state.json in one folder, which appears whole or not at all."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from diagan.errors import UserError
from diagan.rundir import read_json, replacing, sync, write_json

FORMAT = 1
NAME = re.compile(r"(?P<stage>[a-z0-9_]+)-(?P<step>\d{6,})")


def folder_name(stage: str, step: int) -> str:
    return f"{stage}-{step:06d}"


def save(folder: Path, stage: str, step: int, files: Mapping[str, Mapping[str, Tensor]]) -> Path:
    """Write a checkpoint; an older one is untouched whatever happens here."""
    target = folder / folder_name(stage, step)
    if target.exists():
        return target
    temporary = folder / f".{target.name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        for name, tensors in files.items():
            flat = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
            save_file(flat, temporary / f"{name}.safetensors")
            sync(temporary / f"{name}.safetensors")
        write_json(temporary / "state.json", {"format": FORMAT, "stage": stage, "step": step})
        sync(temporary)
        temporary.rename(target)
        sync(folder)
    except (OSError, SafetensorError, UserError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise UserError(
            f"cannot write the checkpoint of step {step}: {error}; free some disk and run the same "
            "command again, it goes on from the checkpoint before"
        ) from error
    return target


def load(path: Path) -> dict[str, dict[str, Tensor]]:
    """The tensors of a checkpoint by file; a format from another time is refused by name."""
    state = read_json(path / "state.json")
    if state.get("format") != FORMAT:
        raise UserError(
            f"{path} has checkpoint format {state.get('format')}; this diagan reads {FORMAT}"
        )
    try:
        return {file.stem: load_file(file) for file in sorted(path.glob("*.safetensors"))}
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"the checkpoint {path} cannot be read ({error}); delete this folder, and the same "
            "command goes on from the checkpoint before"
        ) from None


def keep_network(net: torch.nn.Module, file: Path) -> None:
    """A network alone, as it is now."""
    flat = {name: x.detach().cpu().contiguous() for name, x in net.state_dict().items()}
    try:
        with replacing(file) as temporary:
            save_file(flat, temporary)
    except SafetensorError as error:
        raise UserError(f"cannot write {file}: {error}; free some disk and run it again") from error


def load_kept(net: torch.nn.Module, file: Path) -> None:
    try:
        tensors = load_file(file)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file} cannot be read ({error})") from None
    load_network(net, tensors, str(file))


def steps(folder: Path, stage: str) -> list[int]:
    """The steps at which a stage has checkpoints, in order."""
    names = [NAME.fullmatch(p.name) for p in folder.glob(f"{stage}-*")] if folder.exists() else []
    return sorted(int(m["step"]) for m in names if m and m["stage"] == stage)


def prune(folder: Path, stage: str, keep: int = 2) -> None:
    """Only the last ones of a stage stay; its end is the last of all."""
    for step in steps(folder, stage)[:-keep]:
        name = folder_name(stage, step)
        shutil.rmtree((folder / name).rename(folder / f".{name}.tmp"))  # never seen half gone


def load_network(net: torch.nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Fill a network, or say in one sentence that the checkpoint is of another one."""
    try:
        net.load_state_dict(dict(tensors))
    except RuntimeError as error:
        first = str(error).split("\n")[1].strip() if "\n" in str(error) else str(error)
        raise UserError(f"{where} holds another network than this config builds: {first}") from None


def optimiser_tensors(net: torch.nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and step counts under the names of the parameters."""
    return {
        f"{name}.{key}": torch.as_tensor(value)
        for name, parameter in net.named_parameters()
        for key, value in optimiser.state[parameter].items()
    }


def load_optimiser(
    net: torch.nn.Module, optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]
) -> None:
    for name, parameter in net.named_parameters():
        optimiser.state[parameter] = {
            key.removeprefix(f"{name}."): _beside(parameter, value)
            for key, value in tensors.items()
            if key.rpartition(".")[0] == name
        }


def _beside(parameter: Tensor, value: Tensor) -> Tensor:
    """A copy on the parameter's device and, where it has its shape, in its memory format.

    Fused Adam walks through memory: moments in another format would meet the wrong weights. Its
    step count too lies beside the parameter.
    """
    like = parameter if value.shape == parameter.shape else value
    return torch.empty_like(like, dtype=value.dtype, device=parameter.device).copy_(value)
