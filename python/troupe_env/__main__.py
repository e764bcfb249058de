"""python3 -m troupe_env --describe ENV | --connect ENDPOINT --env ENV [--options JSON] [--name NAME] (docs/bridge.md)

Exit status: 0 done; 1 an error nobody foresaw; 2 one that the user can mend, whose sentence is the last line of stderr.
"""
import argparse
import json
import os
import sys


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


def main():
    arguments = parse(sys.argv[1:])
    # environments print; what is ours goes to a descriptor of our own
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    parent = os.environ.pop("TROUPE_PARENT_PID", None)
    from .said import Said, missing, what_failed
    try:
        try:
            import msgpack  # noqa: F401 - all that the package needs is there before anything begins
            import numpy  # noqa: F401
            import zmq  # noqa: F401
        except ModuleNotFoundError as error:
            raise missing(error.name, "Troupe's bridge to Python", "numpy msgpack pyzmq") from error
        from .host import Kind
        from .worker import Refused, Worker, die_with
        if parent:
            die_with(int(parent))
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
    except Exception as error:  # noqa: BLE001 - the one place that ends the process
        import traceback
        traceback.print_exc()
        print(what_failed(error), file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.stdout.flush()
    code = main()
    sys.stderr.flush()
    os._exit(code)  # simulators that hang at their end hang nobody
