"""The program as a process of its own: pipes, signals, encodings, seeds, completion, what it opens."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

termios = pytest.importorskip("termios", reason="terminals of this kind are a thing of POSIX")

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
PROGRAM = (sys.executable, "-m", "anyaccel_cli")


@pytest.fixture
def environ(tmp_path: Path, toy_source: Callable[..., str]) -> dict[str, str]:
    """The environment of a machine where the toy plugin is installed and no other is loaded."""
    folder = tmp_path / "installed"
    metadata = folder / "toy_dist-3.2.1.dist-info"
    metadata.mkdir(parents=True)
    (folder / "toy_dist.py").write_text(toy_source())
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-dist\nVersion: 3.2.1\n")
    (metadata / "entry_points.txt").write_text("[anyaccel.plugins]\ntoy = toy_dist\n")
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    return {**kept, "PYTHONPATH": paths, "ANYACCEL_PLUGINS": "toy"}


@pytest.fixture
def run(environ: dict[str, str]) -> Run:
    """Run the program to its end."""

    def run(*arguments: str | Path, **extra: str) -> subprocess.CompletedProcess[bytes]:
        command = [*PROGRAM, *map(str, arguments)]
        return subprocess.run(command, env={**environ, **extra}, capture_output=True, check=False, timeout=20)

    return run


def test_an_installed_plugin_is_found(run: Run) -> None:
    """Entry points are all it takes; the distribution is named."""
    rows = [line.split()[:5] for line in run("plugins").stdout.decode().splitlines()]

    assert ["toy", "toy-dist", "3.2.1", "1.0", "loaded"] in rows


def test_both_names_start_the_same_program() -> None:
    """`accel-cli` and `anyaccel-cli` are one entry point each, and each calls itself by its name."""
    programs = [Path(sys.executable).with_name(name) for name in ("accel-cli", "anyaccel-cli")]
    outputs = [subprocess.run([p, "--version"], capture_output=True, check=True, timeout=20).stdout for p in programs]

    assert outputs == [b"accel-cli 0.1.0\n", b"anyaccel-cli 0.1.0\n"]


def test_a_reader_that_goes_away_ends_it_quietly(environ: dict[str, str], toy_root: Path) -> None:
    """`| head` of a closed pipe: no message, no traceback, the code that shells give to a broken pipe."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [*PROGRAM, "discover", "--root", str(toy_root), "-q"]
    result = subprocess.run(command, env=environ, stdout=write_end, stderr=subprocess.PIPE, check=False, timeout=20)
    os.close(write_end)

    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.parametrize(
    "arguments", ["discover --root {root} -q", "--help", "--version", "plugins", "completion bash"]
)
def test_a_closed_stdout_is_no_error(environ: dict[str, str], toy_root: Path, arguments: str) -> None:
    """Started with stdout closed, it does its work and says nothing."""
    command = f"exec {sys.executable} -m anyaccel_cli {arguments.format(root=toy_root)} >&-"
    result = subprocess.run(["sh", "-c", command], env=environ, stderr=subprocess.PIPE, check=False, timeout=20)

    assert (result.returncode, result.stderr) == (0, b"")


def test_a_full_device_is_a_failure(environ: dict[str, str], toy_root: Path) -> None:
    """A result that could not be written must not look like success."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        command = [*PROGRAM, "discover", "--root", str(toy_root), "-q"]
        result = subprocess.run(command, env=environ, stdout=full, stderr=subprocess.PIPE, check=False, timeout=20)

    assert (result.returncode, result.stderr) == (1, b"error: cannot write the result: No space left on device\n")


def _heed_endings() -> None:
    """Heed every signal that ends a process, whatever this one was told to ignore."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _heed_interrupts()


