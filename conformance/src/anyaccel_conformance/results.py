"""What came of every requirement: one status from the results of its checks, and the table at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from anyaccel_conformance.requirements import Requirement

__all__ = ["Result", "Status", "Tally", "results_document", "summary_lines", "tally"]


DETAIL_LENGTH = 200
NO_MACHINE = "no machine to check it on: ship machines/*.toml or give --accel-recording FILE"


class Status(str, Enum):
    """What came of a check or requirement, the first that applies of several results stands.

    `unsupported` and `not-implemented` were declared, and asking anyway was refused. `not-run` is never a pass.
    """

    FAIL = "fail"
    ERROR = "error"
    PASS = "pass"
    UNSUPPORTED = "unsupported"
    NOT_IMPLEMENTED = "not-implemented"
    NOT_RUN = "not-run"


@dataclass(frozen=True)
class Result:
    """What one check said about one requirement of one plugin."""

    plugin: str
    requirement: str
    status: Status
    detail: str = ""

    def to_row(self) -> tuple[str, str, str, str]:
        """Give plain texts that cross a process border."""
        return (self.plugin, self.requirement, self.status.value, self.detail)

    @classmethod
    def from_row(cls, row: Iterable[str]) -> Result:
        """Make a result of its texts."""
        plugin, requirement, status, detail = row
        return cls(plugin, requirement, Status(status), detail)


@dataclass
class Tally:
    """The results of one requirement of one plugin."""

    counts: dict[Status, int] = field(default_factory=dict)
    details: dict[Status, str] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Count a result; the first detail of each status is kept."""
        self.counts[result.status] = self.counts.get(result.status, 0) + 1
        if result.detail:
            self.details.setdefault(result.status, result.detail)

    @property
    def status(self) -> Status:
        """The one status that stands."""
        return next((status for status in Status if status in self.counts), Status.NOT_RUN)

    @property
    def detail(self) -> str:
        """Why, where that is not obvious."""
        return self.details.get(self.status, "") if self.counts else NO_MACHINE


def tally(results: Iterable[Result], requirements: Mapping[str, Requirement]) -> dict[str, dict[str, Tally]]:
    """Give the tallies by plugin and requirement; what nothing was said about is there, as not-run."""
    found: dict[str, dict[str, Tally]] = {}
    for result in results:
        rows = found.setdefault(result.plugin, {name: Tally() for name in requirements})
        rows.setdefault(result.requirement, Tally()).add(result)
    return {plugin: found[plugin] for plugin in sorted(found)}


def summary_lines(rows: Mapping[str, Tally], requirements: Mapping[str, Requirement], *, is_full: bool) -> list[str]:
    """Give one line a requirement and a last line with the counts; a short summary lists what failed only."""
    lines = []
    for name, row in rows.items():
        if is_full or row.status in (Status.FAIL, Status.ERROR):
            level = requirements[name].level.value if name in requirements else ""
            count = row.counts.get(row.status, 0)
            times = f" ({count})" if count else ""
            detail = f"  {row.detail.splitlines()[0][:DETAIL_LENGTH]}" if row.detail else ""
            lines.append(f"{name:<9}{level:<7}{row.status.value}{times}{detail}")
    statuses = [row.status for row in rows.values()]
    counts = ", ".join(f"{statuses.count(status)} {status.value}" for status in Status if status in statuses)
    return [*lines, f"{len(rows)} requirements: {counts}"]


def results_document(found: Mapping[str, Mapping[str, Tally]]) -> dict[str, Any]:
    """Give the tallies as a JSON document."""
    return {
        "schema": "anyaccel-kit-results/1",
        "plugins": {
            plugin: {
                name: {
                    "status": row.status.value,
                    "counts": {status.value: count for status, count in row.counts.items()},
                    "detail": row.detail,
                }
                for name, row in rows.items()
            }
            for plugin, rows in found.items()
        },
    }
