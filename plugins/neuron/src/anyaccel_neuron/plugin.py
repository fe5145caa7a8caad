"""The hooks of the Neuron family: thin, every decision is a plain function elsewhere.

Loading this module loads the declaration; each hook imports what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anyaccel.capabilities import Declaration
from anyaccel.device import Device, Discovery, FamilyView, Inspection
from anyaccel.hookspec import hookimpl
from anyaccel_neuron.declaration import DECLARATION

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
    """Say everything static about Inferentia and Trainium."""
    return DECLARATION


@hookimpl
def accel_discover_devices(machine: Machine) -> Discovery:
    """Find devices in the driver's class folder and on PCI."""
    from anyaccel_neuron.devices import discover_devices

    return discover_devices(machine)


@hookimpl
def accel_inspect_devices(machine: Machine, devices: tuple[Device, ...]) -> Inspection:
    """Add what neuron-ls tells."""
    from anyaccel_neuron._driver import collect
    from anyaccel_neuron.inspection import inspect_devices

    return inspect_devices(machine, devices, lambda: machine.ask("neuron-ls", collect))


@hookimpl
def accel_describe_topology(machine: Machine, devices: tuple[Device, ...]) -> TopologyReport:
    """Tell NeuronLink connections."""
    from anyaccel_neuron._driver import collect
    from anyaccel_neuron.links import describe_links

    return describe_links(machine, devices, lambda: machine.ask("neuron-ls", collect))


@hookimpl
def accel_resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say which NeuronCores a process gets."""
    from anyaccel_neuron.visibility import resolve

    return resolve(view, environ)


@hookimpl
def accel_visibility_environment(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Write the cores, what a core is, and the place among peers."""
    from anyaccel_neuron.visibility import change_for

    return change_for(view, selection, environ, gang)


@hookimpl
def accel_validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Allow neighbours on rings, blocks of tori, and runs of cores."""
    from anyaccel_neuron.requests import validate_request

    return validate_request(view, request)


@hookimpl
def accel_read_metrics(machine: Machine, devices: tuple[Device, ...]) -> tuple[Reading, ...]:
    """Read the kernel driver's counters."""
    from anyaccel_neuron.metrics import read_metrics

    return read_metrics(machine, devices)


@hookimpl
def accel_simulate(description: MachineDescription) -> SimulatedFamily:
    """Make the files and the neuron-ls answer of an imaginary machine."""
    from anyaccel_neuron.simulate import simulate_family

    return simulate_family(description)
