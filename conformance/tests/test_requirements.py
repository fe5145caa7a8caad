"""The specification fits the contract's docstrings and the checks, in every direction."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

import pytest

from anyaccel import hookspec
from anyaccel_conformance.requirements import (
    RequirementLevel,
    SpecificationError,
    load_requirements,
    parse_requirements,
)

ROW = '[[requirement]]\nid = "VIS-003"\nlevel = "MUST"\nsince = "1.0"\ntext = "Something holds."\n'


def documented():
    """Ids by hook, as the docstrings name them."""
    hooks = {name: getattr(hookspec, name).__doc__ for name in dir(hookspec) if name.startswith("accel_")}
    return {name: re.search(r"Requirements: (.*)\.", text).group(1).split(", ") for name, text in hooks.items()}


def cited():
    """Ids by check, as the markers name them."""
    found = {}
    for file in (files("anyaccel_conformance") / "checks").iterdir():
        if file.name.startswith("test_"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    found[node.name] = [
                        argument.value
                        for mark in node.decorator_list
                        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.requirement"
                        for argument in mark.args
                    ]
    return found


def test_every_must_has_a_check():
    """A requirement nobody checks is a wish."""
    musts = {r.id for r in load_requirements().values() if r.level is RequirementLevel.MUST}

    assert musts - {name for ids in cited().values() for name in ids} == set()


def test_every_check_cites_what_exists():
    """A check without a requirement, or with one nobody wrote down, proves nothing."""
    known = set(load_requirements())

    assert {check: ids for check, ids in cited().items() if not ids or not set(ids) <= known} == {}


def test_every_check_is_exported():
    """What is not exported does not run from a plugin's own tests."""
    import anyaccel_conformance.checks as checks

    assert {check for check in cited() if not hasattr(checks, check)} == set()


@pytest.mark.parametrize("hook", documented())
def test_docstrings_name_requirements_that_exist(hook):
    """Whoever reads a hook's docstring finds every rule it names."""
    assert set(documented()[hook]) <= set(load_requirements())


def test_every_requirement_stands_in_a_docstring():
    """Whoever implements the hooks has met every rule."""
    assert set(load_requirements()) == {name for ids in documented().values() for name in ids}


def test_discovery_keeps_the_hands_off():
    """DISC-005 is the rule that core names when a plugin prints or leaves something behind."""
    assert "prints" in load_requirements()["DISC-005"].text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ROW + ROW, "VIS-003 is there twice"),
        (ROW.replace("VIS-003", "vis3"), "is not like VIS-003"),
        (ROW.replace("MUST", "MAY"), "neither MUST nor SHOULD"),
        (ROW + 'capability = "teleport"\n', "unknown capability 'teleport'"),
        (ROW + 'owner = "me"\n', r"unknown keys \['owner'\]"),
        (ROW.replace('since = "1.0"\n', ""), r"lacks \['since'\]"),
        (ROW.replace("Something holds.", " "), "has no text"),
        (ROW.replace('since = "1.0"', 'since = "1"'), "no MAJOR.MINOR"),
    ],
)
def test_contradictions_are_named(text, told):
    """A specification that contradicts itself does not load."""
    with pytest.raises(SpecificationError, match=told):
        parse_requirements(text)
