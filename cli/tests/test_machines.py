"""What people have met on real machines, replayed on imaginary ones of every family: the command line tells the causes apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from anyaccel.registry import Registry

Invoke = Callable[..., Result]
THREE = Path(__file__).parent / "golden" / "three-families.toml"


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Every family of this repository."""
    for package in ("anyaccel_amd", "anyaccel_example", "anyaccel_nvidia"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    return Registry.of("anyaccel_amd.plugin", "anyaccel_example.plugin", "anyaccel_nvidia.plugin")


@pytest.fixture
def look(invoke: Invoke, registry: Registry) -> Callable[..., tuple[Result, dict[str, Any]]]:
    """Run discover on a machine as table and as document; gives the table's result and the document."""

    def run(machine: str | Path, *more: str) -> tuple[Result, dict[str, Any]]:
        arguments = ("discover", "--simulate", machine, *more)
        result = invoke(*arguments, registry=registry)
        return result, json.loads(invoke(*arguments, "--json", registry=registry).stdout)

    return run


Look = Callable[..., tuple[Result, dict[str, Any]]]


def _states(document: dict[str, Any]) -> list[str]:
    return [device["state"] for device in document["devices"]]


def test_a_driver_of_two_versions_is_unusable_with_both_named(look: Look) -> None:
    """Library and kernel module disagree: both cards are listed, with both versions and what to do."""
    result, document = look("nvidia-driver-mismatch")

    assert (result.exit_code, _states(document)) == (0, ["unusable", "unusable"])
    assert "driver version mismatch: the library is 515.65.01, the kernel module 510.73.08" in result.stdout
    assert "reload the nvidia kernel modules or reboot" in result.stderr


def test_a_dead_card_is_listed_where_it_was(look: Look) -> None:
    """Seven cards and one entry for the slot whose reads return all ones."""
    result, document = look("nvidia-h100x8-one-lost")
    lost = [device["pci_addresses"] for device in document["devices"] if device["state"] == "lost"]

    assert (result.exit_code, lost, document["summary"]) == (0, [["0000:61:00.0"]], "8 devices: 7 ready, 1 lost")


def test_a_container_gets_what_it_was_given(look: Look) -> None:
    """One usable card; the host's other seven are never ready."""
    _, document = look("nvidia-container-one-of-8")

    assert (_states(document).count("ready"), _states(document).count("blocked")) == (1, 7)


def test_a_missing_group_is_named(look: Look) -> None:
    """The node, its group, the groups the user has, and how to join."""
    result, document = look("amd-no-permission")

    assert (_states(document), document["devices"][0]["conditions"][0]["code"]) == (
        ["denied", "denied"],
        "permission-denied",
    )
    assert "permission denied: /dev/kfd belongs to group render, this user is in video" in result.stdout
    assert "usermod -aG render" in result.stderr


def test_integrated_graphics_beside_a_card_is_not_counted(look: Look) -> None:
    """Both are listed; the rule that leaves one out, and the switch that includes it, stand below it."""
    result, document = look("amd-workstation-dgpu-igpu")

    assert (document["summary"], [device["is_counted"] for device in document["devices"]]) == (
        "1 device: 1 ready · 1 not counted",
        [True, False],
    )
    assert "ANYACCEL_COUNT_INTEGRATED=1 counts it" in result.stdout


def test_an_integrated_part_that_computes_is_counted(look: Look) -> None:
    """Integrated is a fact to report; whether the vendor supports it for compute decides."""
    result, document = look("amd-strix-halo")

    assert (result.exit_code, [(d["is_integrated"], d["is_counted"]) for d in document["devices"]]) == (
        0,
        [(True, True)],
    )


def test_a_board_without_memory_of_its_own_says_why(look: Look) -> None:
    """Memory that the driver cannot tell is null with a reason, never 0."""
    _, document = look("nvidia-jetson-orin")
    device = document["devices"][0]

    assert (device["is_integrated"], device["memory_bytes"] == 0, bool(device["unknown"].get("memory_bytes"))) == (
        True,
        False,
        device["memory_bytes"] is None,
    )


def test_a_hanging_driver_is_named_within_the_time(look: Look) -> None:
    """Which plugin, which question, what usually helps; exit 4, and the cards are still listed."""
    result, document = look("nvidia-library-hangs", "--timeout", "2")

    assert (result.exit_code, len(document["devices"])) == (4, 2)
    assert "plugin 'nvidia'" in result.stderr
    assert "hung" in result.stderr
    assert "reboot" in result.stderr


def test_a_crashing_library_costs_attributes_not_rows(look: Look) -> None:
    """The signal is named, the cards are still listed, exit 4."""
    result, document = look("nvidia-library-crashes")

    assert (result.exit_code, len(document["devices"]), "killed by signal 11" in result.stderr) == (4, 2, True)


def test_a_missing_library_is_no_broken_plugin(look: Look) -> None:
    """Cards without the driver's library are there, their state is unknown, and nothing is broken."""
    result, document = look("nvidia-library-missing")

    assert (result.exit_code, _states(document)) == (0, ["unknown", "unknown"])


def test_missing_partitions_are_not_invented(look: Look) -> None:
    """63 of 64 partitions are there: 63 rows."""
    _, document = look("amd-mi300x8-cpx-63")

    assert [device["level"] for device in document["devices"]].count("partition") == 63


def test_three_families_share_one_table(look: Look) -> None:
    """Devices of all vendors in order of vendor and place, one summary."""
    _, document = look(THREE)

    assert ([d["vendor"] for d in document["devices"] if d["parent"] is None], document["summary"]) == (
        ["amd", "example", "example", "nvidia"],
        "4 devices: 4 ready · 4 cores: 4 ready",
    )


def test_two_vendors_below_one_switch_are_near(invoke: Invoke, registry: Registry) -> None:
    """What connects cards of different vendors comes from PCIe; no plugin was asked about a stranger."""
    document = json.loads(invoke("topology", "--simulate", THREE, "--json", registry=registry).stdout)
    pairs = {(pair["a"], pair["b"]): pair for pair in document["pairs"]}
    pair = pairs["amd:0000:14:00.0", "nvidia:0000:13:00.0"]

    assert (pair["pcie_level"], pair["link"]) == ("same switch", None)
    assert pair["reason"] == "nobody tells of links between amd and nvidia: peer access is unknown"


def test_two_plugins_on_one_device_are_named(
    invoke: Invoke,
    write_module: Callable[[str, str], str],
    toy_source: Callable[..., str],
    toy_root: Path,
) -> None:
    """Counted once; both claimants and the rule that decided are named, exit 4."""
    names = [write_module(f"{key}_claimant", toy_source(key)) for key in ("alpha", "beta")]
    result = invoke("discover", "--root", toy_root, registry=Registry.of(*names))

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (4, "2 devices: 1 ready, 1 unusable")
    assert "error: 0000:01:00.0 is claimed by plugins alpha and beta; alpha keeps it because its key comes first" in (
        result.stderr.splitlines()
    )


def test_an_unknown_memory_node_is_null_without_a_warning(
    invoke: Invoke, toy_registry: Registry, toy_root: Path
) -> None:
    """The kernel's -1 is unknown: neither 0 nor -1, and nobody is told at every start."""
    result = invoke("discover", "--root", toy_root, "--select", "state=ready", "--json", registry=toy_registry)

    assert (json.loads(result.stdout)["devices"][0]["numa_node"], result.stderr) == (None, "")


def test_five_hundred_of_six_thousand_functions_are_found_in_order(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """Domains sort as numbers: 10000 comes after ffff."""
    domains = (0x0, 0x1, 0xFFFF, 0x10000)
    places = [(domain, bus, slot) for domain in domains for bus in range(16) for slot in range(8)]
    found = [(f"{d:04x}:{bus:02x}:{slot:02x}.0", 0x1234, 1, 0x120000, None) for d, bus, slot in places]
    strangers = [
        (f"{domain:04x}:{0x80 + number // 256:02x}:{number // 8 % 32:02x}.{number % 8}", 0x8086, 1, 0x020000, None)
        for domain in domains
        for number in range(1372)
    ]
    root = make_root(*found, *strangers)
    result = invoke("discover", "--root", root, "--format", "ids", registry=toy_registry)

    assert (len(found) + len(strangers), result.stdout.splitlines()) == (
        6000,
        [f"toy:{domain:04x}:{bus:02x}:{slot:02x}.0" for domain, bus, slot in places],
    )
