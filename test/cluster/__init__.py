"""A real control plane and real container engines for tests. See README.md in this folder."""

from .cluster import Cluster, ClusterError
from .dockerd import Engine, EngineError
from .gate import Gate, matching
from .processes import Child, Keeper, ProcessError, free_port, wait_for

__all__ = [
    "Child",
    "Cluster",
    "ClusterError",
    "Engine",
    "EngineError",
    "Gate",
    "Keeper",
    "ProcessError",
    "free_port",
    "matching",
    "wait_for",
]
