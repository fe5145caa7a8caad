"""The hooks of the AMD family: thin, every decision is a plain function elsewhere.

Loading this module loads the declaration; each hook imports what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anyaccel.capabilities import Declaration
from anyaccel.device import Device, Discovery, FamilyView, Inspection
from anyaccel.errors import UnavailableError
from anyaccel.hookspec import hookimpl
from anyaccel_amd.declaration import DECLARATION

if TYPE_CHECKING:
    from anyaccel.machine import Machine
    from anyaccel.machine_description import MachineDescription, SimulatedFamily
    from anyaccel.metrics import Reading
    from anyaccel.resources import RequestAnswer, ResourceRequest
    from anyaccel.topology import TopologyReport
    from anyaccel.visibility import EnvironmentChange, Resolution, Selection

__all__: list[str] = []


@hookimpl
def accel_declare() -> Declaration:
    """Say everything static about AMD GPUs."""
    return DECLARATION


@hookimpl
def accel_discover_devices(machine: Machine) -> Discovery:
    """Find AMD GPUs and their partitions in PCI, KFD and DRM files."""
    from anyaccel_amd.presence import has_any_sign, why_none

    if not has_any_sign(machine):
        return Discovery(reason=why_none(machine))
    from anyaccel_amd.devices import discover_devices

    return discover_devices(machine)


@hookimpl
def accel_inspect_devices(machine: Machine, devices: tuple[Device, ...]) -> Inspection:
    """Add error counters, and what amdsmi tells where it is installed."""
    from anyaccel_amd._driver import collect_amdsmi
    from anyaccel_amd.inspection import inspect_devices

    return inspect_devices(machine, devices, lambda: machine.ask("amdsmi", collect_amdsmi))


@hookimpl
def accel_describe_topology(machine: Machine, devices: tuple[Device, ...]) -> TopologyReport:
    """Tell xGMI links, PCIe peers and the partitions of one package."""
    from anyaccel_amd._driver import collect_amdsmi
    from anyaccel_amd.inspection import may_ask
    from anyaccel_amd.kfd import read_links, read_topology
    from anyaccel_amd.links import report_from_kfd, with_smi_links

    report = report_from_kfd(devices, read_links(machine, read_topology(machine)))
    if not may_ask(devices):
        return report
    try:
        answer = machine.ask("amdsmi", collect_amdsmi)
    except UnavailableError:
        return report
    return with_smi_links(report, devices, answer)


@hookimpl
def accel_resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say what ROCR_, HIP_ and CUDA_VISIBLE_DEVICES leave."""
    from anyaccel_amd.visibility import resolve_visibility

    return resolve_visibility(view, environ)


@hookimpl
def accel_visibility_environment(
    view: FamilyView, selection: Selection, environ: Mapping[str, str]
) -> EnvironmentChange:
    """Write HIP_VISIBLE_DEVICES and remove what it would be counted through; a gang changes nothing for this family."""
    from anyaccel_amd.visibility import visibility_environment

    return visibility_environment(view, selection, environ)


@hookimpl
def accel_validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Allow any set of enough GPUs or partitions."""
    from anyaccel_amd.requests import validate_request

    return validate_request(view, request)


@hookimpl
def accel_read_metrics(machine: Machine, devices: tuple[Device, ...]) -> tuple[Reading, ...]:
    """Read the kernel driver's sensors."""
    from anyaccel_amd.metrics import read_metrics

    return read_metrics(machine, devices)


@hookimpl
def accel_simulate(description: MachineDescription) -> SimulatedFamily:
    """Make the files and the amdsmi answer of an imaginary machine."""
    from anyaccel_amd.simulate import simulate_family

    return simulate_family(description)
