"""Compare anyaccel's answers with what machines' own tools said: `python conformance/compare_captures.py FOLDER`.

Prints one line a machine: what was compared and how many values, or why it was skipped. Ends with 1 when anything differs, when
an archive of `/sys` or KFD files could not be compared, or when nothing was; with 2 when used wrongly.
"""

from __future__ import annotations

import sys
from pathlib import Path

from anyaccel.registry import Registry
from anyaccel_conformance.captures import Comparison, Looker, compare_folder

_SHOWN = 10


def main(arguments: list[str]) -> int:
    """Compare the folders named and give the exit code."""
    folders = [Path(argument) for argument in arguments]
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if not folders or missing:
        problem = f"no such folder: {', '.join(missing)}" if missing else "no folder given"
        sys.stderr.write(f"error: {problem}\nusage: python conformance/compare_captures.py FOLDER...\n")
        return 2
    looker = Looker(Registry.installed())
    results = []
    for folder in folders:
        for result in compare_folder(folder, looker):
            results.append(result)
            sys.stdout.write("".join(f"{line}\n" for line in _lines(result)))
    sys.stdout.write(f"{_summary(results)}\n")
    is_empty = not any(result.claims for result in results)
    return 1 if is_empty or any(result.is_failure for result in results) else 0


def _lines(result: Comparison) -> list[str]:
    differences = [f"    {claim.sentence}" for claim in result.differences]
    more = [f"    and {len(differences) - _SHOWN} more"] if len(differences) > _SHOWN else []
    return [result.line, *differences[:_SHOWN], *more]


def _summary(results: list[Comparison]) -> str:
    compared = [result for result in results if result.claims]
    values = sum(len(result.claims) for result in compared)
    different = sum(len(result.differences) for result in compared)
    unread = sum(result.is_required and not result.claims for result in results)
    left_out = sum(not result.claims and not result.is_required for result in results)
    return (
        f"{len(compared)} compared with {values} values, {different} of them different; "
        f"{left_out} skipped; {unread} archives that could not be compared"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
