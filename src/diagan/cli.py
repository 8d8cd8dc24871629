"""The command line: finds the verb, parses its flags, and says in one line what went wrong."""

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import tyro

from diagan.errors import Interrupted, UserError, did_you_mean
from diagan.verbs import VERBS
from diagan.verbs.common import Verb, say

USAGE = """usage: diagan VERB ... (diagan VERB --help tells more)

diagan finds the training samples that a GAN under-represents, and repairs it.
"""

# What tyro says of a mistake, and how it is said here.
SENTENCES = (
    (r"Unrecognized options: (-.*?)(, .*)?", r"there is no flag \1"),
    (r"Unrecognized options: (.*?)(, .*)?", r"\1 was not expected here"),
    (r"Missing from .*?: (\S+) (.*)\. \(required\)", r"\1 is missing (\2)"),
    (r"Missing value for argument '(\S+)'\..*", r"\1: a value is missing"),
    (r"Error parsing (\S+): invalid literal for int.*: '(.*)'", r"\1 \2: expected a whole number"),
    (r"Error parsing (\S+): could not convert .*: '(.*)'", r"\1 \2: expected a number"),
    (r"Error parsing (\S+): no type matching (\S+) .* from \['(.*?)'\].*", r"\1 \3: expected \2"),
    (r"invalid choice '(.*)' for argument '(\S+)'\. Expected (.*)\.", r"\2 \1: expected \3"),
)


def parse(verb: Verb, argv: Sequence[str]) -> object:
    """The verb's arguments; what tyro says of a mistake is brought down to one line."""
    complaint = io.StringIO()
    default: Any = verb.default(argv) if verb.default else tyro.MISSING_NONPROP
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                verb.args,
                args=list(argv),
                prog=f"diagan {verb.name}",
                config=(tyro.conf.AvoidSubcommands,),
                default=default,
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise UserError(one_line(complaint.getvalue())) from None


def one_line(box: str) -> str:
    """The sentence inside tyro's box, in our words, and the flag that may have been meant."""
    plain = re.sub(r"\x1b\[[0-9;]*m|│", "", box).partition("\n")[2]  # no colours, no title
    parts = [" ".join(part.split()) for part in re.split(r"[─╭╮╰╯]+|-{9,}", plain)]
    said, *more = [part for part in parts if part]
    for pattern, sentence in SENTENCES:
        if match := re.fullmatch(pattern, said):
            said = match.expand(sentence)
    if said.startswith("there is no flag") and len(more) > 1:  # the last part is on --help
        known = re.findall(r"--[\w.-]+", " ".join(part.partition(":")[2] for part in more[:-1]))
        said += did_you_mean(said.split()[-1], known)
    return said


def main(argv: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        dispatch(words)
    except UserError as error:
        print(f"diagan: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a full disk, no permission, a file where a folder should be
        where = f" ({error.filename})" if error.filename else ""
        print(f"diagan: cannot go on: {error.strerror or error}{where}", file=sys.stderr)
        sys.exit(2)
    except (Interrupted, KeyboardInterrupt) as stop:
        say(f"diagan: {str(stop) or 'stopped'}", to=sys.stderr)
        sys.exit(130)


def dispatch(words: list[str]) -> None:
    for verb in VERBS:
        name = verb.name.split()
        if words[: len(name)] == name:
            verb.act(parse(verb, words[len(name) :]))
            return
    asks = not words or words[-1] in ("-h", "--help")
    below = [verb for verb in VERBS if asks and words[:-1] in ([], verb.name.split()[:1])]
    if below:
        print("\n".join([USAGE, *(f"  {verb.name:20} {verb.about}" for verb in below)]))
        return
    if words == ["--version"]:
        print(f"diagan {version('diagan')}")
        return
    known = [verb.name for verb in VERBS]
    raise UserError(f"there is no verb {words[0]!r}{did_you_mean(words[0], known)}")
