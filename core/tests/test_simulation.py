from __future__ import annotations

import pytest

from anyaccel.cpus import parse_cpu_list
from anyaccel.device import DeviceState
from anyaccel.discovery import discover
from anyaccel.errors import FileUnavailableError, RecordingError
from anyaccel.machine import MachineKind
from anyaccel.machine_description import check_family
from anyaccel.registry import Registry
from anyaccel.simulation import find_machine, list_machines, load_description, parse_description, simulate

SIMULATING = """
import dataclasses
from anyaccel.machine_description import SimulatedFamily, SimulatedFunction
from anyaccel.files import NodeFact

@hookimpl
def accel_simulate(description):
    functions = tuple(
        SimulatedFunction(c.address, 0x1DE8, 1, "120000", c.parent, c.numa_node,
                          driver="toydrv" if c.driver == "default" else c.driver, speed_gts=16.0, width=16)
        for c in description.cards_of("toy"))
    nodes = {f"/dev/toy{n}": NodeFact(0o666, "0", "0", 200, n) for n, _ in enumerate(functions)}
    return SimulatedFamily(functions, nodes=FrozenMap(nodes))

@hookimpl
def accel_discover_devices(machine):
    from anyaccel.pci import device_from_function
    found = [f for f in machine.pci_functions() if machine.pci_driver(f) in ("toydrv", "vfio-pci") or f.vendor_id == 0x1DE8]
    return Discovery(tuple(device_from_function(machine, f, family="toy", drivers=("toydrv",)) for f in found),
                     reason="none")
"""

MACHINE = """
schema = "anyaccel-machine/1"
name = "two"
[host]
numa_cpus = ["0-3", "4-7"]
numa_memory_gib = [8, 16]
[environment]
TOY_VISIBLE = "1,0"
[[bridge]]
address = "0000:00:01.0"
parent = "pci0000:00"
numa_node = 0
[[bridge]]
address = "0000:01:00.0"
parent = "0000:00:01.0"
[[card]]
plugin = "toy"
model = "one"
address = "0000:02:00.0"
parent = "0000:01:00.0"
numa_node = 0
[[card]]
plugin = "toy"
model = "one"
address = "0000:82:00.0"
numa_node = 1
[[nic]]
name = "mlx5_0"
address = "0000:03:00.0"
parent = "0000:01:00.0"
"""


@pytest.fixture
def registry(write_toy):
    return Registry.of(write_toy(SIMULATING))


def test_description_becomes_files_that_discovery_reads(registry):
    """Cards, bridges, NUMA nodes, network cards and the environment of a description are found again."""
    inventory = discover(simulate(parse_description(MACHINE), registry), registry)

    assert inventory.kind is MachineKind.SIMULATED
    assert inventory.name == "two"
    assert [(d.id, d.numa_node, d.is_simulated) for d in inventory.devices] == [
        ("toy:0000:02:00.0", 0, True),
        ("toy:0000:82:00.0", 1, True),
    ]
    assert inventory.host.paths["0000:02:00.0"].bridges == ("0000:00:01.0", "0000:01:00.0")
    assert inventory.host.pcie_links["0000:02:00.0"].speed_gts == 16.0
    assert [(n.number, n.cpus, n.memory_bytes) for n in inventory.host.numa_nodes] == [
        (0, parse_cpu_list("0-3"), 8 << 30),
        (1, parse_cpu_list("4-7"), 16 << 30),
    ]
    assert [nic.id for nic in inventory.host.nics] == ["mlx5_0"]
    assert [inventory.visible_ordinal(d) for d in inventory.devices] == [1, 0]


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ('kind = "dead-link"', DeviceState.LOST),
        ('kind = "no-driver"', DeviceState.UNUSABLE),
        ('kind = "vfio"', DeviceState.UNUSABLE),
    ],
)
def test_generic_faults_change_the_files(fault, state, registry):
    """A dead link, a missing driver and a card given away look as they do on a real machine."""
    text = MACHINE.replace('[environment]\nTOY_VISIBLE = "1,0"', "")
    text += f'[[fault]]\n{fault}\ncard = "0000:02:00.0"\n'

    inventory = discover(simulate(parse_description(text), registry), registry)

    assert [d.state for d in inventory.devices] == [state, DeviceState.READY]


