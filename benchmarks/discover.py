"""How long `accel-cli discover` takes, as ratios to a reference process measured in the same run.

Usage: python benchmarks/discover.py [--repeats N]        (N >= 5, default 7)

Needs: anyaccel-cli, anyaccel-nvidia and anyaccel-amd in the running interpreter's environment.

The reference imports what any tool of this kind imports (click, pluggy, rich, entry points) and ends. Reference and subject
alternate, byte code is compiled before; a row gives the median of the ratios, their range, and the bound we hold ourselves
to. The last rows are whole processes in seconds: made-up roots of 1,000 devices, and of 512 devices among 6,000 PCI functions
over four domains; help; completion.
Exit code 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

REFERENCE = (
    sys.executable,
    "-c",
    "import click, pluggy, rich.table, rich.console; from importlib.metadata import entry_points; entry_points(group='x')",
)
PROGRAM = (sys.executable, "-m", "anyaccel_cli")
DISCOVER = (*PROGRAM, "discover")
JSON = ("--json", "--timeout", "60")
COMPLETING = {
    "_ACCEL_CLI_COMPLETE": "bash_complete",
    "COMP_WORDS": "accel-cli discover --vendor ",
    "COMP_CWORD": "3",
}
TWO = "amd,nvidia"
EIGHT = TWO + "".join(f",toy{number}" for number in range(6))

TOY = """
from anyaccel.capabilities import Declaration, MatchRule
from anyaccel.device import Discovery
from anyaccel.hookspec import hookimpl
from anyaccel.pci import match_functions

RULES = (MatchRule(vendor_id=0xfff{number}),)

@hookimpl
def accel_declare():
    return Declaration(key="toy{number}", title="Toy", matches=RULES)

@hookimpl
def accel_discover_devices(machine):
    assert not match_functions(machine, RULES)
    return Discovery(reason="no toy card on PCI")
"""


def install_toys(folder: Path) -> None:
    """Make six plugins look installed."""
    for number in range(6):
        (folder / f"toy{number}_plugin.py").write_text(TOY.format(number=number))
        metadata = folder / f"toy{number}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy{number}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[anyaccel.plugins]\ntoy{number} = toy{number}_plugin\n")


def write_root(root: Path, functions: Sequence[tuple[str, str, str, str]]) -> Path:
    """Write PCI functions (address, vendor, device, class) as the kernel lays them out."""
    for address, vendor, device, class_code in functions:
        folder = root / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        for name, text in (("vendor", vendor), ("device", device), ("class", class_code), ("numa_node", "0")):
            (folder / name).write_text(text + "\n")
    root.mkdir(exist_ok=True)
    return root


def accelerators(count: int, domains: Sequence[int]) -> list[tuple[str, str, str, str]]:
    """Give `count` cards spread over domains."""
    places = ((number // len(domains), domains[number % len(domains)]) for number in range(count))
    return [
        (f"{domain:04x}:{place // 8:02x}:{place % 8:02x}.0", "0x10de", "0x2330", "0x030200") for place, domain in places
    ]


def others(count: int, domains: Sequence[int]) -> list[tuple[str, str, str, str]]:
    """Give `count` bridges and network cards that nobody asked for, on the same domains."""
    places = ((number // len(domains), domains[number % len(domains)]) for number in range(count))
    return [
        (f"{domain:04x}:{0x40 + place // 64:02x}:{place % 64 // 8 + 8:02x}.{place % 8}", "0x8086", "0x1572", "0x020000")
        for place, domain in places
    ]


def seconds(command: Sequence[str], environ: Mapping[str, str], codes: Sequence[int]) -> float:
    """Run a command once and give how long it took; another exit code than those expected ends the benchmark."""
    started = time.perf_counter()
    result = subprocess.run(command, env=dict(environ), capture_output=True, check=False)
    taken = time.perf_counter() - started
    if result.returncode not in codes:
        sys.exit(f"error: {' '.join(command)} ended with {result.returncode}: {result.stderr.decode()}")
    return taken


def ratio_row(
    name: str, command: Sequence[str], environ: Mapping[str, str], *, repeats: int, bound: float | None = None
) -> bool:
    """Print one row of ratios and say whether it is within its bound."""
    ratios = []
    for _ in range(repeats):
        reference = seconds(REFERENCE, environ, (0,))
        ratios.append(seconds(command, environ, (3,)) / reference)
    return print_row(name, ratios, "x", bound)


def seconds_row(name: str, command: Sequence[str], environ: Mapping[str, str], *, repeats: int, bound: float) -> bool:
    """Print one row of seconds and say whether it is within its bound."""
    taken = [seconds(command, environ, (0,)) for _ in range(repeats)]
    return print_row(name, taken, " s", bound)


def print_row(name: str, values: Sequence[float], unit: str, bound: float | None) -> bool:
    """Print one row and say whether it is within its bound."""
    median = statistics.median(values)
    is_within = bound is None or median <= bound
    wanted = "measured only" if bound is None else f"bound {bound:g}{unit} {'met' if is_within else 'MISSED'}"
    span = f"{min(values):.2f} to {max(values):.2f}"
    print(f"{name:<44}  {f'{median:.2f}{unit}':>7}  {span:<16}  {wanted}")
    return is_within


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = max(5, parser.parse_args().repeats)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install_toys(folder)
        paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environ = {**kept, "PYTHONPATH": paths, "ANYACCEL_PLUGINS": TWO}
        eight = {**environ, "ANYACCEL_PLUGINS": EIGHT}
        empty = write_root(folder / "empty", ())
        nothing = (*DISCOVER, "--root", str(empty))
        domains = (0x0000, 0x0001, 0xFFFF, 0x10000)
        thousand = write_root(folder / "thousand", accelerators(1000, domains))
        crowded = write_root(folder / "crowded", accelerators(512, domains) + others(6000 - 512, domains))
        for warm_up in ((*nothing, "--json"), nothing):
            seconds(warm_up, eight, (3,))
        print(f"{'median of ' + str(repeats):<44}  {'median':>7}  range")
        rows = [
            ratio_row("discover, nothing there, 2 plugins", nothing, environ, repeats=repeats, bound=1.5),
            ratio_row("discover, nothing there, 8 plugins", nothing, eight, repeats=repeats, bound=1.8),
            ratio_row("discover --json, nothing there, 2 plugins", (*nothing, "--json"), environ, repeats=repeats),
            *(
                seconds_row(name, (*DISCOVER, "--root", str(root), *JSON), environ, repeats=repeats, bound=2.0)
                for name, root in (("1,000 devices", thousand), ("512 devices of 6,000 functions", crowded))
            ),
            seconds_row("discover --help", (*DISCOVER, "--help"), environ, repeats=repeats, bound=0.5),
            seconds_row("completing a vendor", PROGRAM, {**environ, **COMPLETING}, repeats=repeats, bound=0.3),
        ]
    sys.exit(0 if all(rows) else 1)


if __name__ == "__main__":
    main()
