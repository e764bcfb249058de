"""Environments written in Python for Troupe (docs/bridge.md). Needs numpy, msgpack and pyzmq."""
