"""`accel-cli discover` on small machines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry

Invoke = Callable[..., Result]
Write = Callable[[str, str], str]


def test_the_table_shows_devices_reasons_and_a_summary(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """One row a device, the reason below a row that is not ready, the number of each state at the end."""
    result = invoke("discover", "--root", toy_root, registry=toy_registry)

    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            f"root {toy_root}",
            "      #  vendor  model   memory  PCI           NUMA     driver   state",
            "unknown  toy     Toy 1  unknown  0000:01:00.0  unknown  toy      ready",
            "unknown  toy     Toy 1  unknown  0000:02:00.0  unknown  unknown  unusable",
            "    no kernel driver is bound",
            "2 devices: 1 ready, 1 unusable",
        ],
    )


def test_hints_are_on_stderr_only(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """What to do next never mixes with the result."""
    assert (
        invoke("discover", "--root", toy_root, registry=toy_registry).stderr == "hint: load the kernel driver (toy)\n"
    )


def test_quiet_has_results_only(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """-q leaves stderr empty when nothing failed."""
    assert invoke("discover", "--root", toy_root, "-q", registry=toy_registry).stderr == ""


def test_json_is_one_document_on_stdout(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """A parser gets one document, states as words, unknown as null with its reason beside it."""
    document = json.loads(invoke("discover", "--root", toy_root, "--json", registry=toy_registry).stdout)
    device = document["devices"][1]

    assert (
        document["schema"],
        device["state"],
        device["numa_node"],
        device["unknown"]["numa_node"],
        device["conditions"][0]["code"],
    ) == ({"name": "accel-discover", "version": "1.0"}, "unusable", None, "the kernel reports -1", "no-driver")


def test_ids_are_one_a_line(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """For shell loops: nothing but ids."""
    result = invoke("discover", "--root", toy_root, "--format", "ids", registry=toy_registry)

    assert result.stdout == "toy:0000:01:00.0\ntoy:0000:02:00.0\n"


def test_csv_has_a_head_and_plain_values(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """CSV parses, with the columns asked for in their order and units in the head."""
    result = invoke(
        "discover", "--root", toy_root, "--format", "csv", "--columns", "state,memory,id", registry=toy_registry
    )

    assert list(csv.reader(io.StringIO(result.stdout)))[:2] == [
        ["state", "memory_bytes", "id"],
        ["ready", "unknown", "toy:0000:01:00.0"],
    ]


def test_wide_adds_the_stable_names(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """The wide table has the id of each device."""
    result = invoke("discover", "--root", toy_root, "--format", "wide", registry=toy_registry)

    assert "toy:0000:01:00.0" in result.stdout.splitlines()[2]


def test_select_filters_rows(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """The table, its summary and its hints concern what was selected."""
    result = invoke("discover", "--root", toy_root, "--select", "state=ready", registry=toy_registry)

    assert (result.stdout.splitlines()[-1], result.stderr) == ("1 device: 1 ready", "")


def test_what_is_not_there_is_exit_3(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Nothing matched: no table, one sentence."""
    result = invoke("discover", "--root", toy_root, "--select", "toy:0000:99:00.0", registry=toy_registry)

    assert (result.exit_code, result.stdout, result.stderr.splitlines()[0]) == (
        3,
        "",
        "error: no device is named 'toy:0000:99:00.0'",
    )