def test_unknown_numa_node_is_minus_one_in_the_file(registry):
    """A virtual machine's card without a node reads -1 and is unknown, never 0."""
    text = MACHINE + '[[fault]]\nkind = "numa-unknown"\ncard = "0000:82:00.0"\n'

    inventory = discover(simulate(parse_description(text), registry), registry)

    assert inventory.devices[1].numa_node is None
    assert "-1" in inventory.devices[1].why_unknown("numa_node")


def test_vanishing_file_is_listed_and_cannot_be_read(registry):
    """A file that vanishes between listing and reading is in the folder and missing."""
    path = "/sys/devices/pci0000:82/0000:82:00.0/numa_node"
    machine = simulate(parse_description(MACHINE + f'[[fault]]\nkind = "file-vanishes"\npath = "{path}"\n'), registry)

    assert "numa_node" in machine.list_folder("/sys/devices/pci0000:82/0000:82:00.0")
    with pytest.raises(FileUnavailableError, match="is missing"):
        machine.read_text(path)


def test_device_file_faults(registry):
    """A missing device file is gone; a denied one belongs to a group the user is not in."""
    text = MACHINE + '[[fault]]\nkind = "no-node"\npath = "/dev/toy0"\n'
    text += '[[fault]]\nkind = "no-permission"\npath = "/dev/toy1"\ngroup = "render2"\n'

    machine = simulate(parse_description(text), registry)

    assert machine.node("/dev/toy0") is None
    assert machine.node("/dev/toy1").can_open is False


@pytest.mark.parametrize("boundary", ["host", "container", "vm", "wsl"])
def test_boundary_is_what_was_described(boundary, registry):
    """The imaginary machine is told to be what its description says."""
    text = MACHINE.replace("[host]", f'[host]\nboundary = "{boundary}"')

    assert discover(simulate(parse_description(text), registry), registry).host.boundary.kind == boundary


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = ", "is not TOML"),
        ('schema = "other/2"', "schema 'other/2'"),
        (MACHINE.replace('model = "one"\n', "", 1), "table 'card' has no key 'model'"),
        (MACHINE.replace("0000:82:00.0", "82"), "no PCI address"),
        ('schema = "anyaccel-machine/1"\ncard = 3', "no array of tables"),
        ('schema = "anyaccel-machine/1"\nfoo = 1', "unknown key 'foo' outside any table"),
        (MACHINE.replace("[host]", "[host]\nbar = 1"), "table 'host' has the unknown key 'bar'"),
        (MACHINE.replace('name = "mlx5_0"', 'name = "mlx5_0"\nspeed = 1'), "table 'nic' has the unknown key 'speed'"),
    ],
)
def test_malformed_description_is_one_sentence(text, told):
    """A description that cannot be read says where."""
    with pytest.raises(RecordingError, match=told):
        parse_description(text)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('[[fault]]\nkind = "gremlins"', "unknown fault 'gremlins'"),
        ('[[fault]]\nkind = "no-driver"\ncard = "0000:99:00.0"', "which is not there"),
        ('[[fault]]\nkind = "no-node"\npath = "/dev/none"', "which is not there"),
        ('[[fault]]\nkind = "no-node"\ncard = "0000:82:00.0"', "needs the path"),
        ('[[card]]\nplugin = "toy"\nmodel = "x"\naddress = "0000:09:00.0"\nparent = "0000:08:00.0"', "is no bridge"),
        ('[[card]]\nplugin = "nobody"\nmodel = "x"', "plugin 'nobody', which is not loaded"),
    ],
)
def test_impossible_machine_is_one_sentence(more, told, registry):
    """A description that contradicts itself says how."""
    with pytest.raises(RecordingError, match=told):
        simulate(parse_description(MACHINE + more), registry)


