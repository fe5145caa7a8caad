"""VIS: what is written into an environment is what the resolver reads out of it, from wherever one starts."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from anyaccel.visibility import Selection
from anyaccel_conformance import laws
from anyaccel_conformance.draw import environs, for_all, plain_environs, selections
from anyaccel_conformance.laws.breach import need
from anyaccel_conformance.policy import held
from anyaccel_conformance.subjects import KitPlugin, Subject

__all__ = [
    "test_accepted_selection_is_what_is_visible",
    "test_change_is_declared",
    "test_every_environment_is_explained",
    "test_hide_all_hides_all",
    "test_impossible_selection_is_refused",
    "test_inherited_variables_do_not_matter",
    "test_mask_never_widens",
    "test_number_spaces_are_those_of_devices",
    "test_order_is_as_promised",
    "test_place_among_peers_changes_nothing",
    "test_single_units_are_expressible",
]


def _granted(subject: Subject) -> tuple[str, ...]:
    return laws.granted_selection(subject.plugin, subject.view, subject.environ)


def _by_label(subject: Subject) -> list[tuple[str, ...]]:
    """Give what a clean environment grants, apart by the vendor's word for its level."""
    found: dict[str, tuple[str, ...]] = {}
    for device_id in _granted(subject):
        label = subject.view.device(device_id).label
        found[label] = (*found.get(label, ()), device_id)
    return list(found.values())


def _clean_selections(subject: Subject) -> st.SearchStrategy[Selection]:
    """Draw selections inside what a clean environment grants, mostly of one level."""
    levels = [selections(ids) for ids in _by_label(subject)]
    return st.one_of(*levels, selections(_granted(subject))).map(Selection)


def _plain_selections(subject: Subject) -> list[Selection]:
    """Give selections that chance may miss: of every level all, all in reverse, the first and the last."""
    return [Selection(ids) for level in _by_label(subject) for ids in (level, level[::-1], level[:1], level[-1:])]


def _environs(subject: Subject, *, with_grants: bool = True) -> st.SearchStrategy[dict[str, str]]:
    return environs(subject.view, subject.plugin.declaration, subject.environ, with_grants=with_grants)


@pytest.mark.requirement("VIS-001")
def test_accepted_selection_is_what_is_visible(kit_subject: Subject, kit_examples: int) -> None:
    """From a clean environment, the leaves selected are the leaves visible."""
    plugin, view, environ = kit_subject.plugin, kit_subject.view, kit_subject.environ

    def check(selection: Selection) -> bool:
        return laws.check_round_trip(plugin, view, selection, environ)

    exercised = sum(map(check, _plain_selections(kit_subject)))
    held(exercised + for_all(kit_examples, _clean_selections(kit_subject), check))


@pytest.mark.requirement("VIS-002")
def test_order_is_as_promised(kit_subject: Subject, kit_examples: int) -> None:
    """Units are counted in the order that the change tells."""
    plugin, view, environ = kit_subject.plugin, kit_subject.view, kit_subject.environ

    def check(selection: Selection) -> bool:
        return laws.check_order(plugin, view, selection, environ)

    exercised = sum(map(check, _plain_selections(kit_subject)))
    held(exercised + for_all(kit_examples, _clean_selections(kit_subject), check))


@pytest.mark.requirement("VIS-003")
def test_hide_all_hides_all(kit_subject: Subject, kit_examples: int) -> None:
    """Nothing is left, whatever was inherited."""
    plugin, view = kit_subject.plugin, kit_subject.view
    held(for_all(kit_examples, _environs(kit_subject), lambda environ: laws.check_hide_all(plugin, view, environ)))


@pytest.mark.requirement("VIS-004")
def test_mask_never_widens(kit_subject: Subject, kit_examples: int) -> None:
    """What the starting environment hides stays hidden."""
    plugin, view = kit_subject.plugin, kit_subject.view
    drawn = st.tuples(_environs(kit_subject), _clean_selections(kit_subject))

    def check(environ: dict[str, str], selection: Selection) -> bool:
        return laws.check_never_widens(plugin, view, selection, environ)

    plain = plain_environs(view, plugin.declaration, kit_subject.environ)
    exercised = sum(check(environ, s) for environ in plain for s in _plain_selections(kit_subject))
    held(exercised + for_all(kit_examples, drawn, lambda pair: check(*pair)))


@pytest.mark.requirement("VIS-005")
def test_impossible_selection_is_refused(kit_subject: Subject, kit_examples: int) -> None:
    """A unit selected twice is refused, an unknown id is not found, and nothing else is raised."""
    plugin, view, environ = kit_subject.plugin, kit_subject.view, kit_subject.environ
    drawn = _clean_selections(kit_subject)
    held(
        for_all(kit_examples, drawn, lambda selection: laws.check_refuses_impossible(plugin, view, selection, environ))
    )


