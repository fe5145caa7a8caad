"""Links: xGMI with hops and count, PCIe peers, ways inside a package; KFD's word, amdsmi's where KFD has none."""

from __future__ import annotations

from itertools import combinations

import pytest

from anyaccel.device import Device
from anyaccel.frozen import FrozenMap
from anyaccel.replies import Reply
from anyaccel.topology import LinkState, TopologyReport
from anyaccel_amd.kfd import KfdLink
from anyaccel_amd.links import report_from_kfd, with_smi_links
from anyaccel_amd.smi_answer import expected_library_major, library_major, link_kind, processor_of

XGMI, PCIE = 11, 2


def device(number, parent=None):
    address = f"0000:{number:02x}:00.0"
    return Device(
        f"amd:{address}",
        "amd",
        parent=parent,
        pci_addresses=() if parent else (address,),
        numbers=FrozenMap({"kfd": number}),
    )


THREE = tuple(device(number) for number in (1, 2, 3))


def way(a, b, weight=15, *, low=50_000, high=50_000, kind=XGMI, enabled=True):
    return KfdLink(a, b, kind, weight, low, high, is_enabled=enabled)


def both(a, b, *args, **more):
    return way(a, b, *args, **more), way(b, a, *args, **more)


def only(report):
    (link,) = report.links
    return link


def test_a_mesh_of_eight_has_28_links(shipped, inventory_of):
    """Every pair of eight MI300X is joined by one xGMI link of one hop."""
    inventory = inventory_of(shipped("amd-mi300x8"))
    ids = [found.id for found in inventory.devices]

    assert {frozenset((link.a, link.b)) for link in inventory.links} == {frozenset(p) for p in combinations(ids, 2)}
    assert {(link.kind, link.label, link.hops, link.count) for link in inventory.links} == {("xgmi", "XGMI", 1, 1)}


def test_a_bridge_of_three_links_counts_three(shipped, inventory_of):
    """Two MI210 under one bridge: three links whose bandwidths add up; the pairs reach each other by PCIe."""
    links = inventory_of(shipped("amd-mi210x4")).links
    bridges = [link for link in links if link.kind == "xgmi"]

    assert [(link.count, link.bytes_per_second_each_way) for link in bridges] == [(3, 150_000_000_000)] * 2
    assert [link.kind for link in links].count("pcie") == 4


def test_two_directions_are_one_link():
    """KFD tells a link at both ends; it is one."""
    assert len(report_from_kfd(THREE, both(1, 2)).links) == 1


def test_one_direction_is_enough():
    """A link told at one end only, as by a node whose other end is refused, is there."""
    assert only(report_from_kfd(THREE, [way(2, 1)])).hops == 1


def test_the_nearer_direction_counts():
    """Where the two ends tell different weights the smaller one ranks the link."""
    report = report_from_kfd(THREE, (way(1, 2, 30), way(2, 1, 15), *both(1, 3, 30)))

    assert [link.hops for link in report.links] == [1, 2]


def test_two_kinds_between_one_pair_are_two_links():
    """An xGMI and a PCIe way of one pair stay apart."""
    report = report_from_kfd(THREE, (*both(1, 2), *both(1, 2, 40, kind=PCIE)))

    assert sorted(link.kind for link in report.links) == ["pcie", "xgmi"]


def test_bandwidth_is_in_bytes():
    """KFD tells MB/s."""
    assert only(report_from_kfd(THREE, both(1, 2))).bytes_per_second_each_way == 50_000_000_000


def test_bandwidth_0_is_unknown_and_the_link_is_there():
    """A link of unknown bandwidth has kind, hops and the reason."""
    link = only(report_from_kfd(THREE, both(1, 2, low=0, high=0)))

    assert (link.kind, link.hops, link.bytes_per_second_each_way, link.count) == ("xgmi", 1, None, None)
    assert "bandwidth 0, which means unknown" in link.reason


@pytest.mark.parametrize(("weight", "hops"), [(15, 1), (30, 2), (45, 3)])
def test_hops_are_ranked_from_the_nearest(weight, hops):
    """Each 15 of weight above the nearest link of the machine is one hop more."""
    report = report_from_kfd(THREE, (*both(1, 2, 15), *both(1, 3, weight)))

    assert report.links[1].hops == hops


