"""The contract between anyaccel and a plugin: every hook, with its docstring as the reference.

A plugin is a module whose functions carry `@hookimpl`. It may leave every hook out but `accel_declare` and
`accel_discover_devices`, and may leave out arguments it does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

from anyaccel.capabilities import CONTRACT_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyaccel.capabilities import Declaration
    from anyaccel.device import Device, Discovery, FamilyView, Inspection
    from anyaccel.machine import Machine
    from anyaccel.machine_description import MachineDescription, SimulatedFamily
    from anyaccel.metrics import Finding, Reading
    from anyaccel.resources import RequestAnswer, ResourceRequest
    from anyaccel.topology import TopologyReport
    from anyaccel.visibility import EnvironmentChange, Gang, Resolution, Selection

__all__ = ["CONTRACT_VERSION", "PROJECT_NAME", "hookimpl", "hookspec"]

PROJECT_NAME = "accel"

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)


@hookspec
def accel_declare() -> Declaration:  # type: ignore[empty-body]
    """Say everything static about this family.

    Called: once, in the parent, when the plugin is loaded; no file, library or environment may be looked at.
    Args: none.
    Returns: the declaration; its key equals the entry point's name.
    Raises: nothing.
    Budget: 5 ms.
    Requirements: DEC-001, DEC-002, DEC-003, DEC-004.
    Example: accel_declare().key == "example"
    """


@hookspec
def accel_discover_devices(machine: Machine) -> Discovery:  # type: ignore[empty-body]
    """Find this family's devices in the machine's files, or say why there are none.

    Called: in the parent, once a command; must not ask the driver, open a device file or import a vendor library.
    Args: machine: files, environment and deadline.
    Returns: root devices and the children that files tell of, sorted by location; a reason when there are none.
    Raises: FileUnavailableError and DeadlineExceededError may pass through.
    Budget: 50 ms for 16 devices.
    Requirements: DISC-001, DISC-002, DISC-003, DISC-004, DISC-005, DISC-006, DISC-007, DISC-008.
    Example: accel_discover_devices(machine).devices[0].id == "example:0000:41:00.0/0"
    """


@hookspec
def accel_inspect_devices(machine: Machine, devices: tuple[Device, ...]) -> Inspection:  # type: ignore[empty-body]
    """Add what only the driver knows: attributes, conditions and children.

    Called: in the probe child, once a command, when there are devices; questions go through `machine.ask`.
    Args: machine: as for discovery, with questions open. devices: what discovery found.
    Returns: the same devices in the same order, richer, each followed by children the driver told of.
    Raises: UnavailableError when nothing can be asked; better caught and told as a condition of the devices.
    Budget: the declared probe timeout, shared by all hooks of the child.
    Requirements: INSP-001, INSP-002, INSP-003, DISC-007.
    Example: accel_inspect_devices(machine, devices).devices[0].memory_bytes == 34359738368
    """


@hookspec
def accel_describe_topology(machine: Machine, devices: tuple[Device, ...]) -> TopologyReport:  # type: ignore[empty-body]
    """Tell the vendor's own links; PCIe, NUMA and network cards are added by core.

    Called: in the probe child, after inspection.
    Args: machine: as for inspection. devices: as inspection left them.
    Returns: links between devices, or to switches and NUMA nodes; empty = looked and found none, with a reason if unasked.
    Raises: UnavailableError when nothing can be asked.
    Budget: the declared probe timeout, shared by all hooks of the child.
    Requirements: TOPO-001, TOPO-002, TOPO-003.
    Example: accel_describe_topology(machine, devices).links[0].kind == "mesh"
    """


@hookspec
def accel_resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:  # type: ignore[empty-body]
    """Say what an environment leaves visible, and for every entry of every mask why it counts or not.

    Called: in the parent, pure.
    Args: view: the whole family. environ: the environment of the process in question.
    Returns: units in the order of their ordinals, a report for every token and every variable set; what cannot be mapped is
        a unit without device and with a reason, never a guess.
    Raises: nothing; a malformed mask is a result.
    Budget: 10 ms.
    Requirements: VIS-001, VIS-002, VIS-007, VIS-008.
    Example: accel_resolve_visibility(view, {}).device_ids[0] == "example:0000:41:00.0/0/0"
    """


@hookspec
def accel_visibility_environment(  # type: ignore[empty-body]
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Give the change that makes exactly this selection visible to a new process.

    Called: in the parent, before each worker or child starts; pure.
    Args: view: the whole family. selection: device ids in the order wanted; empty hides all.
        environ: what the new process would inherit, already free of the masks when widening was asked for.
        gang: its place among peers; None = alone, which pins bounds explicitly.
    Returns: variables to set (`""` is a value) and to unset, the order the process will see, and the effect.
    Raises: SelectionNotExpressibleError rather than a nearest set; NotGrantedError for devices outside the grant in environ.
    Budget: 10 ms.
    Requirements: VIS-001, VIS-002, VIS-003, VIS-004, VIS-005, VIS-006, VIS-007, VIS-009.
    Example: accel_visibility_environment(view, Selection(("example:0000:41:00.0/0",)), {}, None).set[0][1] == "2"
    """


