"""The hooks of the Gaudi family: thin, every decision is a plain function elsewhere.

Loading this module loads the declaration; each hook imports what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anyaccel.capabilities import Declaration
from anyaccel.device import Device, Discovery, FamilyView, Inspection
from anyaccel.hookspec import hookimpl
from anyaccel_gaudi.declaration import DECLARATION

if TYPE_CHECKING:
    from anyaccel.machine import Machine
    from anyaccel.machine_description import MachineDescription, SimulatedFamily
    from anyaccel.metrics import Reading
    from anyaccel.resources import RequestAnswer, ResourceRequest
    from anyaccel.topology import TopologyReport
    from anyaccel.visibility import EnvironmentChange, Gang, Resolution, Selection

__all__: list[str] = []


@hookimpl
def accel_declare() -> Declaration:
    """Say everything static about Gaudi cards."""
    return DECLARATION


@hookimpl
def accel_discover_devices(machine: Machine) -> Discovery:
    """Find cards on PCI, and their numbers in the driver's files."""
    from anyaccel_gaudi.devices import discover_devices

    return discover_devices(machine)


@hookimpl
def accel_inspect_devices(machine: Machine, devices: tuple[Device, ...]) -> Inspection:
    """Add what libhlml tells."""
    from anyaccel_gaudi._driver import collect
    from anyaccel_gaudi.inspection import inspect_devices

    return inspect_devices(devices, lambda: machine.ask("hlml", collect))


@hookimpl
def accel_describe_topology(machine: Machine, devices: tuple[Device, ...]) -> TopologyReport:
    """Tell the scale-up wiring of the box."""
    from anyaccel_gaudi._driver import collect
    from anyaccel_gaudi.links import describe_links

    return describe_links(devices, lambda: machine.ask("hlml", collect))


@hookimpl
def accel_resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say which cards a process gets."""
    from anyaccel_gaudi.visibility import resolve

    return resolve(view, environ)


@hookimpl
def accel_visibility_environment(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Write module ids, and the one module of a launched process."""
    from anyaccel_gaudi.visibility import change_for

    return change_for(view, selection, environ, gang)


@hookimpl
def accel_validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Allow the groups of modules that a box joins."""
    from anyaccel_gaudi.requests import validate_request

    return validate_request(view, request)


@hookimpl
def accel_read_metrics(machine: Machine, devices: tuple[Device, ...]) -> tuple[Reading, ...]:
    """Read the library's sensors."""
    from anyaccel_gaudi._driver import collect
    from anyaccel_gaudi.metrics import read_metrics

    return read_metrics(devices, machine.ask("hlml", collect))


@hookimpl
def accel_simulate(description: MachineDescription) -> SimulatedFamily:
    """Make the files and the libhlml answer of an imaginary machine."""
    from anyaccel_gaudi.simulate import simulate_family

    return simulate_family(description)
