"""The one place where tests look behind the services: the running parties of a simulation, and the Guest's stores."""

from backend.protocols.simulation.simulator import FederationRuntime
from backend.services import Glassleaf
from backend.services.workspace import Workspace


def workspace_of(glassleaf: Glassleaf) -> Workspace:
    return glassleaf._shared.workspace


def runtime_of(glassleaf: Glassleaf, federation: str = "demo") -> FederationRuntime:
    return workspace_of(glassleaf).runtime(federation)
