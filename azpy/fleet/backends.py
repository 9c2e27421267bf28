"""Which players a run's setting `workers` asks for."""

from azpy import _core
from azpy.fleet.fleet import Fleet
from azpy.fleet.folder import FOLDER, FolderFleet
from azpy.fleet.here import Here
from azpy.fleet.local import LocalFleet
from azpy.fleet.ray import RayFleet
from azpy.fleet.table import IdTable
from azpy.settings import Settings

__all__ = ["open_fleet"]


def open_fleet(settings: Settings, start: _core.State, table: IdTable) -> Fleet:
    """The players that `workers` asks for. Nothing plays, and nothing is made, before `play`.

    Args:
        settings: of the run.
        start: where its games begin.
        table: of the run's ids.

    Raises:
        MissingPackageError: a package that these players need is not installed.
    """
    match settings.workers:
        case "ray":
            return RayFleet(settings, start, table)
        case str(place):
            return FolderFleet(settings, start, table, place.removeprefix(FOLDER))
        case 0:
            return Here(settings, start, table)
    return LocalFleet(settings, start, table)
