"""The program that compares folders of captures and says what came of every machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from anyaccel.registry import Registry
from anyaccel_conformance.captures.claims import Comparison
from anyaccel_conformance.captures.folder import compare_folder
from anyaccel_conformance.captures.looking import Looker

__all__ = ["main"]

_SHOWN = 10


def main(arguments: Sequence[str], looker: Looker | None = None) -> int:
    """Compare the folders named, print one line a machine, and give the exit code.

    Args: looker: None = with the plugins that are installed.
    Returns: 0 when everything agrees; 1 when something differs, when an archive could not be compared, or when nothing was
        compared at all; 2 when used wrongly.
    """
    folders = [Path(argument) for argument in arguments]
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if not folders or missing:
        problem = f"no such folder: {', '.join(missing)}" if missing else "no folder given"
        sys.stderr.write(f"error: {problem}\nusage: python conformance/compare_captures.py FOLDER...\n")
        return 2
    results = []
    for folder in folders:
        for result in compare_folder(folder, looker or Looker(Registry.installed())):
            results.append(result)
            sys.stdout.write("".join(f"{line}\n" for line in _lines(result)))
    sys.stdout.write(f"{_summary(results)}\n")
    is_empty = not any(result.claims for result in results)
    return 1 if is_empty or any(result.is_failure for result in results) else 0


def _lines(result: Comparison) -> list[str]:
    differences = [f"    {claim.sentence}" for claim in result.differences]
    more = [f"    and {len(differences) - _SHOWN} more"] if len(differences) > _SHOWN else []
    return [result.line, *differences[:_SHOWN], *more]


def _summary(results: Sequence[Comparison]) -> str:
    compared = [result for result in results if result.claims]
    values = sum(len(result.claims) for result in compared)
    different = sum(len(result.differences) for result in compared)
    unread = sum(result.is_required and not result.claims for result in results)
    left_out = sum(not result.claims and not result.is_required for result in results)
    return (
        f"{len(compared)} compared with {values} values, {different} of them different; "
        f"{left_out} skipped; {unread} that had to be compared and could not"
    )
