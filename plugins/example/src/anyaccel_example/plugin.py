"""The hooks: thin, so that every decision is a plain function that can be tested without hardware."""

# ruff: noqa: D103 - the hooks are documented where they are declared, in anyaccel.hookspec

from __future__ import annotations

from collections.abc import Mapping

from anyaccel.capabilities import Capability, Declaration, Framework, Partitioning, supported, unsupported
from anyaccel.device import Device, Discovery, FamilyView, Inspection
from anyaccel.errors import UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.hookspec import hookimpl
from anyaccel.machine import Machine
from anyaccel.machine_description import MachineDescription, SimulatedFamily
from anyaccel.metrics import Finding, Reading
from anyaccel.resources import RequestAnswer, ResourceRequest
from anyaccel.topology import TopologyReport
from anyaccel.visibility import EnvironmentChange, Gang, Resolution, Selection
from anyaccel_example._driver import collect, run_imaginary_runtime
from anyaccel_example.answer import checked
from anyaccel_example.devices import FAMILY, MATCHES, does_open, find_devices, inspected, mesh_links
from anyaccel_example.health import findings, findings_without_driver, readings
from anyaccel_example.requests import RESOURCES, legal_sets
from anyaccel_example.simulate import imaginary_family
from anyaccel_example.visibility import VARIABLES, change_for, resolve

_CANNOT = {
    Capability.HIDE_ALL: "the runtime takes an empty EXAMPLE_VISIBLE_UNITS for all units",
    Capability.FRACTIONS: "a core belongs to one process at a time",
}


@hookimpl
def accel_declare() -> Declaration:
    return Declaration(
        key=FAMILY,
        title="Example chips",
        matches=MATCHES,
        resources=RESOURCES,
        variables=VARIABLES,
        frameworks=(Framework("torch", "example", "xccl"),),
        partitioning=Partitioning.FIXED,
        capabilities=FrozenMap({c.value: unsupported(_CANNOT[c]) if c in _CANNOT else supported() for c in Capability}),
        summary="imaginary: two cores a chip, two chips a PCI function, chips in a grid",
    )


@hookimpl
def accel_discover_devices(machine: Machine) -> Discovery:
    return find_devices(machine)


@hookimpl
def accel_inspect_devices(machine: Machine, devices: tuple[Device, ...]) -> Inspection:
    # An UnavailableError may pass: core keeps the rows and writes its reason and hint on each of them.
    return inspected(devices, checked(machine.ask("driver", collect)))


@hookimpl
def accel_describe_topology(machine: Machine, devices: tuple[Device, ...]) -> TopologyReport:
    return mesh_links(devices, checked(machine.ask("driver", collect)))


@hookimpl
def accel_resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    return resolve(view, environ)


@hookimpl
def accel_visibility_environment(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    return change_for(view, selection, environ, gang)


@hookimpl
def accel_validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    return legal_sets(view, request)


@hookimpl
def accel_read_metrics(machine: Machine, devices: tuple[Device, ...]) -> tuple[Reading, ...]:
    return readings(devices, checked(machine.ask("driver", collect)))


@hookimpl
def accel_diagnose(machine: Machine) -> tuple[Finding, ...]:
    try:
        return findings(checked(machine.ask("driver", collect)))
    except UnavailableError as error:
        return findings_without_driver(error)


@hookimpl
def accel_observe_runtime(machine: Machine) -> tuple[str, ...]:
    chips = checked(machine.ask("driver", collect))["chips"]
    return run_imaginary_runtime([row for row in chips if does_open(machine, row["node"])], machine.environ)


@hookimpl
def accel_simulate(description: MachineDescription) -> SimulatedFamily:
    return imaginary_family(description)


@hookimpl
def accel_filter_devices() -> Mapping[str, str]:
    # A site's policy would take `devices` and name those to hide; a hook leaves out the arguments it does not need.
    return {}
