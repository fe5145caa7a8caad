"""The support table of the README, made from what the conformance kit found; nobody edits it by hand.

Usage: python conformance/generate_support_table.py REPORT.json ...            (write them all)
       python conformance/generate_support_table.py --check [REPORT.json ...]  (exit 1 when either differs)

A report is what `pytest --pyargs anyaccel_conformance.checks --accel-plugin KEY --accel-report FILE` writes. Of each plugin its
requirements' statuses are kept in `conformance/evidence/KEY.json`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anyaccel.capabilities import SupportState
from anyaccel.registry import Plugin, Registry
from anyaccel.simulation import list_machines

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
EVIDENCE = HERE / "evidence"
LEVELS = HERE.parent / "cli" / "src" / "anyaccel_cli" / "levels.json"
BEGIN, END = (
    "<!-- support table: generated, see conformance/generate_support_table.py -->",
    "<!-- end of support table -->",
)
MODULES = tuple(
    f"anyaccel_{project.parent.name}.plugin" for project in sorted((HERE.parent / "plugins").glob("*/pyproject.toml"))
)


def evidence_of(reports: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Give the statuses by plugin and requirement of several reports."""
    found: dict[str, dict[str, str]] = {}
    for report in reports:
        document: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        for plugin, rows in document["plugins"].items():
            found[plugin] = {name: row["status"] for name, row in sorted(rows.items())}
    return found


def stored_evidence() -> dict[str, dict[str, str]]:
    """Give the statuses that are kept in the repository."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(EVIDENCE.glob("*.json"))}


def level_of(statuses: Iterable[str]) -> str:
    """Give the level that statuses in replay earn: `experimental`, or `unverified` when a requirement failed."""
    return "unverified" if {"fail", "error"} & set(statuses) else "experimental"


def levels(evidence: Mapping[str, Mapping[str, str]]) -> str:
    """Give the levels by distribution and version, as the command line ships them: another version has earned nothing."""
    rows = {
        f"anyaccel-{key}": {version(f"anyaccel-{key}"): level_of(statuses.values())}
        for key, statuses in sorted(evidence.items())
    }
    return json.dumps({"schema": "anyaccel-levels/1", "levels": rows}, indent=1) + "\n"


def table(evidence: Mapping[str, Mapping[str, str]], registry: Registry) -> str:
    """Give the table in Markdown: one row a plugin."""
    lines = [
        "| family | level | kit, in replay | machines | not possible | not built yet |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(registry.plugin(key), statuses, registry) for key, statuses in sorted(evidence.items())]
    return "\n".join(lines)


def _row(plugin: Plugin, statuses: Mapping[str, str], registry: Registry) -> str:
    passed = sum(status == "pass" for status in statuses.values())
    count = sum(_ships(plugin, name, registry) for name in list_machines(registry))
    kit = f"{passed} of {len(statuses)} requirements pass"
    cells = (
        plugin.declaration.title,
        level_of(statuses.values()),
        kit,
        f"{count} simulated, 0 recorded",
        _declared(plugin, SupportState.UNSUPPORTED),
        _declared(plugin, SupportState.NOT_IMPLEMENTED),
    )
    return f"| {' | '.join(cells)} |"


def _ships(plugin: Plugin, machine: str, registry: Registry) -> bool:
    package = plugin.module_name.partition(".")[0]
    return package in str(list_machines(registry)[machine])


def _declared(plugin: Plugin, state: SupportState) -> str:
    names = [name for name, support in plugin.declaration.capabilities.items() if support.state is state]
    return ", ".join(names) or "nothing"


def with_table(text: str, rows: str) -> str:
    """Give the README with the table put in."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{rows}\n{END}", text)


def main(arguments: Sequence[str]) -> int:
    """Write or check; give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    fresh = evidence_of(options.reports)
    registry = Registry.of(*MODULES)
    if options.check:
        return _check(fresh, registry)
    EVIDENCE.mkdir(exist_ok=True)
    for plugin, statuses in fresh.items():
        (EVIDENCE / f"{plugin}.json").write_text(json.dumps(statuses, indent=1) + "\n", encoding="utf-8")
    LEVELS.write_text(levels(stored_evidence()), encoding="utf-8")
    README.write_text(
        with_table(README.read_text(encoding="utf-8"), table(stored_evidence(), registry)), encoding="utf-8"
    )
    return 0


def _check(fresh: Mapping[str, Mapping[str, str]], registry: Registry) -> int:
    stored = stored_evidence()
    wrong = [f"evidence of {plugin} differs from its report" for plugin in fresh if stored.get(plugin) != fresh[plugin]]
    text = README.read_text(encoding="utf-8")
    if with_table(text, table(stored, registry)) != text:
        wrong.append("the README's support table differs from the evidence")
    if LEVELS.read_text(encoding="utf-8") != levels(stored):
        wrong.append("the levels of the command line differ from the evidence")
    for line in wrong:
        sys.stderr.write(f"error: {line}; run make evidence\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