def test_unknown_machine_lists_the_known(registry):
    """A misspelt name of a shipped machine is answered with the names there are."""
    with pytest.raises(RecordingError, match=r"unknown machine 'nothing' \(known: none\)"):
        find_machine("nothing", registry)


def test_file_of_a_user_is_found_by_path(registry, tmp_path):
    """A path that ends in .toml is read; a missing one is named."""
    path = tmp_path / "mine.toml"
    path.write_text(MACHINE)

    assert find_machine(str(path), registry).name == "two"
    with pytest.raises(RecordingError, match="cannot be read"):
        load_description(tmp_path / "other.toml")
    assert list(list_machines(registry)) == []


@pytest.mark.parametrize(("table", "near"), [("tooy", "toy"), ("hots", "host")])
def test_misspelt_plugin_or_table_gets_the_nearest_and_no_install_line(table, near, registry):
    """A description may come from anybody: no package is suggested for a name that stands in it."""
    with pytest.raises(RecordingError, match=f"names plugin '{table}', which is not loaded") as caught:
        simulate(parse_description(MACHINE + f"[{table}]\nx = 1\n"), registry)

    assert caught.value.hint == f"did you mean '{near}'?"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[card]]\nplugin = "toy"\nmodel = "t2"\naddress = "0000:01:00.0"',
            "unknown model 't2' of toy card 0000:01:00.0 (known: t1)",
        ),
        ('[[card]]\nplugin = "toy"\nmodel = "t1"', "toy card 1 ('t1') needs a PCI address"),
        (
            '[[card]]\nplugin = "toy"\nmodel = "t1"\naddress = "0000:01:00.0"\nmemry = 3',
            "unknown option 'memry' of toy card 0000:01:00.0 (known: memory)",
        ),
        ("[toy]\nversoin = 1", "unknown option 'versoin' in [toy] (known: version)"),
        ('[[fault]]\nplugin = "toy"\nkind = "ded"', "unknown fault 'ded' of toy (known: dead, slow)"),
        ('[[fault]]\nplugin = "toy"\nkind = "dead"\nafter = 3', "unknown option 'after' of fault 'dead' (known: none)"),
        (
            '[[fault]]\nplugin = "toy"\nkind = "dead"\ncard = "0000:09:00.0"',
            "fault 'dead' concerns card '0000:09:00.0', which is no toy card here",
        ),
    ],
)
def test_words_nobody_would_act_on_are_refused(text, told):
    """A word that a family does not know is named with its place and the known ones."""
    description = parse_description(f'schema = "anyaccel-machine/1"\n{text}\n')
    known = {"models": ["t1"], "card_options": ["memory"], "family_options": ["version"]}

    with pytest.raises(RecordingError) as error:
        check_family(description, "toy", **known, faults={"dead": (), "slow": ("seconds",)})

    assert error.value.message == told


def test_words_that_are_known_pass():
    """A description in which everything is known is accepted, and a near miss gets a hint."""
    text = '[toy]\nversion = 1\n[[card]]\nplugin = "toy"\nmodel = "t1"\naddress = "0000:01:00.0"\nmemory = 3\n'
    fault = '[[fault]]\nplugin = "toy"\nkind = "slow"\nseconds = 2\ncard = "0000:01:00.0"\n'
    description = parse_description(f'schema = "anyaccel-machine/1"\n{text}{fault}')
    known = {"models": ["t1"], "card_options": ["memory"], "family_options": ["version"]}

    check_family(description, "toy", **known, faults={"slow": ("seconds",)})
    with pytest.raises(RecordingError) as error:
        check_family(description, "toy", **known, faults={"slowly": ("seconds",)})

    assert error.value.hint == "did you mean 'slowly'?"
