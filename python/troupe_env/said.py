"""Errors that a user can mend, and how they are said."""
import re
import sys


MOST_BYTES = 2048


class Said(Exception):
    """What a user has to do, in one sentence."""


def sendable(text, most=MOST_BYTES):
    """The text as it can be sent: valid UTF-8 of at most `most` bytes."""
    return text.encode("utf-8", "replace")[:max(most, 0)].decode("utf-8", "ignore")


def one_line(error):
    """The text of an exception as one line that can be sent."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a class whose text cannot be made
        text = ""
    return sendable(re.sub(r"\x1b\[[0-9;]*m", "", " ".join(text.split()))) or type(error).__name__


def what_failed(error):
    """An exception that nobody foresaw: its class, its text and where it was raised."""
    place = ""
    if error.__traceback__ is not None:
        last = error.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        place = sendable(f" ({last.tb_frame.f_code.co_filename}:{last.tb_lineno})", MOST_BYTES // 2)
    return sendable(f"{type(error).__name__}: {one_line(error)}", MOST_BYTES - len(place.encode())) + place


def missing(package, needed_by, pip=None):
    """A package that is not installed, and the command that installs it."""
    return Said(f"{needed_by} needs the Python package {package}; install it with: "
                f"{sys.executable} -m pip install {pip or package} "
                "(env.bridge.python, or the variable TROUPE_PYTHON, names another Python)")
