"""The hooks of NVIDIA's family: thin translations to plain functions."""

from __future__ import annotations

from collections.abc import Mapping

from anyaccel.capabilities import Declaration
from anyaccel.device import Device, Discovery, FamilyView, Inspection
from anyaccel.errors import UnavailableError
from anyaccel.hookspec import hookimpl
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel.machine_description import MachineDescription, SimulatedFamily
from anyaccel.metrics import Reading
from anyaccel.resources import RequestAnswer, ResourceRequest
from anyaccel.topology import TopologyReport
from anyaccel.visibility import EnvironmentChange, Gang, Resolution, Selection
from anyaccel_nvidia._driver import collect_metrics, collect_nvml
from anyaccel_nvidia.declaration import DECLARATION
from anyaccel_nvidia.devices import discover_devices
from anyaccel_nvidia.environment import visibility_environment
from anyaccel_nvidia.inspection import inspect_devices, inspect_without_driver
from anyaccel_nvidia.kernel_files import kernel_driver_version, xid_lines
from anyaccel_nvidia.links import describe_links
from anyaccel_nvidia.matching import InspectionScene
from anyaccel_nvidia.metrics import read_metrics
from anyaccel_nvidia.requests import validate_request
from anyaccel_nvidia.simulate import simulate_family
from anyaccel_nvidia.visibility import resolve_visibility


@hookimpl
def accel_declare() -> Declaration:
    """Give the declaration."""
    return DECLARATION


@hookimpl
def accel_discover_devices(machine: Machine) -> Discovery:
    """Find GPUs in files."""
    return discover_devices(machine)


@hookimpl
def accel_inspect_devices(machine: Machine, devices: tuple[Device, ...]) -> Inspection:
    """Add what NVML and the kernel log know; a driver that cannot be asked is a condition, not an error."""
    scene = InspectionScene(
        read_boundary(machine), xid_lines(machine), kernel_driver_version(machine), dict(machine.environ)
    )
    try:
        document = machine.ask("nvml", collect_nvml)
    except UnavailableError as error:
        return inspect_without_driver(devices, error, scene)
    return inspect_devices(devices, document, scene)


@hookimpl
def accel_describe_topology(machine: Machine, devices: tuple[Device, ...]) -> TopologyReport:
    """Tell NVLink, from the same document."""
    try:
        document = machine.ask("nvml", collect_nvml)
    except UnavailableError as error:
        return TopologyReport(reason=f"NVLink is unknown: {error.message}")
    return describe_links(devices, document)


@hookimpl
def accel_resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Read the masks."""
    return resolve_visibility(view, environ)


@hookimpl
def accel_visibility_environment(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Write the masks; a gang changes nothing, every process names its own devices."""
    del gang
    return visibility_environment(view, selection, environ)


@hookimpl
def accel_validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Say which sets are legal."""
    return validate_request(view, request)


@hookimpl
def accel_read_metrics(machine: Machine, devices: tuple[Device, ...]) -> tuple[Reading, ...]:
    """Read sensors."""
    return read_metrics(devices, machine.ask("nvml-metrics", collect_metrics))


@hookimpl
def accel_simulate(description: MachineDescription) -> SimulatedFamily:
    """Make imaginary GPUs."""
    return simulate_family(description)
