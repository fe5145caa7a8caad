"""The README's support table is what the stored evidence says, and the evidence covers every requirement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from anyaccel_conformance.requirements import load_requirements


def test_table_is_generated_from_the_evidence(repository):
    """Nobody edits the table by hand."""
    script = repository / "conformance" / "generate_support_table.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


PLUGINS = sorted(p.parent.name for p in Path(__file__).parents[1].glob("plugins/*/pyproject.toml"))


@pytest.mark.parametrize("plugin", PLUGINS)
def test_evidence_names_every_requirement(plugin, repository):
    """A requirement that nobody ran the plugin against is no evidence."""
    statuses = json.loads((repository / "conformance" / "evidence" / f"{plugin}.json").read_text())

    assert set(statuses) == set(load_requirements())
    assert not {"fail", "error"} & set(statuses.values())
