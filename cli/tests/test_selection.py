"""What --select expressions name and match."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from anyaccel.device import Device
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel_cli.failures import NothingMatchedError, WrongUsageError
from anyaccel_cli.selection import select


def _numbers(inventory: Inventory, *expressions: str) -> list[object]:
    return [device.numbers["index"] for device in select(inventory, expressions).chosen]


def test_no_expression_means_every_device(masked_server: Inventory) -> None:
    """Without --select nothing is left out."""
    assert select(masked_server, ()).chosen == masked_server.devices


@pytest.mark.parametrize(
    "name",
    ["gpu:0000:12:00.0", "gpu:0000:12", "GPU-22c0ffee-0000", "GPU-22", "gpu-22C0", "22c0ffee", "0000:12:00.0", "12:00.0",
     "00000000:12:00.0", "gpu:2"],
)  # fmt: skip
def test_a_name_finds_its_one_device(masked_server: Inventory, name: str) -> None:
    """Ids, uuids, their beginnings, PCI addresses in every spelling and vendor:number name one device."""
    assert _numbers(masked_server, name) == [2]


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("*", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("gpu:*", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("state=lost", [3]),
        ("state=hidden", [6, 7]),
        ("numa=1", [4, 5, 6, 7]),
        ("model=g100", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("model~80gb", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("minor=5", [5]),
        ("numbers.minor=5", [5]),
        ("visible=yes", [0, 1, 2, 4, 5]),
        ("pci=0000:13:00.0", [3]),
        ("memory_bytes=85899345920", [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_a_filter_matches_devices(masked_server: Inventory, expression: str, numbers: list[int]) -> None:
    """Patterns and key=value, key~text match by value, whole word or part, whatever the case."""
    assert _numbers(masked_server, expression) == numbers


def test_several_expressions_are_joined_in_the_inventorys_order(masked_server: Inventory) -> None:
    """Repeating --select adds devices; their order and number of mentions change nothing."""
    assert _numbers(masked_server, "gpu:5", "state=lost", "gpu:1", "gpu:5") == [1, 3, 5]


def test_unknown_values_are_found_by_the_word(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """`numa=unknown` finds the devices whose NUMA node nobody knows."""
    inventory = make_inventory(make_gpu(0), make_gpu(1, numa_node=None))

    assert _numbers(inventory, "numa=unknown") == [1]


def test_an_attribute_can_be_filtered(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """Whatever a plugin says of a device is a key."""
    inventory = make_inventory(make_gpu(0), make_gpu(1, attributes=FrozenMap({"gfx": "gfx942"})))

    assert _numbers(inventory, "gfx=GFX942") == [1]


def test_an_ambiguous_beginning_lists_the_candidates(masked_server: Inventory) -> None:
    """A beginning that several devices share is wrong usage, and the message names them."""
    with pytest.raises(WrongUsageError, match=r"ambiguous: gpu:0000:10:00\.0, gpu:0000:11:00\.0"):
        select(masked_server, ("gpu:0000:1",))


def test_a_name_of_a_card_is_not_ambiguous_with_its_parts(partitioned_server: Inventory) -> None:
    """The ids of parts begin with the id of the card; the card is meant."""
    assert [d.id for d in select(partitioned_server, ("gpu:0000:10",)).chosen] == ["gpu:0000:10:00.0"]


def test_a_number_means_the_card_not_its_part(partitioned_server: Inventory) -> None:
    """Cards and their parts are both numbered from 0; vendor:number counts the upper level."""
    assert [d.id for d in select(partitioned_server, ("gpu:0",)).chosen] == ["gpu:0000:10:00.0"]


def test_a_named_card_is_shown_with_its_parts(partitioned_server: Inventory) -> None:
    """What is chosen is the card alone, what is shown is the card with the parts below."""
    matches = select(partitioned_server, ("gpu:0",))

    assert (len(matches.chosen), len(matches.shown)) == (1, 3)


def test_a_filter_shows_exactly_what_it_matches(partitioned_server: Inventory) -> None:
    """A filter that matches the card says nothing about its parts."""
    assert len(select(partitioned_server, ("state=partitioned",)).shown) == 1


@pytest.mark.parametrize("name", ["gpu:9", "nvida:0", "0000:99:00.0", "state=asleep", "nobody:*", "x"])
def test_what_is_not_there_is_nothing_matched(masked_server: Inventory, name: str) -> None:
    """Understood, but no device answers."""
    with pytest.raises(NothingMatchedError, match=name.replace("*", r"\*")):
        select(masked_server, (name,))


def test_an_unknown_key_suggests_the_nearest(masked_server: Inventory) -> None:
    """A typing error in a key is named with the key that was probably meant."""
    with pytest.raises(NothingMatchedError, match="no device has the key 'modle'") as raised:
        select(masked_server, ("modle=x",))

    assert raised.value.hint == "did you mean 'model'?"


def test_an_unknown_number_says_why(make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]) -> None:
    """When nobody could number the cards, vendor:number says so instead of `not there`."""
    nameless = make_gpu(
        0, numbers=FrozenMap({"index": None}), unknown=FrozenMap({"numbers.index": "the driver was not asked"})
    )

    with pytest.raises(NothingMatchedError, match="the driver was not asked"):
        select(make_inventory(nameless), ("gpu:0",))


def test_an_empty_expression_is_wrong_usage(masked_server: Inventory) -> None:
    """An empty variable in a script must not select everything."""
    with pytest.raises(WrongUsageError, match="--select is empty"):
        select(masked_server, ("",))


def test_two_devices_at_one_address_are_ambiguous(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """Two chips may share a PCI function; its address names neither."""
    inventory = make_inventory(make_gpu(0), make_gpu(1, pci_addresses=("0000:10:00.0",)))

    with pytest.raises(WrongUsageError, match="ambiguous"):
        select(inventory, ("0000:10:00.0",))


def test_a_vendor_alone_says_how_to_mean_all_of_it(masked_server: Inventory) -> None:
    """The bare key of a family is ambiguous, and the hint is what one wanted."""
    with pytest.raises(WrongUsageError, match="ambiguous") as raised:
        select(masked_server, ("gpu",))

    assert raised.value.hint == "--select 'gpu:*' means all of them"


def test_a_number_that_a_part_has_too_means_the_whole_device(partitioned_server: Inventory) -> None:
    """Card 1 is meant, not partition 1 of card 0, and this is noted."""
    matches = select(partitioned_server, ("gpu:1",))

    assert ([device.id for device in matches.chosen], matches.notes) == (
        ["gpu:0000:11:00.0"],
        ("'gpu:1' means the whole device; 1 part of a device has the same number (first: gpu:0000:10:00.0/part1)",),
    )


def test_a_part_is_named_by_the_numbers_that_discover_shows(partitioned_server: Inventory) -> None:
    """Number of the card, number of the partition."""
    assert [device.id for device in select(partitioned_server, ("gpu:0/1",)).chosen] == ["gpu:0000:10:00.0/part1"]