def test_partitions_of_two_gpus_are_one_hop_at_41():
    """With partitions the nearest way between two packages weighs 41; the weight is ranked, not compared with one value."""
    parts = (device(4, "amd:g1"), device(5, "amd:g2"), device(6, "amd:g3"))
    report = report_from_kfd(parts, (*both(4, 5, 41), *both(4, 6, 56)))

    assert [link.hops for link in report.links] == [1, 2]


def test_a_weight_between_hops_is_no_number_of_hops():
    """A weight that is no multiple is told and not rounded."""
    link = report_from_kfd(THREE, (*both(1, 2, 15), *both(1, 3, 22))).links[1]

    assert link.hops is None
    assert "weight 22" in link.reason


def test_weight_0_tells_no_distance():
    """A weight of 0 is not told: no hops are made of it, and it does not move the others'."""
    links = report_from_kfd(THREE, (*both(1, 2, 15), *both(1, 3, 0), way(2, 3, 0), way(3, 2, 30))).links

    assert [link.hops for link in links] == [1, None, 2]
    assert links[1].reason == "KFD reports no weight"


def test_partitions_of_one_gpu_share_a_package():
    """They are joined inside, which is no xGMI link of the board."""
    parts = (device(4, "amd:g"), device(5, "amd:g"))

    link = only(report_from_kfd(parts, both(4, 5, 13, low=819_200, high=819_200)))

    assert (link.kind, link.label, link.hops, link.count) == ("same-package", "PKG", 1, None)


def test_all_partitions_of_the_simulated_machine_are_joined(shipped, inventory_of):
    """63 partitions give 63 * 62 / 2 links, those inside a GPU of their own kind."""
    links = inventory_of(shipped("amd-mi300x8-cpx-63")).links
    inside = [link for link in links if link.kind == "same-package"]

    assert len(links) == 63 * 62 // 2
    assert len(inside) == 7 * 28 + 21


def test_a_disabled_link_is_not_told_as_up():
    """Without the flag the state is unknown."""
    report = report_from_kfd(THREE, (*both(1, 2, enabled=False), *both(1, 3)))

    assert [link.state for link in report.links] == [LinkState.UNKNOWN, LinkState.UP]


@pytest.mark.parametrize("name", ["amd-mi210x4", "amd-mi300x8-cpx-63"])
def test_everything_unknown_has_a_reason(name, shipped, inventory_of):
    """No link leaves a bandwidth, a count, hops or a state open without saying why."""
    for link in inventory_of(shipped(name)).links:
        known = link.bytes_per_second_each_way, link.count, link.hops
        assert link.reason or None not in known


def test_a_disabled_link_says_so():
    """The reason tells why its state is unknown."""
    assert "does not call it enabled" in only(report_from_kfd(THREE, both(1, 2, enabled=False))).reason


def test_uneven_bandwidths_tell_no_count():
    """A sum that is no multiple of one link's bandwidth gives no number of links."""
    link = only(report_from_kfd(THREE, both(1, 2, low=60_000, high=100_000)))

    assert (link.count, link.bytes_per_second_each_way) == (None, 100_000_000_000)
    assert "no multiple" in link.reason


def test_links_to_cpus_and_to_itself_are_left_out():
    """The host side is the business of PCI; a link to itself is none."""
    assert report_from_kfd(THREE, (way(1, 0, kind=PCIE), way(1, 1), way(1, 2, kind=1))).links == ()


def _answer(version="26.0.2", kind=2, *, links=(), processors=()):
    rows = [{"a": "0000:01:00.0", "b": "0000:02:00.0", "type": kind}, *links]
    return {"library_version": version, "links": rows, "processors": list(processors)}


def test_amdsmi_tells_links_where_kfd_told_none():
    """The kind comes from amdsmi, with a reason for what is missing."""
    link = only(with_smi_links(TopologyReport(), THREE, _answer()))

    assert (link.kind, link.hops, link.bytes_per_second_each_way) == ("xgmi", None, None)
    assert "KFD told no link" in link.reason


def test_a_clash_is_noted_and_kfd_is_believed():
    """Two words for one link are told; KFD's stands."""
    report = with_smi_links(report_from_kfd(THREE, both(1, 2)), THREE, _answer(kind=1))

    assert only(report).kind == "xgmi"
    assert "amdsmi calls amd:0000:01:00.0" in report.notes[0]


