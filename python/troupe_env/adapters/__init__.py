"""Where environments come from: one module for each first word of an id such as gymnasium:Ant-v5. A module has
make(name, options), which returns an object of Gymnasium's form (docs/bridge.md#write-an-adapter)."""
import importlib

from ..said import Said

FAMILIES = ("gymnasium", "metaworld", "pettingzoo", "python", "robosuite")


def make(env_id, options):
    """A new environment. `options` are keyword arguments. Raises Said for what a user can mend."""
    family, _, name = env_id.partition(":")
    if family not in FAMILIES or not name:
        raise Said(f"'{env_id}' is no environment in Python; wanted {', '.join(f + ':NAME' for f in FAMILIES)}")
    return importlib.import_module(f"{__name__}.{family}_env").make(name, options)


def need(module, pip, needed_by):
    """The module, imported now. Raises Said where it is not installed."""
    from ..said import missing
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # a package that is there and lacks another one says which
        root = (error.name or module).split(".")[0]
        raise missing(root, needed_by, pip if root == module.split(".")[0] else root) from error
