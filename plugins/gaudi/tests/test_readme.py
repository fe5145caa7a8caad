from __future__ import annotations

from pathlib import Path

import pytest

from anyaccel_gaudi.models import MODELS

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("model", [model.key for model in MODELS])
def test_readme_names_every_model(model):
    """Who describes a machine finds the word for each card."""
    assert f"`{model}`" in README