def _heed_interrupts() -> None:
    """Take Ctrl-C as a terminal's program does, also where this run was started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_ends_it_with_130(environ: dict[str, str], tmp_path: Path, toy_source: Callable[..., str]) -> None:
    """Ctrl-C while a plugin hangs: half a second, no traceback."""
    sign = tmp_path / "started"
    source = toy_source().replace(
        "    found = match",
        f"    import pathlib, time; pathlib.Path({str(sign)!r}).touch(); time.sleep(60)\n    found = match",
    )
    (tmp_path / "installed" / "toy_dist.py").write_text(source)
    process = subprocess.Popen(
        [*PROGRAM, "discover", "--root", str(tmp_path), "--timeout", "60"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_heed_interrupts,  # noqa: PLW1509 - no threads run in this process when it starts the child
    )
    deadline = time.monotonic() + 15
    while not sign.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, errors = process.communicate(timeout=15)

    assert (process.returncode, errors, time.monotonic() - started < 1.0) == (130, b"", True)


def test_an_ascii_terminal_gets_ascii(run: Run, make_root: Callable[..., Path]) -> None:
    """Where the encoding is not UTF-8 nothing else is printed, and nothing fails."""
    root = make_root(("0000:01:00.0", 0x9999, 1, 0x120000, None))
    result = run("discover", "--root", root, PYTHONIOENCODING="ascii")

    assert (result.returncode, result.stdout.isascii(), b"9999:0001" in result.stdout) == (3, True, True)


def test_the_document_does_not_depend_on_the_hash_seed(run: Run, toy_root: Path) -> None:
    """Ten seeds, one document."""
    outputs = {run("discover", "--root", toy_root, "--json", PYTHONHASHSEED=str(seed)).stdout for seed in range(10)}

    assert len(outputs) == 1


def test_json_loads_no_table_library(environ: dict[str, str], toy_root: Path) -> None:
    """A program that asks for JSON does not pay for rich."""
    source = (
        "import sys; from anyaccel_cli.main import cli\n"
        f"try: cli.main(['discover', '--root', {str(toy_root)!r}, '--json'])\n"
        "except SystemExit: print('rich' in sys.modules, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", source], env=environ, capture_output=True, check=True, timeout=20)

    assert result.stderr.splitlines()[-1] == b"False"


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--version",), ("discover", "--help"), ("record", "-h")])
def test_help_and_version_import_no_plugin(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """They work where every plugin hangs or crashes on import."""
    (tmp_path / "installed" / "toy_dist.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    result = run(*arguments)

    assert (result.returncode, result.stderr) == (0, b"")


def test_a_plugin_that_prints_while_loading_does_not_spoil_json(
    run: Run, tmp_path: Path, toy_source: Callable[..., str], toy_root: Path
) -> None:
    """stdout stays one document; the plugin is named as broken."""
    import json

    (tmp_path / "installed" / "toy_dist.py").write_text("print('hello')\n" + toy_source())
    result = run("discover", "--root", toy_root, "--json")

    assert (len(json.loads(result.stdout)["devices"]), result.returncode, b"printed 'hello" in result.stderr) == (
        2,
        4,
        True,
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("accel-cli dis", ["plain,discover"]),
        ("accel-cli discover --vendor ", ["plain,toy"]),
        ("accel-cli discover --simulate toy", ["plain,toybox"]),
        ("accel-cli simulate toy", ["plain,toybox"]),
        ("accel-cli discover --form", ["plain,--format"]),
        ("accel-cli discover --format w", ["plain,wide"]),
        ("accel-cli completion z", ["plain,zsh"]),
    ],
)
def test_completion_knows_commands_options_vendors_and_machines(
    run: Run, tmp_path: Path, words: str, expected: list[str]
) -> None:
    """Completed from metadata alone: the plugin would crash if it were imported."""
    package = tmp_path / "installed" / "toy_dist"
    (package / "machines").mkdir(parents=True)
    (package / "machines" / "toybox.toml").touch()
    (package / "__init__.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    (tmp_path / "installed" / "toy_dist.py").unlink()
    count = str(len(words.split(" ")) - 1)
    result = run(_ACCEL_CLI_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    toys = [line for line in result.stdout.decode().splitlines() if "toy" in line or "toy" not in "".join(expected)]

    assert (toys, result.stderr) == (expected, b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_for_both_names(run: Run, shell: str) -> None:
    """One command prints what a shell needs."""
    text = run("completion", shell).stdout.decode()

    assert ["_ACCEL_CLI_COMPLETE" in text, "_ANYACCEL_CLI_COMPLETE" in text] == [True, True]


def test_bash_accepts_the_script(run: Run) -> None:
    """The script is valid for the shell it is made for."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = run("completion", "bash").stdout

    assert subprocess.run(["bash", "-n"], input=script, check=False, timeout=10).returncode == 0


def test_a_file_named_like_a_vendors_tool_is_not_run(run: Run, tmp_path: Path, toy_root: Path) -> None:
    """A program in the current folder is never taken for a vendor's, even with `.` on the path."""
    sign = tmp_path / "was-run"
    for name in ("nvidia-smi", "amd-smi", "rocm-smi", "lspci", "bash", "udevadm"):
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\ntouch {sign}\n")
        tool.chmod(0o755)
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        run("discover", "--root", toy_root, PATH=f".:{os.environ['PATH']}")
        run("completion", "bash", PATH=f".:{os.environ['PATH']}")
    finally:
        os.chdir(here)

    assert not sign.exists()


