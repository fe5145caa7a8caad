"""Make `known_hardware.json` from every plugin of this repository, so that hardware without its plugin can be named.

Usage: python cli/generate_known_hardware.py            write the table
       python cli/generate_known_hardware.py --check    exit 1 when the table differs from what the plugins say

A plugin's product names are taken from its module `pci_names`, a mapping `NAMES` from PCI device id to name, if it has one.
"""

from __future__ import annotations

import json
import sys
from dataclasses import MISSING, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anyaccel.capabilities import Declaration, MatchRule
from anyaccel.registry import ENTRY_POINT_GROUP, load_plugin

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = REPOSITORY / "cli/src/anyaccel_cli/known_hardware.json"


def table_text() -> str:
    """Give the content of the table."""
    projects = sorted((REPOSITORY / "plugins").glob("*/pyproject.toml"))
    families = [family for project in projects for family in _families(project)]
    return json.dumps({"families": families}, indent=1, ensure_ascii=True) + "\n"


def _families(project: Path) -> list[dict[str, Any]]:
    content = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    entries = content["entry-points"][ENTRY_POINT_GROUP]
    return [_family(key, module, content["name"]) for key, module in sorted(entries.items())]


def _family(key: str, module_name: str, distribution: str) -> dict[str, Any]:
    declaration = load_plugin(key, module_name).declaration
    return {
        "key": key,
        "title": declaration.title,
        "distribution": distribution,
        "matches": [_rule(rule) for rule in declaration.matches],
        "models": _models(declaration, module_name.partition(".")[0]),
    }


def _rule(rule: MatchRule) -> dict[str, Any]:
    """Give the fields of a rule that differ from their default."""
    values = ((field, getattr(rule, field.name)) for field in fields(rule))
    return {
        field.name: list(value) if isinstance(value, tuple) else value
        for field, value in values
        if field.default is MISSING or value != field.default
    }


def _models(declaration: Declaration, package: str) -> dict[str, str]:
    if find_spec(f"{package}.pci_names") is None:
        return {}
    (vendor,) = {rule.vendor_id for rule in declaration.matches if rule.vendor_id is not None}
    names = import_module(f"{package}.pci_names").NAMES
    return {f"{vendor:04x}:{device:04x}": names[device] for device in sorted(names)}


def main() -> None:
    """Write or check the table."""
    text = table_text()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text(encoding="utf-8") != text:
            sys.exit(f"error: {TARGET} is out of date; run python {Path(__file__).name}")
    else:
        TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