@hookspec
def accel_validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:  # type: ignore[empty-body]
    """Say which sets of devices the family allows for a request, over the whole family, free or not.

    Called: in the parent, pure, when a request is declared.
    Args: view: the whole family. request: one of the declared resources and an amount.
    Returns: AnySet, LegalSets (lazy needs: at most 10,000 sets, then `is_bounded`), or Refusal with a reason.
    Raises: nothing.
    Budget: 20 ms.
    Requirements: VAL-001, VAL-002.
    Example: accel_validate_request(view, ResourceRequest("example", 3)) == Refusal("sets of 1, 2 or 4 chips, not 3")
    """


@hookspec
def accel_read_metrics(machine: Machine, devices: tuple[Device, ...]) -> tuple[Reading, ...]:  # type: ignore[empty-body]
    """Read sensors and counters.

    Called: in the probe child, on every tick.
    Args: machine: as for inspection. devices: as inspection left them.
    Returns: readings; a value that cannot be had is None with a reason.
    Raises: UnavailableError when nothing can be asked.
    Budget: the declared probe timeout.
    Requirements: MET-001.
    Example: accel_read_metrics(machine, devices)[0].name == "power_watts"
    """


@hookspec
def accel_diagnose(machine: Machine, devices: tuple[Device, ...]) -> tuple[Finding, ...]:  # type: ignore[empty-body]
    """Give findings about this family's driver and devices for `doctor`.

    Called: in the probe child, on demand.
    Args: machine: as for inspection. devices: as inspection left them.
    Returns: findings with stable check ids that begin with the plugin's key.
    Raises: UnavailableError when nothing can be asked.
    Budget: the declared probe timeout.
    Requirements: DIA-001.
    Example: accel_diagnose(machine, devices)[0].check == "example.driver.answers"
    """


@hookspec
def accel_observe_runtime(machine: Machine) -> tuple[str, ...]:  # type: ignore[empty-body]
    """Say which devices the vendor's runtime really shows in the environment of this process, as stable names.

    Called: in a child of its own started with that environment, by the conformance kit and `doctor` only; may take the device.
    Args: machine: with its environment.
    Returns: uuids or PCI addresses in the runtime's order.
    Raises: UnavailableError when the runtime is not here.
    Budget: 60 s.
    Requirements: OBS-001.
    Example: accel_observe_runtime(machine)[0] == "EX-0000410000-0"
    """


@hookspec
def accel_simulate(description: MachineDescription) -> SimulatedFamily:  # type: ignore[empty-body]
    """Make this family's files and answers of an imaginary machine.

    Called: in the parent, pure; optional.
    Args: description: the whole machine; a plugin looks at its own cards, links, faults and table.
    Returns: PCI functions, files, device files and the answers its own `collect` functions would give.
    Raises: RecordingError for a model or option it does not know.
    Budget: 100 ms.
    Requirements: SIM-001, SIM-002.
    Example: accel_simulate(description).functions[0].vendor_id == 0x1DE7
    """


@hookspec
def accel_filter_devices(devices: tuple[Device, ...]) -> Mapping[str, str]:  # type: ignore[empty-body]
    """Hide devices by a site's policy; they stay listed as hidden, with the policy's reason.

    Called: in the parent, after inspection, with the devices of every family; meant for site plugins.
    Args: devices: every device.
    Returns: reason by device id; empty hides nothing.
    Raises: nothing.
    Budget: 10 ms.
    Requirements: FIL-001.
    Example: accel_filter_devices(devices) == {}
    """
