"""`accel-cli simulate`, and looking at imaginary machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry

Invoke = Callable[..., Result]


def test_the_list_names_machines_and_their_cards(invoke: Invoke, example_registry: Registry) -> None:
    """Every machine that a plugin brings has a row."""
    lines = invoke("simulate", "--list", registry=example_registry).stdout.splitlines()

    assert (lines[0].split(), [line.split()[0] for line in lines[1:]]) == (
        ["name", "cards", "title"],
        ["example-faults", "example-grid", "example-small"],
    )


def test_the_list_as_json_counts_cards(invoke: Invoke, example_registry: Registry) -> None:
    """Cards are counted by plugin and model."""
    document = json.loads(invoke("simulate", "--list", "--json", registry=example_registry).stdout)

    assert document["machines"][1]["cards"] == [{"plugin": "example", "model": "ex2", "count": 4}]


def test_no_machine_is_exit_3(invoke: Invoke) -> None:
    """Nothing to list."""
    assert invoke("simulate", "--list").exit_code == 3


@pytest.mark.parametrize("name", ["machine", "machine.tar.gz"])
def test_a_written_machine_shows_what_the_imaginary_one_shows(
    invoke: Invoke, example_registry: Registry, tmp_path: Path, name: str
) -> None:
    """Writing and reading back changes nothing, and it still says that it is simulated."""
    target = tmp_path / name
    written = invoke("simulate", "example-grid", "-o", target, registry=example_registry)
    texts = [
        invoke("discover", *machine, registry=example_registry).stdout
        for machine in (("--simulate", "example-grid"), ("--replay", target))
    ]

    assert (written.stdout, texts[0] == texts[1], texts[1].splitlines()[0]) == (
        f"wrote simulated machine example-grid to {target}\n",
        True,
        "simulated: example-grid",
    )


@pytest.mark.parametrize(
    "arguments", [(), ("--list", "example-grid"), ("example-grid",), ("-o", "x"), ("--list", "-o", "x")]
)
def test_half_a_request_is_wrong_usage(invoke: Invoke, example_registry: Registry, arguments: tuple[str, ...]) -> None:
    """Either list, or write one machine to one place."""
    assert invoke("simulate", *arguments, registry=example_registry).exit_code == 2


def test_an_unknown_machine_suggests_the_nearest(invoke: Invoke, example_registry: Registry) -> None:
    """The known names are listed."""
    result = invoke("simulate", "example-gird", "-o", "x", registry=example_registry)

    assert (result.exit_code, result.stderr.splitlines()) == (
        2,
        [
            "error: unknown machine 'example-gird' (known: example-faults, example-grid, example-small)",
            "hint: did you mean 'example-grid'?",
        ],
    )


def test_a_broken_description_is_one_sentence(invoke: Invoke, example_registry: Registry, tmp_path: Path) -> None:
    """A file that is no description fails with what is wrong with it."""
    path = tmp_path / "bad.toml"
    path.write_text("schema = 1\n")
    result = invoke("discover", "--simulate", path, registry=example_registry)

    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)


def test_a_variable_changes_what_is_visible_there(invoke: Invoke, example_registry: Registry) -> None:
    """--env sets a mask on the imaginary machine, and the column beside the number shows what it does."""
    result = invoke(
        "discover", "--simulate", "example-grid", "--env", "EXAMPLE_VISIBLE_UNITS=2", "--columns", "number,visible,label",
        registry=example_registry,
    )  # fmt: skip
    visible = [line.split()[:2] for line in result.stdout.splitlines() if line.endswith("core")]

    assert [number for number, ordinal in visible if ordinal != "no"] == ["1/2"]


def test_every_output_of_a_simulated_machine_says_so(invoke: Invoke, example_registry: Registry) -> None:
    """Header of tables and trees, label of graphs, infos of XML, and a field of documents."""
    machine = ("--simulate", "example-grid")
    texts = [invoke("discover", *machine, *more, registry=example_registry).stdout for more in ((), ("--json",))]
    texts += [
        invoke("topology", *machine, "--format", format_, registry=example_registry).stdout
        for format_ in ("matrix", "tree", "dot", "hwloc-xml", "json")
    ]

    assert [text.lower().count("simulated") > 0 for text in texts] == [True] * 7
