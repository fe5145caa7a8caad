"""NVLink: pairs, switches, width, speed, and what makes a link unusable."""

from __future__ import annotations

import pytest

from anyaccel.discovery import discover
from anyaccel.simulation import parse_description, simulate
from anyaccel.topology import LinkSource, LinkState
from anyaccel_nvidia.devices import discover_devices
from anyaccel_nvidia.inspection import inspect_devices
from anyaccel_nvidia.links import describe_links, link_rate
from anyaccel_nvidia.matching import InspectionScene

SCHEMA = 'schema = "anyaccel-machine/1"\n'
CARD = '[[card]]\nplugin = "nvidia"\nmodel = "{model}"\naddress = "0000:{bus}:00.0"\n{more}\n'
LINK = '[[link]]\na = "0000:{a}:00.0"\nb = "0000:{b}:00.0"\nkind = "nvlink"\ncount = {count}\n'


@pytest.fixture
def view_of_text(registry):
    return lambda text: discover(simulate(parse_description(SCHEMA + text), registry), registry).view("nvidia")


def card(bus, model="a100-sxm4-40gb", more=""):
    return CARD.format(bus=bus, model=model, more=more)


def test_eight_cards_behind_switches_reach_each_other(registry, shipped):
    """Links end at switches, so all 28 pairs are joined 18 wide at 450 GB/s each way; the fabric ends with the machine."""
    inventory = discover(simulate(shipped("nvidia-h100x8"), registry), registry)
    cards = {device.id for device in inventory.devices}

    pairs = [link for link in inventory.links if {link.a, link.b} <= cards]

    assert len(pairs) == 28
    assert {(link.label, link.count, link.bytes_per_second_each_way) for link in pairs} == {("NV18", 18, 450 * 10**9)}
    assert {link.via for link in pairs} == {"nvidia:0000:05:00.0"}
    assert {link.source for link in pairs} == {LinkSource.TABLE}
    assert [node.kind for node in inventory.fabric] == ["fabric-switch"] * 4
    assert all(device.places == () for device in inventory.devices)


def test_links_of_one_card_to_its_switches(registry, shipped):
    """The 18 links of a card are told switch by switch."""
    inventory = discover(simulate(shipped("nvidia-h100x8"), registry), registry)

    switches = {node.id for node in inventory.fabric}
    own = {link.b: link.count for link in inventory.links if link.a == "nvidia:0000:1b:00.0" and link.b in switches}
    assert own == {f"nvidia:0000:0{bus}:00.0": count for bus, count in ((5, 5), (6, 5), (7, 4), (8, 4))}


def test_two_cards_with_one_bridge(registry, shipped):
    """A bridge of four links is one pair, four wide; the driver's own figure gives the speed."""
    inventory = discover(simulate(shipped("nvidia-rtx-pair"), registry), registry)

    (link,) = inventory.links

    assert (link.label, link.count, link.hops, link.via) == ("NV4", 4, 1, None)
    assert link.bytes_per_second_each_way == 4 * 14_062_000_000
    assert link.source is LinkSource.READ


def test_partly_bridged_machine_shows_which_pairs(view_of_text):
    """Of three cards two are bridged: one link, and the third has none."""
    view = view_of_text(card("01") + card("41") + card("81") + LINK.format(a="01", b="81", count=12))

    assert [(link.a, link.b, link.count) for link in view.links] == [("nvidia:0000:01:00.0", "nvidia:0000:81:00.0", 12)]


