"""python3 -m troupe_env --describe ENV | --connect ENDPOINT --env ENV [--options JSON] [--name NAME] (docs/bridge.md)

Exit status: 0 done; 1 an error nobody foresaw; 2 one that the user can mend, whose sentence is the last line of stderr.
"""
import sys

# Modules come from where the user says, not from the folder that this happens to run in: its name leads the path with
# -m, and this package's own does where it was started as a folder.
if not getattr(sys.flags, "safe_path", False) or not __package__:
    del sys.path[0]

import argparse  # noqa: E402
import ctypes  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PR_SET_PDEATHSIG = 1


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m troupe_env", description="Environments in Python for Troupe.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--describe", metavar="ENV", help="print what ENV observes and takes, as JSON, and end")
    what.add_argument("--connect", metavar="ENDPOINT", help="serve the simulator at this address (env.bridge.bind)")
    parser.add_argument("--env", metavar="ENV", help="with --connect: the environment, such as gymnasium:Ant-v5")
    parser.add_argument("--options", default="{}", metavar="JSON", help="keyword arguments of the environment, env.options")
    parser.add_argument("--name", default=f"worker-{os.getpid()}", help="a second worker of one name replaces the first")
    parser.add_argument("--stay", action="store_true", help="wait for the next simulator when one has ended")
    parsed = parser.parse_args(arguments)
    if parsed.connect and not parsed.env:
        parser.error("--connect wants --env")
    return parsed


def die_with(parent):
    """Ends this process with the one that started it, also while it is deep inside a simulator; behind a command of the
    user's own that is the command. Returns why it is to end now, or nothing."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        return None
    try:
        os.kill(parent, 0)
        return None  # behind a command
    except (ProcessLookupError, PermissionError):
        return (f"the process {parent} that started this worker is not there: it has ended, or a command started this "
                "in a container with process ids of its own; remove the variable TROUPE_PARENT_PID there")


def main():
    parent = os.environ.pop("TROUPE_PARENT_PID", None)
    orphaned = die_with(int(parent)) if parent else None
    if orphaned:
        print(orphaned, file=sys.stderr, flush=True)
        return 2
    arguments = parse(sys.argv[1:])
    # a class of the user's own may lie where the command is given; behind everything else
    if (arguments.describe or arguments.env).startswith("python:") and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    # environments print; what is ours goes to a descriptor of our own
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from troupe_env.said import Said, missing, what_failed
    try:
        try:
            import msgpack  # noqa: F401 - all that the package needs is there before anything begins
            import numpy  # noqa: F401
            import zmq  # noqa: F401
        except ModuleNotFoundError as error:
            raise missing(error.name, "Troupe's bridge to Python", "numpy msgpack pyzmq") from error
        from troupe_env.host import Kind
        from troupe_env.worker import Refused, Worker
        if arguments.describe:
            kind = Kind(arguments.describe, arguments.options)
            json.dump(kind.description(), ours, indent=2)
            ours.write("\n")
            ours.flush()
            return 0
        kind = Kind(arguments.env, arguments.options)
        try:
            Worker(kind, arguments.connect, arguments.name, arguments.options, json.dumps(kind.description()),
                   "simulator" if parent else "all" if arguments.stay else "hub").run()
        except Refused as error:
            raise Said(f"the simulator at {arguments.connect} refuses this worker: {error}") from error
        return 0
    except Said as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the one place that ends the process
        import traceback
        traceback.print_exc()
        print(what_failed(error), file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.stdout.flush()
    code = main()
    sys.stderr.flush()
    os._exit(code)  # simulators that hang at their end hang nobody
