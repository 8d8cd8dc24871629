"""Config <-> config.json. Unknown keys are refused by name."""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from diagan.config.checks import check
from diagan.config.settings import Config
from diagan.errors import UserError, did_you_mean

FORMAT = 1


def to_json(config: Config) -> dict[str, Any]:
    return {"format": FORMAT, **_encode(config)}


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        kind = getattr(value, "kind", None)
        return {"kind": kind, **fields} if kind else fields
    return list(value) if isinstance(value, tuple) else value


def flat(config: Config) -> dict[str, Any]:
    """Every setting under its dotted name."""

    def walk(value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            return {name: value}
        return {k: v for key in value for k, v in walk(value[key], f"{name}.{key}").items()}

    return {key.removeprefix("."): value for key, value in walk(to_json(config), "").items()}


def from_json(obj: Mapping[str, Any]) -> Config:
    """The config that `to_json` wrote; a key that does not exist is refused with its neighbours."""
    values = dict(obj)
    version = values.pop("format", FORMAT)
    if version != FORMAT:
        raise UserError(f"config.json has format {version}; this diagan reads format {FORMAT}")
    config = _decode(Config, values, "config")
    assert isinstance(config, Config)
    return check(config)


def loads(text: str, where: str) -> Config:
    try:
        obj = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(obj, dict):
        raise UserError(f"{where} holds no config: expected a JSON object")
    return from_json(obj)


def _decode(kind: Any, value: Any, where: str) -> Any:
    if typing.get_origin(kind) in (Union, types.UnionType):
        return _decode_union(typing.get_args(kind), value, where)
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise UserError(f"{where}: expected one of {', '.join(choices)}, got {value!r}")
        return value
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list) or len(value) != len(typing.get_args(kind)):
            raise UserError(f"{where}: expected a list of {len(typing.get_args(kind))} numbers")
        return tuple(_decode(k, v, where) for k, v in zip(typing.get_args(kind), value))
    wanted = (int, float) if kind is float else kind
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{where}: expected {kind.__name__}, got {value!r}")
    return kind(value)


def _decode_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    named = {k.kind: k for k in kinds if hasattr(k, "kind")}
    if not named:
        return _decode(next(k for k in kinds if k is not type(None)), value, where)
    if not isinstance(value, dict) or value.get("kind") not in list(named):  # may be a list
        raise UserError(f"{where}: expected a kind of {', '.join(named)}")
    rest = {key: v for key, v in value.items() if key != "kind"}
    return _decode_dataclass(named[value["kind"]], rest, where)


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise UserError(f"{where}: expected an object, got {value!r}")
    hints = typing.get_type_hints(kind)
    fields = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            raise UserError(f"{where} has no key {key!r}{did_you_mean(key, fields)}")
    decoded = {key: _decode(fields[key], v, f"{where}.{key}") for key, v in value.items()}
    for f in dataclasses.fields(kind):
        is_needed = f.default is f.default_factory is dataclasses.MISSING
        if is_needed and f.name not in decoded:
            raise UserError(f"{where} needs the key {f.name!r}")
    return kind(**decoded)
