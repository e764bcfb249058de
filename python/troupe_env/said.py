"""Errors that a user can mend, and how they are said."""
import re
import sys


class Said(Exception):
    """What a user has to do, in one sentence."""


def one_line(error):
    """The text of an exception as one line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(str(error).split()))
    return text or type(error).__name__


def what_failed(error):
    """An exception that nobody foresaw: its class, its text and where it was raised."""
    place = ""
    if error.__traceback__ is not None:
        last = error.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        place = f" ({last.tb_frame.f_code.co_filename}:{last.tb_lineno})"
    return f"{type(error).__name__}: {one_line(error)}{place}"


def missing(package, needed_by, pip=None):
    """A package that is not installed, and the command that installs it."""
    return Said(f"{needed_by} needs the Python package {package}; install it with: "
                f"{sys.executable} -m pip install {pip or package} "
                "(env.bridge.python, or the variable TROUPE_PYTHON, names another Python)")