def test_json_is_a_document_even_when_nothing_matched(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """A parser never sees an empty stdout."""
    result = invoke("discover", "--root", toy_root, "--select", "state=lost", "--json", registry=toy_registry)

    assert (result.exit_code, json.loads(result.stdout)["devices"]) == (3, [])


def test_an_ambiguous_name_is_exit_2(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Both candidates are named."""
    result = invoke("discover", "--root", toy_root, "--select", "toy:0000", registry=toy_registry)

    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        2,
        "error: name 'toy:0000' is ambiguous: toy:0000:01:00.0, toy:0000:02:00.0",
    )


def test_nothing_says_why_and_is_exit_3(invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]) -> None:
    """One line a plugin on stdout, what could be done on stderr."""
    root = make_root()
    result = invoke("discover", "--root", root, registry=toy_registry)

    assert (result.exit_code, result.stdout.splitlines(), result.stderr) == (
        3,
        [f"root {root}", "no accelerator found", "  toy  no toy card on PCI"],
        "hint: plug one in\n",
    )


@pytest.mark.parametrize(("format_", "lines"), [("ids", 0), ("csv", 1)])
def test_nothing_is_no_row_for_programs(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path], format_: str, lines: int
) -> None:
    """A shell loop over nothing runs zero times."""
    result = invoke("discover", "--root", make_root(), "--format", format_, registry=toy_registry)

    assert (result.exit_code, len(result.stdout.splitlines())) == (3, lines)


def test_no_plugin_at_all_says_how_to_get_some(invoke: Invoke, make_root: Callable[..., Path]) -> None:
    """An installation without plugins is told apart from a machine without devices."""
    result = invoke("discover", "--root", make_root())

    assert (result.exit_code, "no plugin is installed" in result.stdout, "anyaccel-cli[all]" in result.stderr) == (
        3,
        True,
        True,
    )


def test_a_broken_plugin_costs_its_own_rows_and_is_exit_4(
    invoke: Invoke, write_module: Write, toy_source: Callable[..., str], toy_root: Path
) -> None:
    """The other plugin's devices are listed, the broken one is named on stderr."""
    broken = toy_source("bad", 0x5678) + "\n\ndef _raise(machine):\n    raise RuntimeError('no luck')\n"
    broken = broken.replace("    found = match_functions(machine, RULES)", "    _raise(machine)")
    registry = Registry.of(write_module("bad_plugin", broken), write_module("toy_plugin_b", toy_source()))
    result = invoke("discover", "--root", toy_root, "--format", "ids", registry=registry)

    assert (result.exit_code, len(result.stdout.splitlines())) == (4, 2)
    assert "error: plugin 'bad' raised" in result.stderr
    assert "no luck" in result.stderr


def test_a_plugin_that_raises_on_import_is_exit_4(
    invoke: Invoke, write_module: Write, toy_source: Callable[..., str], toy_root: Path
) -> None:
    """A missing library costs the devices of that plugin only, and its name is said."""
    bad = write_module("unloadable_plugin", "raise ImportError('libfoo.so: cannot open shared object file')")
    registry = Registry.of(bad, write_module("toy_plugin_c", toy_source()))
    result = invoke("discover", "--root", toy_root, "--format", "ids", registry=registry)

    assert (result.exit_code, len(result.stdout.splitlines()), "libfoo.so" in result.stderr) == (4, 2, True)


def test_nothing_matched_and_a_broken_plugin_is_exit_4(invoke: Invoke, write_module: Write, toy_root: Path) -> None:
    """What was asked for may be missing because of the broken plugin, so that is the alarm."""
    registry = Registry.of(write_module("unloadable_plugin_b", "raise ImportError('x')"))

    assert invoke("discover", "--root", toy_root, "--select", "bad:0", registry=registry).exit_code == 4


def test_vendor_looks_at_that_vendor_only(
    invoke: Invoke, write_module: Write, toy_source: Callable[..., str], toy_root: Path
) -> None:
    """A broken plugin of another vendor changes neither result nor exit code."""
    bad = write_module("unloadable_plugin_c", "raise ImportError('x')")
    registry = Registry.of(bad, write_module("toy_plugin_d", toy_source()))
    result = invoke("discover", "--root", toy_root, "--vendor", "toy", registry=registry)

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "2 devices: 1 ready, 1 unusable")


def test_the_shells_mask_is_ignored_elsewhere_and_this_is_said(
    invoke: Invoke, toy_registry: Registry, toy_root: Path
) -> None:
    """A mask of this shell says nothing about another machine; the note is on stderr and in the document."""
    result = invoke("discover", "--root", toy_root, "--json", registry=toy_registry, env={"TOY_VISIBLE": "0"})
    note = "TOY_VISIBLE of this shell is ignored: the machine shown is not this one (see --env)"

    assert (f"note: {note}" in result.stderr.splitlines(), json.loads(result.stdout)["notes"]) == (True, [note])


def test_hostile_text_of_a_plugin_reaches_no_terminal(
    invoke: Invoke, write_module: Write, toy_source: Callable[..., str], toy_root: Path
) -> None:
    """Escapes, markup and line breaks in a model name stay on their row, in every format for people."""
    source = toy_source().replace('model="Toy 1"', r'model="a\x1b[31m[red]b\nc"')
    registry = Registry.of(write_module("hostile_plugin", source))
    texts = [
        invoke("discover", "--root", toy_root, "--format", format_, "--columns", "model", registry=registry).stdout
        for format_ in ("table", "csv")
    ]

    assert [(r"a\x1b[31m[red]b\nc" in text, "\x1b" in text) for text in texts] == [(True, False), (True, False)]


def test_colour_can_be_forced_and_forbidden(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Off a terminal there is colour only on request."""
    outputs = [
        invoke("discover", "--root", toy_root, "--color", choice, registry=toy_registry).stdout
        for choice in ("auto", "always", "never")
    ]

    assert ["\x1b[" in text for text in outputs] == [False, True, False]


def test_output_writes_the_result_to_a_file(
    invoke: Invoke, toy_registry: Registry, toy_root: Path, tmp_path: Path
) -> None:
    """The same bytes as stdout would have, and nothing on stdout."""
    target = tmp_path / "result.json"
    printed = invoke("discover", "--root", toy_root, "--json", registry=toy_registry).stdout
    result = invoke("discover", "--root", toy_root, "--json", "--output", target, registry=toy_registry)

    assert (result.stdout, target.read_text()) == ("", printed)


def test_integrated_parts_get_a_row_with_all(
    invoke: Invoke, write_module: Write, toy_source: Callable[..., str], toy_root: Path
) -> None:
    """By default a machine with integrated parts only has nothing; --all lists them as rows."""
    source = "from dataclasses import replace\n" + toy_source().replace(
        "return Discovery(devices)",
        "return Discovery(tuple(replace(d, is_integrated=True, is_counted=False, count_reason='shares the host')"
        " for d in devices))",
    )
    registry = Registry.of(write_module("integrated_plugin", source))
    plain, full = (invoke("discover", "--root", toy_root, *more, registry=registry) for more in ((), ("--all",)))

    assert (plain.exit_code, full.exit_code, full.stdout.splitlines()[-1]) == (3, 0, "2 not counted")
    assert "integrated part Toy 1 (0000:01:00.0) is not counted: shares the host" in plain.stdout


def test_verbose_says_what_each_plugin_looked_at(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """What came of it, the driver, and whether one was asked."""
    lines = invoke("discover", "--root", toy_root, "-v", registry=toy_registry).stderr.splitlines()

    assert "note: toy: found 2 devices, parts included; driver toy, version unknown; driver unknown, version unknown; " \
        "the plugin asks no driver" in lines  # fmt: skip


def test_verbose_says_why_a_plugin_found_nothing(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """The reason, and that there was nothing to ask a driver about."""
    lines = invoke("discover", "--root", make_root(), "-v", registry=toy_registry).stderr.splitlines()

    assert "note: toy: nothing: no toy card on PCI; no driver was asked" in lines


def test_verbose_names_the_hooks_that_asked(invoke: Invoke, example_registry: Registry) -> None:
    """An imaginary machine answers from what is stored."""
    errors = invoke("discover", "--simulate", "example-grid", "-v", registry=example_registry).stderr

    assert "asked what is stored (simulated): accel_inspect_devices answered" in errors


def test_verbose_says_that_a_number_means_the_whole_device(invoke: Invoke, example_registry: Registry) -> None:
    """A card and one of its parts have the same number; which of them was meant is said on request."""
    machine = ("--simulate", "example-grid", "--select", "example:0")
    quiet, verbose = (invoke("discover", *machine, *more, registry=example_registry).stderr for more in ((), ("-v",)))

    assert ["'example:0' means the whole device" in text for text in (quiet, verbose)] == [False, True]


def test_a_variable_without_effect_is_said_to_have_none(invoke: Invoke) -> None:
    """A container runtime's variable left in a shell changes nothing, and the note says so."""
    pytest.importorskip("anyaccel_nvidia", reason="anyaccel_nvidia is not installed")
    registry = Registry.of("anyaccel_nvidia.plugin")
    result = invoke(
        "discover", "--simulate", "nvidia-rtx-pair", "--env", "NVIDIA_VISIBLE_DEVICES=none", registry=registry
    )

    assert "NVIDIA_VISIBLE_DEVICES='none' has no effect here" in result.stderr
    assert "2 devices: 2 ready" in result.stdout


def test_cores_that_only_repeat_their_device_are_counted(invoke: Invoke, example_registry: Registry) -> None:
    """Eight chips get a row each; their sixteen equal cores are in the last line, and in rows with --all."""
    short, full = (
        invoke("discover", "--simulate", "example-grid", *more, registry=example_registry) for more in ((), ("--all",))
    )

    assert "note: 16 parts that only repeat their device are not listed (--all lists them)" in short.stderr
    assert len(full.stdout.splitlines()) - len(short.stdout.splitlines()) == 16
    assert short.stdout.splitlines()[-1] == full.stdout.splitlines()[-1]


def test_cores_with_a_number_of_their_own_are_listed(invoke: Invoke, example_registry: Registry) -> None:
    """As soon as a mask counts cores, each core that it shows is a row."""
    shown = invoke(
        "discover", "--simulate", "example-grid", "--env", "EXAMPLE_VISIBLE_UNITS=1", registry=example_registry
    ).stdout

    assert [line for line in shown.splitlines() if line.lstrip().startswith("0/1 ")]
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("1/2 ")]
