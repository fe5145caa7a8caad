"""The law of the merge, over every pair of families on one machine."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import strategies as st

from anyaccel.discovery import discover
from anyaccel.environment import environment_for, resolve_all
from anyaccel.errors import VisibilityConflictError
from anyaccel.frozen import FrozenMap
from anyaccel.registry import Registry
from anyaccel.simulation import find_machine, simulate
from anyaccel.visibility import apply_change
from anyaccel_conformance.draw import environs, for_all, selections
from anyaccel_conformance.laws import RequirementBrokenError, check_merge, granted_selection

MACHINES = {"amd": "amd-mi210x4", "example": "example-grid", "nvidia": "nvidia-rtx-pair"}
EXAMPLES = 500


@pytest.fixture(scope="module")
def registry():
    """The three families of this repository."""
    return Registry.of(*(f"anyaccel_{family}.plugin" for family in MACHINES))


@pytest.fixture(scope="module")
def join(registry):
    """Put the cards of several families' machines into one."""

    def make(*families):
        parts = [find_machine(MACHINES[family], registry) for family in families]
        addresses = [b[0] for part in parts for b in part.bridges] + [c.address for part in parts for c in part.cards]
        assert len(addresses) == len(set(addresses))
        joined = replace(
            parts[0],
            name=" and ".join(families),
            bridges=tuple(bridge for part in parts for bridge in part.bridges),
            cards=tuple(card for part in parts for card in part.cards),
            links=tuple(link for part in parts for link in part.links),
            families=FrozenMap({key: table for part in parts for key, table in part.families.items()}),
            environ=FrozenMap(),
        )
        return discover(simulate(joined, registry), registry)

    return make


@pytest.mark.parametrize("pair", [*combinations(MACHINES, 2), tuple(MACHINES)], ids=" and ".join)
def test_each_family_sees_its_own_part(pair, join, registry):
    """Whatever is selected of several families, from wherever one starts, each shows its part or the conflict is named."""
    inventory = join(*pair)
    ids = {view.family: granted_selection(registry.plugin(view.family), view, {}) for view in inventory.views}
    assert set(ids) == set(pair)
    chosen = st.tuples(*(st.one_of(st.just(()), selections(of_family)) for of_family in ids.values()))
    starts = [environs(v, registry.plugin(v.family).declaration, {}, with_grants=False) for v in inventory.views]
    start = st.one_of(
        st.just({}), *starts, st.tuples(*starts).map(lambda parts: {k: v for p in parts for k, v in p.items()})
    )

    def check(drawn):
        parts, environ = drawn
        return check_merge(inventory, registry, [i for part in parts for i in part], environ)

    assert for_all(EXAMPLES, st.tuples(chosen, start), check) > EXAMPLES // 10


def test_masks_of_two_vendors_stand_together(join, registry):
    """One process may use a GPU of each vendor, although both read the variable that was inherited."""
    inventory = join("amd", "nvidia")
    chosen = [inventory.view(family).roots[1].id for family in ("amd", "nvidia")]
    environ = {"CUDA_VISIBLE_DEVICES": "1"}

    change = environment_for(inventory, registry, chosen, environ)

    seen = resolve_all(inventory, registry, apply_change(environ, change))
    assert [seen[family].device_ids for family in ("amd", "nvidia")] == [(device_id,) for device_id in chosen]


def test_conflict_is_an_answer_that_names_a_family(join, registry, monkeypatch):
    """A conflict that names nobody breaks the law."""

    def conflicting(*_, **__):
        raise VisibilityConflictError("two families cannot agree")

    monkeypatch.setattr("anyaccel_conformance.laws.merge.environment_for", conflicting)

    with pytest.raises(RequirementBrokenError, match="names no family"):
        check_merge(join("amd", "nvidia"), registry, [], {})
