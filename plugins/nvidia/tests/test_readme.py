"""The README's tables for imaginary machines are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anyaccel_nvidia.simulated_cards import FAULTS
from anyaccel_nvidia.simulated_models import MODELS, SWITCH_MODELS
from anyaccel_nvidia.simulated_options import CARD_OPTIONS, FAMILY_OPTIONS

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def table(title):
    """Give a table of two columns by the heading of its first."""
    rows = README.partition(f"| {title} | |\n|---|---|\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", rows, re.MULTILINE))


@pytest.mark.parametrize(
    ("title", "known"),
    [("option of a card", CARD_OPTIONS), ("option of `[nvidia]`", FAMILY_OPTIONS), ("fault", FAULTS)],
)
def test_readme_tells_the_words_of_the_code(title, known):
    """Each option and fault stands there with what the code says of it, and no other does."""
    assert table(title) == dict(known)


def test_readme_names_every_model():
    """Who describes a machine finds the word for each card and the name that its driver gives it."""
    models = table("model")

    assert list(models) == [*MODELS, *SWITCH_MODELS]
    assert all(models[name].startswith(model.name) for name, model in MODELS.items())
