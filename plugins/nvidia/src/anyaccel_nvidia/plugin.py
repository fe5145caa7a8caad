"""The hooks of NVIDIA's family: thin translations to plain functions.

Loading this module loads the declaration and nothing more; each hook imports what it needs, so that a machine without NVIDIA's
cards pays for a look into a few folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anyaccel.capabilities import Declaration
from anyaccel.device import Device, Discovery, FamilyView, Inspection
from anyaccel.errors import UnavailableError
from anyaccel.hookspec import hookimpl
from anyaccel.topology import TopologyReport
from anyaccel_nvidia.declaration import DECLARATION

if TYPE_CHECKING:
    from anyaccel.machine import Machine
    from anyaccel.machine_description import MachineDescription, SimulatedFamily
    from anyaccel.metrics import Reading
    from anyaccel.resources import RequestAnswer, ResourceRequest
    from anyaccel.visibility import EnvironmentChange, Gang, Resolution, Selection


@hookimpl
def accel_declare() -> Declaration:
    """Give the declaration."""
    return DECLARATION


@hookimpl
def accel_discover_devices(machine: Machine) -> Discovery:
    """Find GPUs in files."""
    from anyaccel_nvidia.devices import discover_devices

    return discover_devices(machine)


@hookimpl
def accel_inspect_devices(machine: Machine, devices: tuple[Device, ...]) -> Inspection:
    """Add what NVML and the kernel log know; a driver that cannot be asked is a condition, not an error."""
    from anyaccel_nvidia._driver import collect_nvml
    from anyaccel_nvidia.inspection import inspect_devices, inspect_without_driver
    from anyaccel_nvidia.matching import look_around

    scene = look_around(machine)
    try:
        document = machine.ask("nvml", collect_nvml)
    except UnavailableError as error:
        return inspect_without_driver(devices, error, scene)
    return inspect_devices(devices, document, scene)


@hookimpl
def accel_describe_topology(machine: Machine, devices: tuple[Device, ...]) -> TopologyReport:
    """Tell NVLink, from the same document."""
    from anyaccel_nvidia._driver import collect_nvml
    from anyaccel_nvidia.links import describe_links

    try:
        document = machine.ask("nvml", collect_nvml)
    except UnavailableError as error:
        return TopologyReport(reason=f"NVLink is unknown: {error.message}")
    return describe_links(devices, document)


@hookimpl
def accel_resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Read the masks."""
    from anyaccel_nvidia.visibility import resolve_visibility

    return resolve_visibility(view, environ)


@hookimpl
def accel_visibility_environment(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Write the masks; a gang changes nothing, every process names its own devices."""
    from anyaccel_nvidia.environment import visibility_environment

    del gang
    return visibility_environment(view, selection, environ)


@hookimpl
def accel_validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Say which sets are legal."""
    from anyaccel_nvidia.requests import validate_request

    return validate_request(view, request)


@hookimpl
def accel_read_metrics(machine: Machine, devices: tuple[Device, ...]) -> tuple[Reading, ...]:
    """Read sensors."""
    from anyaccel_nvidia._driver import collect_metrics
    from anyaccel_nvidia.metrics import read_metrics

    return read_metrics(devices, machine.ask("nvml-metrics", collect_metrics))


@hookimpl
def accel_simulate(description: MachineDescription) -> SimulatedFamily:
    """Make imaginary GPUs."""
    from anyaccel_nvidia.simulate import simulate_family

    return simulate_family(description)
