"""The one exception that is meant for people."""


class UserError(Exception):
    """One sentence: what was wrong, and what to do. The command line prints it and exits with 2."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: all is saved, and the same command goes on."""