def test_agreement_is_silent():
    """The same word from both makes no note."""
    assert with_smi_links(report_from_kfd(THREE, both(1, 2)), THREE, _answer()).notes == ()


@pytest.mark.parametrize(("gbits", "speed"), [(400, 100_000_000_000), (None, None)])
def test_amdsmi_fills_an_unknown_bandwidth(gbits, speed):
    """The bandwidths of the links of a pair add up, from Gbit/s to bytes/s each way."""
    row = {"address": "0000:02:00.0", "type": 2, "max_gbits": gbits}
    answer = _answer(processors=[{"address": "0000:01:00.0", "xgmi_links": [row, row]}])

    link = only(with_smi_links(report_from_kfd(THREE, both(1, 2, low=0, high=0)), THREE, answer))

    assert link.bytes_per_second_each_way == speed


def test_amdsmi_does_not_overrule_a_known_bandwidth():
    """KFD's bandwidth stays."""
    row = {"address": "0000:02:00.0", "type": 2, "max_gbits": 512}
    answer = _answer(processors=[{"address": "0000:01:00.0", "xgmi_links": [row]}])

    link = only(with_smi_links(report_from_kfd(THREE, both(1, 2)), THREE, answer))

    assert link.bytes_per_second_each_way == 50_000_000_000


@pytest.mark.parametrize(
    ("version", "call", "number", "kind"),
    [
        ("24.6.4", "topology", 2, "xgmi"),
        ("24.7.1", "topology", 2, "xgmi"),
        ("25.5.1", "topology", 1, "pcie"),
        ("26.0.2", "topology", 2, "xgmi"),
        ("26.0.2", "topology", 1, "pcie"),
        ("24.6.4", "metrics", 1, "xgmi"),
        ("24.6.4", "metrics", 0, "pcie"),
        ("24.7.1", "metrics", 1, "xgmi"),
        ("25.5.1", "metrics", 2, "pcie"),
        ("26.0.2", "metrics", 2, "xgmi"),
        ("26.0.2", "metrics", 0, "internal"),
        ("26.0.2", "topology", 9, None),
        (None, "topology", 2, None),
        ("26.0.2", "topology", None, None),
    ],
)
def test_link_numbers_mean_what_the_library_of_that_version_means(version, call, number, kind):
    """The enum was renumbered: the same number is xGMI in one version and PCIe in another (wheels 6.2.4 to 7.0.2)."""
    assert link_kind(number, version, call=call) == kind


@pytest.mark.parametrize("version", ["25.5.1", "24.7.1", "26.0.2"])
def test_the_simulated_answer_fits_its_library_version(version, described, inventory_of, card):
    """Whatever library answers, the kinds it tells agree with KFD's."""
    text = f'[amd]\nlibrary_version = "{version}"\nhive = "mesh"\n' + card() + card(address="0000:26:00.0")

    inventory = inventory_of(described(text))

    assert inventory.notes == ()
    assert [link.kind for link in inventory.links] == ["xgmi"]


@pytest.mark.parametrize(
    ("binding", "major"),
    [
        ("6.2.4", 24),
        ("6.3.3", 24),
        ("6.4.4", 25),
        ("7.0.2", 26),
        ("26.1.0", 26),
        ("5.7", None),
        ("8.0", None),
        ("", None),
    ],
)
def test_a_binding_expects_one_library(binding, major):
    """Wheels carry ROCm's version, ROCm's own copy the library's; others are not guessed."""
    assert expected_library_major(binding) == major


@pytest.mark.parametrize(("text", "major"), [("26.0.2", 26), ("", None), (None, None), ("x.1", None)])
def test_a_library_version_is_read_from_its_text(text, major):
    """Only a number before the first point counts."""
    assert library_major(text) == major


def test_a_processor_is_found_by_its_node_first():
    """Partitions share an address; without a node a lone address is enough, several are not."""
    rows = [{"address": "a", "kfd_node": 1}, {"address": "a", "kfd_node": 2}, {"address": "b", "kfd_node": None}]
    rows = Reply({"processors": rows}).rows("processors")

    assert processor_of(rows, address="a", kfd_node=2) is rows[1]
    assert processor_of(rows, address="b", kfd_node=9) is rows[2]
    assert processor_of(rows, address="a", kfd_node=9) is None