def _opened(trace: Path) -> Iterator[str]:
    for line in trace.read_text(errors="replace").splitlines():
        if "ENOENT" not in line and '"' in line:
            yield line.split('"')[1]


def test_a_root_opens_nothing_of_this_host(environ: dict[str, str], tmp_path: Path) -> None:
    """Under strace: no path of the host that says anything about its hardware, and no library of a vendor."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    for package in ("anyaccel_amd", "anyaccel_nvidia"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    root, trace = tmp_path / "amd-server", tmp_path / "trace"
    families = {**environ, "ANYACCEL_PLUGINS": "amd,nvidia", "CUDA_VISIBLE_DEVICES": "0"}
    written = [*PROGRAM, "simulate", "amd-mi300x8", "-o", str(root), "-q"]
    subprocess.run(written, env=families, capture_output=True, check=True, timeout=20)
    command = [strace, "-f", "-qq", "-o", str(trace), "-e", "trace=%file", *PROGRAM, "discover", "--root", str(root)]
    result = subprocess.run(command, env=families, capture_output=True, check=False, timeout=20)
    if not trace.exists() or b"ptrace" in result.stderr:
        pytest.skip(f"strace may not trace here: {result.stderr.decode(errors='replace').strip()}")
    foreign = ("/sys/", "/dev/", "/proc/driver", "/proc/cpuinfo", "/proc/self/mountinfo", "/proc/modules")
    allowed = ("/dev/null", "/dev/tty", "/dev/urandom", "/dev/pts")
    opened = set(_opened(trace))
    seen = {p for p in opened if p.startswith(foreign) and not p.startswith(allowed)}
    libraries = {
        p for p in opened if any(word in p for word in ("libnvidia", "libcuda", "librocm", "libamd", "libhsa"))
    }

    assert (result.returncode, seen, libraries) == (0, set(), set())
    assert b"8 devices" in result.stdout
    assert b"note: CUDA_VISIBLE_DEVICES of this shell is ignored" in result.stderr


def test_three_families_do_not_depend_on_the_hash_seed(environ: dict[str, str]) -> None:
    """Ten seeds, one document, whatever the plugins keep in sets and dictionaries."""
    for package in ("anyaccel_amd", "anyaccel_example", "anyaccel_nvidia"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    machine = Path(__file__).parent / "golden" / "three-families.toml"
    command = [*PROGRAM, "discover", "--simulate", str(machine), "--json"]
    outputs = {
        subprocess.run(
            command,
            env={**environ, "ANYACCEL_PLUGINS": "amd,example,nvidia", "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            timeout=20,
        ).stdout
        for seed in range(10)
    }

    assert len(outputs) == 1


def _on_terminal(environ: dict[str, str], columns: int, *arguments: str) -> str:
    """Run the program on a terminal of its own and give what it wrote there."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (40, columns)) if hasattr(termios, "tcsetwinsize") else None
    command = [*PROGRAM, *arguments]
    process = subprocess.Popen(command, env=environ, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    parts = []
    with contextlib.suppress(OSError):
        while part := os.read(ours, 65536):
            parts.append(part)
    process.wait(timeout=20)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_terminal_gets_colour_and_its_width(
    environ: dict[str, str], tmp_path: Path, toy_source: Callable[..., str], toy_root: Path
) -> None:
    """States are coloured, and a long name continues on the next line instead of leaving the terminal."""
    source = toy_source().replace('model="Toy 1"', 'model="Toy One Hundred and One with Extra Memory"')
    (tmp_path / "installed" / "toy_dist.py").write_text(source)
    text = _on_terminal({**environ, "TERM": "xterm", "COLUMNS": "80"}, 80, "discover", "--root", str(toy_root))
    lines = click.unstyle(text).splitlines()[1:]

    assert ("\x1b[" in text, max(map(len, lines)) <= 80, [line.split()[-1] for line in lines if "Memory" in line]) == (
        True,
        True,
        ["Memory", "Memory"],
    )


@pytest.mark.parametrize(("width", "titles"), [(80, "NUMA driver"), (70, "NUMA"), (60, "")])
def test_a_narrow_terminal_spares_the_least_important_columns(
    environ: dict[str, str], tmp_path: Path, toy_source: Callable[..., str], toy_root: Path, width: int, titles: str
) -> None:
    """First the driver goes, then the NUMA node; nothing is broken while that is enough."""
    (tmp_path / "installed" / "toy_dist.py").write_text(toy_source().replace('model="Toy 1"', 'model="To y"'))
    environ = {**environ, "TERM": "dumb", "COLUMNS": str(width)}
    lines = _on_terminal(environ, width, "discover", "--root", str(toy_root)).splitlines()[1:]

    assert (lines[0].split()[5:-1], max(map(len, lines)) <= width, len(lines)) == (titles.split(), True, 5)


@pytest.mark.parametrize("width", [100, 60, 30])
def test_the_list_of_machines_fits_the_terminal(environ: dict[str, str], width: int) -> None:
    """Cards only where there is room, titles broken at blanks."""
    pytest.importorskip("anyaccel_example", reason="the example plugin is not installed")
    environ = {**environ, "ANYACCEL_PLUGINS": "example", "TERM": "dumb", "COLUMNS": str(width)}
    text = _on_terminal(environ, width, "simulate", "--list")
    words = text.split()

    assert (max(map(len, text.splitlines())) <= width, "4x" in words, "cards" in words[:3]) == (
        True,
        True,
        False,
    )


def test_no_color_turns_colour_off_on_a_terminal(environ: dict[str, str], toy_root: Path) -> None:
    """The variable that every tool knows."""
    text = _on_terminal({**environ, "TERM": "xterm", "NO_COLOR": "1"}, 120, "discover", "--root", str(toy_root))

    assert ("unusable" in text, "\x1b" in text) == (True, False)


def test_a_narrow_terminal_gets_a_list_of_pairs(environ: dict[str, str], toy_root: Path) -> None:
    """Below 80 columns the matrix becomes a list."""
    text = _on_terminal({**environ, "TERM": "dumb", "COLUMNS": "79"}, 79, "topology", "--root", str(toy_root))

    assert text.splitlines()[1].split() == ["from", "to", "link", "PCIe"]


def test_a_plugin_that_cannot_be_loaded_is_named_with_its_distribution(
    run: Run, tmp_path: Path, toy_root: Path
) -> None:
    """Entry point, distribution with version, and the missing file."""
    (tmp_path / "installed" / "toy_dist.py").write_text(
        "raise ImportError('libfoo.so: cannot open shared object file')"
    )
    result = run("discover", "--root", toy_root)

    assert (result.returncode, [w in result.stderr for w in (b"toy_dist", b"toy-dist 3.2.1", b"libfoo.so")]) == (
        4,
        [True, True, True],
    )


HANGING = """
@hookimpl
def accel_inspect_devices(machine, devices):
    import pathlib, subprocess
    child = subprocess.Popen(["sleep", "61"])
    pathlib.Path({sign!r}).write_text(str(child.pid))
    child.wait()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_whoever_ends_it_leaves_nothing_running(
    environ: dict[str, str], tmp_path: Path, toy_source: Callable[..., str], name: str
) -> None:
    """While a driver hangs, with a program of its own: a signal ends all of it, without a traceback, with 128 + its number."""
    sign = tmp_path / "started"
    (tmp_path / "installed" / "toy_dist.py").write_text(toy_source() + HANGING.format(sign=str(sign)))
    recording = tmp_path / "machine"
    folder = recording / "root/sys/bus/pci/devices/0000:01:00.0"
    folder.mkdir(parents=True)
    for file, text in (("vendor", "0x1234"), ("device", "0x1"), ("class", "0x120000")):
        (folder / file).write_text(f"{text}\n")
    code = (
        "from anyaccel.answers import LiveAnswers; from anyaccel.recording import open_root; import anyaccel.machine as m\n"
        f"machine = open_root({str(recording / 'root')!r}).with_answers({{'toy': LiveAnswers()}})\n"
        "m.live_machine = lambda **_: machine\n"
        "from anyaccel_cli.main import cli; cli.main(['discover', '--timeout', '60'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_heed_endings,  # noqa: PLW1509 - no threads run in this process when it starts the child
    )
    deadline = time.monotonic() + 15
    while not (sign.exists() and sign.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int(sign.read_text())
    number = getattr(signal, name)
    process.send_signal(number)
    _, errors = process.communicate(timeout=15)
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert (process.returncode, errors, _is_running(child)) == (128 + number, b"", False)


def _is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()