@pytest.mark.parametrize(
    ("version", "capability", "speed", "expected"),
    [
        (1, (6, 0), None, (20 * 10**9, LinkSource.TABLE)),
        (2, (7, 0), 25781, (25 * 10**9, LinkSource.TABLE)),
        (4, (8, 0), None, (25 * 10**9, LinkSource.TABLE)),
        (4, (8, 6), 14062, (14_062_000_000, LinkSource.READ)),
        (5, (8, 6), None, (None, LinkSource.READ)),
        (6, (9, 0), 26562, (25 * 10**9, LinkSource.TABLE)),
        (7, (10, 0), None, (50 * 10**9, LinkSource.TABLE)),
        (99, (12, 0), None, (None, LinkSource.READ)),
        (None, (), None, (None, LinkSource.READ)),
    ],
)
def test_rate_of_one_link(version, capability, speed, expected):
    """Known versions come from the table, the ambiguous one from the driver, and what neither tells is None."""
    assert link_rate(version, capability, speed) == expected


def test_unknown_speed_has_a_reason(machine_of):
    """Width without speed is shown as that: no figure is made up."""
    devices, document = asked(machine_of, card("01") + card("41") + LINK.format(a="01", b="41", count=4))
    for device in document["devices"]:
        device["nvlinks"] = [
            {**{k: v for k, v in link.items() if k not in ("version", "speed_mbps")}, "codes": {"version": 3}}
            for link in device["nvlinks"]
        ]

    (link,) = describe_links(devices, document).links

    assert (link.count, link.bytes_per_second_each_way) == (4, None)
    assert "speed" in link.reason


def asked(machine_of, text):
    import copy

    from anyaccel.topology import Boundary

    machine = machine_of(text)
    document = copy.deepcopy(machine.answers["nvidia"].documents["nvml"])
    scene = InspectionScene(Boundary("host", False, False, "a test"))
    return inspect_devices(discover_devices(machine).devices, document, scene).devices, document


def test_ends_that_disagree_count_the_fewer(machine_of):
    """One end counts four links, the other three: three, with both figures in the reason."""
    devices, document = asked(machine_of, card("01") + card("41") + LINK.format(a="01", b="41", count=4))
    document["devices"][1]["nvlinks"][0]["state"] = 0

    (link,) = describe_links(devices, document).links

    assert link.count == 3
    assert "4 and 3" in link.reason


def test_switches_hidden_by_a_virtual_machine(machine_of):
    """A guest sees type "switch" and no address: all pairs are joined all the same, through one unnamed switch."""
    switch = '[[card]]\nplugin = "nvidia"\nmodel = "nvswitch-a100"\naddress = "0000:c1:00.0"\n'
    devices, document = asked(machine_of, card("01") + card("41") + switch)
    for device in document["devices"]:
        for link in device["nvlinks"]:
            link["remote_address"] = "0000:00:00.0"

    report = describe_links(devices, document)

    assert [node.id for node in report.nodes] == ["nvidia:nvswitch"]
    assert [link.count for link in report.links if link.b == devices[1].id] == [12]


def test_mig_mode_takes_links_down(registry, shipped):
    """A card in MIG mode reaches no other over NVLink, and the link says so."""
    inventory = discover(simulate(shipped("nvidia-a100x4-mig"), registry), registry)

    states = {(link.a[-7:], link.b[-7:]): link.state for link in inventory.links}

    assert states[("07:00.0", "c7:00.0")] is LinkState.UP
    assert [state for pair, state in states.items() if "47:00.0" in pair or "87:00.0" in pair] == [LinkState.DOWN] * 5


def test_links_to_a_cpu_end_at_its_numa_node(machine_of):
    """Where links lead to the processor (POWER9) the end is the card's NUMA node."""
    devices, document = asked(machine_of, card("01", more="numa_node = 1"))
    document["devices"][0]["nvlinks"] = [
        {"link": n, "state": 1, "version": 2, "remote_type": 1, "remote_address": "0000:00:00.0"} for n in range(3)
    ]

    (link,) = describe_links(devices, document).links

    assert (link.b, link.count, link.bytes_per_second_each_way) == ("numa:1", 3, 75 * 10**9)


