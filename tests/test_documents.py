"""What the documents say is what happens: commands are run and compared, code is executed, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")

RUN_ELSEWHERE = {
    "make demo": "the checks before landing run it",
    "make test": "this is it",
    "git clone https://github.com/anyaccel/anyaccel && cd anyaccel": "needs a network",
    "pip install ./core ./plugins/nvidia ./plugins/amd ./cli": "test_wheels installs the same from wheels",
    'pip install "anyaccel-cli[all]"': "nothing is published yet",
}
"""Lines of `sh` blocks that no test of this file runs, each with the reason."""


@dataclass(frozen=True)
class Block:
    document: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document}:{self.line}"


def documents() -> list[Path]:
    found = [p for p in REPOSITORY.glob("*.md") if p.name != "LICENSE"]
    found += sorted(REPOSITORY.glob("docs/**/*.md")) + sorted(REPOSITORY.glob("*/README.md"))
    return sorted({*found, *REPOSITORY.glob("plugins/*/README.md")})


def blocks(language: str) -> list[Block]:
    found = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match.group(1) == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append(Block(str(path.relative_to(REPOSITORY)), line, language, match.group(2)))
    return found


def steps(text: str) -> list[tuple[str, str]]:
    """Cut a console block into commands and the output shown below each."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and line.startswith("> "):
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines).strip("\n")) for command, lines in found]


def names(rows: list[Block]) -> list[str]:
    return [block.name for block in rows]


@pytest.mark.parametrize("block", blocks("console"), ids=names(blocks("console")))
def test_shown_output_is_what_the_command_prints(block, command_environ):
    """Every command of a document prints, stdout and stderr together, exactly what the document shows."""
    for command, shown in steps(block.text):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=REPOSITORY,
            env=command_environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=50,
            check=False,
        )

        assert "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n") == shown, command


@pytest.mark.parametrize("block", blocks("python"), ids=names(blocks("python")))
def test_shown_code_runs(block, tmp_path):
    """Every piece of Python in a document runs as it stands."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", blocks("toml"), ids=names(blocks("toml")))
def test_shown_descriptions_are_machines(block):
    """Every TOML block of a document that is a machine description can be simulated."""
    from anyaccel.discovery import discover
    from anyaccel.registry import Registry
    from anyaccel.simulation import parse_description, simulate

    if "anyaccel-machine/1" not in block.text:
        pytest.skip("no machine description")
    registry = Registry.of(*(f"anyaccel_{p.parent.name}.plugin" for p in REPOSITORY.glob("plugins/*/pyproject.toml")))

    assert discover(simulate(parse_description(block.text), registry), registry).devices


@pytest.mark.parametrize("block", blocks("sh"), ids=names(blocks("sh")))
def test_shell_lines_are_known(block):
    """A line that is only shown, not run here, is on the list with the reason why."""
    for line in block.text.splitlines():
        assert line in RUN_ELSEWHERE, line


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_lead_somewhere(path):
    """A link to a file of the repository leads to one."""
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (path.parent / target).exists(), target


def test_every_language_of_a_block_is_checked():
    """No fenced block escapes these tests by its language, but drawings and file names."""
    known = {"console", "python", "toml", "sh"}
    for path in documents():
        for language in {match.group(1) for match in FENCE.finditer(path.read_text(encoding="utf-8"))}:
            assert language in known | {"text", "json"}, f"{path}: {language}"