@pytest.mark.requirement("VIS-006")
def test_single_units_are_expressible(kit_subject: Subject, kit_examples: int) -> None:
    """Each unit on its own can be selected, from every environment that shows it."""
    plugin, view = kit_subject.plugin, kit_subject.view
    exercised = int(laws.check_singletons(plugin, view, kit_subject.environ))
    drawn = _environs(kit_subject)
    exercised += for_all(kit_examples, drawn, lambda environ: laws.check_singletons(plugin, view, environ))
    held(exercised)


@pytest.mark.requirement("VIS-007")
def test_inherited_variables_do_not_matter(kit_subject: Subject, kit_examples: int) -> None:
    """A selection ends the same, whatever masks and view variables the process would inherit."""
    plugin, view, clean = kit_subject.plugin, kit_subject.view, kit_subject.environ
    drawn = st.tuples(_environs(kit_subject, with_grants=False), _clean_selections(kit_subject))

    def check(inherited: dict[str, str], wanted: tuple[str, ...]) -> bool:
        inside = laws.granted_selection(plugin, view, inherited)
        chosen = Selection(tuple(i for i in wanted if i in inside) or inside[-1:])
        return bool(chosen.device_ids) and laws.check_same_from_everywhere(plugin, view, chosen, clean, inherited)

    exercised = sum(check(environ, ()) for environ in plain_environs(view, plugin.declaration, clean))
    exercised += for_all(kit_examples, drawn, lambda pair: check(pair[0], pair[1].device_ids))
    held(exercised)


@pytest.mark.requirement("VIS-008")
def test_every_environment_is_explained(kit_subject: Subject, kit_examples: int) -> None:
    """Whatever is set resolves, and it is said what every variable and entry does and which one hides a device."""
    plugin, view, clean = kit_subject.plugin, kit_subject.view, kit_subject.environ
    exercised = for_all(kit_examples, _environs(kit_subject), lambda e: laws.check_explained(plugin, view, e))
    drawn = _environs(kit_subject, with_grants=False)
    for_all(kit_examples, drawn, lambda e: laws.check_hidden_is_told(plugin, view, clean, e))
    for environ in plain_environs(view, plugin.declaration, clean):
        laws.check_explained(plugin, view, environ)
        laws.check_hidden_is_told(plugin, view, clean, environ)
    held(exercised)


@pytest.mark.requirement("VIS-009")
def test_change_is_declared(kit_subject: Subject, kit_examples: int) -> None:
    """Only variables declared as written or cleared are changed, each once."""
    plugin, view = kit_subject.plugin, kit_subject.view
    drawn = st.tuples(_environs(kit_subject), _clean_selections(kit_subject))
    held(for_all(kit_examples, drawn, lambda pair: laws.check_change(plugin, view, pair[1], pair[0])))


@pytest.mark.requirement("VIS-009")
def test_place_among_peers_changes_nothing(kit_subject: Subject, kit_examples: int) -> None:
    """With peers or without, a process sees its own devices."""
    plugin, view, environ = kit_subject.plugin, kit_subject.view, kit_subject.environ
    drawn = st.tuples(_clean_selections(kit_subject), _clean_selections(kit_subject))

    def check(pair: tuple[Selection, Selection]) -> bool:
        mine, other = pair
        is_apart = view.leaves_of(mine.device_ids).isdisjoint(view.leaves_of(other.device_ids))
        others = (other,) if is_apart and other.device_ids else ()
        return laws.check_gang(plugin, view, mine, others, environ)

    held(for_all(kit_examples, drawn, check))


@pytest.mark.requirement("VIS-009")
def test_number_spaces_are_those_of_devices(kit_plugin: KitPlugin) -> None:
    """The numbers of every mask are numbers that some device of some machine has."""
    assert kit_plugin.plugin is not None
    devices = [device for subject in kit_plugin.subjects.values() for device in subject.view.devices]
    held(devices)
    known = {space for device in devices for space in device.numbers}
    for variable in kit_plugin.plugin.declaration.variables:
        is_known = variable.number_space is None or variable.number_space in known
        need(
            is_known, "VIS-009", f"{variable.name} counts in {variable.number_space!r}, no device does: {sorted(known)}"
        )
    for name, _ in kit_plugin.plugin.declaration.hide_all:
        is_declared = name in {variable.name for variable in kit_plugin.plugin.declaration.variables}
        need(is_declared, "VIS-009", f"{name} hides all and is not declared")