def fabric_cards(one, other):
    switch = '[[card]]\nplugin = "nvidia"\nmodel = "nvswitch-h100"\naddress = "0000:c1:00.0"\n'
    return card("01", "h100-sxm5-80gb", one) + card("41", "h100-sxm5-80gb", other) + switch


def test_fabric_domain_is_cluster_and_clique(view_of_text):
    """Cluster id and clique name the NVLink domain that other nodes may share."""
    cluster = 'fabric_cluster = "130961397ada8313ee08000dd8540fe1"\nfabric_clique = 7'

    view = view_of_text(fabric_cards(cluster, cluster))

    assert [place.name for device in view.roots for place in device.places] == [
        "13096139-7ada-8313-ee08-000dd8540fe1.7"
    ] * 2


def test_unknown_fabric_matches_nothing(view_of_text):
    """Cards that have not finished registering are in a domain without a name, and CUDA does not start."""
    fault = '[[fault]]\nkind = "fabric-not-ready"\nplugin = "nvidia"\n'

    view = view_of_text(fabric_cards("", "") + fault)

    assert [(place.name, bool(place.reason)) for device in view.roots for place in device.places] == [(None, True)] * 2
    assert [device.state.value for device in view.roots] == ["unusable"] * 2
    assert "nvidia-fabricmanager" in view.roots[0].hint
    pair = [link for link in view.links if link.b == view.roots[1].id]
    assert [link.state for link in pair] == [LinkState.UNKNOWN]


def test_cards_of_two_domains_are_not_joined(view_of_text):
    """Behind switches, cards of different cliques do not reach each other."""
    view = view_of_text(fabric_cards(*(f'fabric_cluster = "{"ab" * 16}"\nfabric_clique = {n}' for n in (1, 2))))

    assert [link for link in view.links if link.b == view.roots[1].id] == []


def test_degraded_fabric_blocks_links_only(view_of_text):
    """Degraded bandwidth is a condition that leaves the card ready."""
    view = view_of_text(fabric_cards("fabric_health_mask = 1", ""))

    assert [c.code for c in view.roots[0].conditions] == ["fabric-degraded"]
    assert view.roots[0].state.value == "ready"


def test_refused_access_between_cards_is_told_once(registry, shipped):
    """Pairs without NVLink whose memory cannot be read over PCIe are one note with the cause."""
    inventory = discover(simulate(shipped("nvidia-dgx-station"), registry), registry)

    assert inventory.notes == (
        "4 pairs of cards without NVLink cannot read each other's memory: the cards do not support it",
    )


def test_links_are_unknown_without_the_library(registry, shipped, plugin, machine_of):
    """An empty report says why nothing could be asked."""
    machine = machine_of(shipped("nvidia-library-missing"))
    devices = discover_devices(machine).devices

    report = plugin.call("accel_describe_topology", machine=machine, devices=devices)

    assert report.links == ()
    assert "libnvidia-ml.so.1" in report.reason


def test_failed_registration_names_no_domain(machine_of):
    """A card whose registration with the fabric failed is in no known domain, with the driver's words."""
    _, document = asked(machine_of, fabric_cards("", ""))
    document["devices"][0]["fabric"]["status"] = 999
    machine = machine_of(fabric_cards("", ""))
    scene = InspectionScene(machine_boundary())

    seen = inspect_devices(discover_devices(machine).devices, document, scene).devices

    assert [(place.name, "unknown error" in place.reason) for place in seen[0].places] == [(None, True)]


def machine_boundary():
    from anyaccel.topology import Boundary

    return Boundary("host", False, False, "a test")


def test_refused_access_over_nvlink_is_in_the_reason(machine_of):
    """A pair that is joined and may not read each other's memory keeps its width and says why."""
    devices, document = asked(machine_of, card("01") + card("41") + LINK.format(a="01", b="41", count=4))
    document["pairs"][0]["peer_read"] = 4

    (link,) = describe_links(devices, document).links

    assert link.count == 4
    assert "switched off by a driver setting" in link.reason
