"""python:MODULE:CLASS: a class of one's own with reset and step in Gymnasium's form; Gymnasium itself is not needed."""
import importlib

from ..said import Said


def make(name, options):
    module, _, attribute = name.rpartition(":")
    if not module:
        raise Said(f"python:{name} names no class; wanted python:MODULE:CLASS")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise Said(f"python:{name}: {module} needs the Python package {error.name}") from error
        raise Said(f"python:{name}: there is no module '{module}' on Python's path; put the folder that holds it "
                   "into env.bridge.path") from error
    if not hasattr(loaded, attribute):
        raise Said(f"python:{name}: {loaded.__file__} has no '{attribute}'")
    made_by = getattr(loaded, attribute)
    # a job that comes with a checkpoint must not call whatever it likes
    if not isinstance(made_by, type) or not hasattr(made_by, "reset") or not hasattr(made_by, "step"):
        raise Said(f"python:{name}: {attribute} is no class with reset and step")
    return made_by(**options)
