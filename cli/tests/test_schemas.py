"""Every JSON document against the schema file that is shipped for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result

from anyaccel.registry import Registry

Invoke = Callable[..., Result]
Write = Callable[[str, str], str]


def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((files("anyaccel_cli") / "schemas" / f"{name}.json").read_text("utf-8"))
    return schema


def _closed(schema: Any) -> Any:
    """Forbid every key that a schema does not name, so that no output goes undocumented."""
    if isinstance(schema, list):
        return [_closed(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def _check(document: dict[str, Any]) -> str:
    name: str = document["schema"]["name"]
    jsonschema.validate(document, _closed(_schema(name)), jsonschema.Draft202012Validator)
    return name


def _ordered(document: Any, schema: Any, root: Any) -> Iterator[tuple[list[str], list[str]]]:
    """Give the keys of every object beside the keys of its schema, in their orders."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "oneOf" in schema and document is not None:
        schema = next(branch for branch in schema["oneOf"] if branch.get("type") != "null")
        yield from _ordered(document, schema, root)
    elif isinstance(document, dict) and "properties" in schema:
        yield list(document), list(schema["properties"])
        for key, value in document.items():
            yield from _ordered(value, schema["properties"][key], root)
    elif isinstance(document, list):
        for entry in document:
            yield from _ordered(entry, schema.get("items", {}), root)


@pytest.mark.parametrize("path", sorted(p.name for p in (files("anyaccel_cli") / "schemas").iterdir()))
def test_every_schema_file_is_a_schema(path: str) -> None:
    """The files are valid JSON Schema and named after what they describe."""
    schema = _schema(path.removesuffix(".json"))
    jsonschema.Draft202012Validator.check_schema(schema)

    assert (
        schema["title"] == schema["properties"]["schema"]["properties"]["name"]["const"] == path.removesuffix(".json")
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("discover",),
        ("discover", "--select", "state=lost"),
        ("topology",),
        ("plugins",),
        ("plugins", "--devices"),
        ("record", "-o", "OUT"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("is_empty", [False, True], ids=["devices", "nothing"])
def test_documents_fit_their_schema(
    invoke: Invoke,
    toy_registry: Registry,
    toy_root: Path,
    make_root: Callable[..., Path],
    tmp_path: Path,
    arguments: tuple[str, ...],
    is_empty: bool,
) -> None:
    """With devices or without, every document validates and names no key that its schema does not name."""
    root = make_root(name="empty") if is_empty else toy_root
    machine = () if arguments == ("plugins",) else ("--root", root)
    given = [tmp_path / "out.tar.gz" if argument == "OUT" else argument for argument in arguments]
    result = invoke(*given, *machine, "--json", registry=toy_registry)

    assert _check(json.loads(result.stdout)) == f"accel-{arguments[0]}"


def test_a_broken_plugin_fits_the_schema(invoke: Invoke, write_module: Write, toy_root: Path) -> None:
    """The document of a run with exit 4 validates like any other."""
    registry = Registry.of(write_module("unloadable_plugin_s", "raise ImportError('x')"))
    documents = [
        json.loads(invoke(*command, "--json", registry=registry).stdout)
        for command in (("discover", "--root", toy_root), ("plugins",))
    ]

    assert [_check(document) for document in documents] == ["accel-discover", "accel-plugins"]


@pytest.mark.parametrize("machine", ["example-faults", "example-grid", "example-small"])
@pytest.mark.parametrize("command", ["discover", "topology"])
def test_documents_of_imaginary_machines_fit_their_schema(
    invoke: Invoke, example_registry: Registry, command: str, machine: str
) -> None:
    """Masks, parts, links, places and faults: everything that a document can hold has its place in the schema."""
    result = invoke(command, "--simulate", machine, "--json", registry=example_registry)

    assert _check(json.loads(result.stdout)) == f"accel-{command}"


def test_documents_of_simulate_fit_their_schema(invoke: Invoke, example_registry: Registry, tmp_path: Path) -> None:
    """The list of machines, and what was written."""
    documents = [
        json.loads(invoke("simulate", *arguments, "--json", registry=example_registry).stdout)
        for arguments in (("--list",), ("example-small", "-o", tmp_path / "machine"))
    ]

    assert [_check(document) for document in documents] == ["accel-simulate-list", "accel-simulate"]


@pytest.mark.parametrize("choice", [("--resources", "example=2"), ("--select", "example:2/4")])
def test_documents_of_env_fit_their_schema(invoke: Invoke, example_registry: Registry, choice: tuple[str, str]) -> None:
    """Devices chosen and devices named."""
    result = invoke("env", "--simulate", "example-grid", *choice, "--shell", "json", registry=example_registry)

    assert _check(json.loads(result.stdout)) == "accel-env"


@pytest.mark.parametrize("machine", ["example-faults", "example-grid", "example-small"])
def test_documents_of_metrics_fit_their_schema(invoke: Invoke, example_registry: Registry, machine: str) -> None:
    """Readings with values, with reasons, and a family that tells nothing."""
    result = invoke("metrics", "--simulate", machine, "--json", registry=example_registry)

    assert _check(json.loads(result.stdout)) == "accel-metrics"


def test_every_null_has_its_reason(invoke: Invoke, example_registry: Registry) -> None:
    """A field of a device that is null says why beside it, unless null means that there is none."""
    none_is_a_fact = {"parent", "reason", "hint", "count_reason", "memory_owner", "max_per_process", "visible_ordinal"}
    document = json.loads(
        invoke("discover", "--simulate", "example-faults", "--json", registry=example_registry).stdout
    )
    silent = {
        (device["id"], key)
        for device in document["devices"]
        for key, value in device.items()
        if value is None and key not in none_is_a_fact and key not in device["unknown"]
    }

    assert silent == set()


@pytest.mark.parametrize("command", ["discover", "topology"])
def test_keys_stand_in_the_order_of_the_schema(
    invoke: Invoke, toy_registry: Registry, toy_root: Path, command: str
) -> None:
    """Documents of two runs, and document and schema, can be read side by side."""
    document = json.loads(invoke(command, "--root", toy_root, "--json", registry=toy_registry).stdout)
    schema = _schema(document["schema"]["name"])
    pairs = list(_ordered(document, schema, schema))

    assert [keys for keys, _ in pairs] == [expected for _, expected in pairs]
