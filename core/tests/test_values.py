from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anyaccel
from anyaccel import errors
from anyaccel.answers import check_shape
from anyaccel.capabilities import (
    Capability,
    Declaration,
    MatchRule,
    SupportState,
    not_implemented,
    supported,
    unsupported,
)
from anyaccel.device import Device, with_known
from anyaccel.errors import AccelError, InvalidResourceRequestError, PluginContractError, UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Deadline, DeadlineExceededError, LiveAnswers, NoAnswers, StoredAnswers
from anyaccel.resources import FRACTION_UNITS, LegalSet, LegalSets, ResourceRequest


@given(st.dictionaries(st.text(), st.integers() | st.none()))
def test_frozen_map_is_its_items(items):
    """A frozen map equals, hashes and pickles by its items, in any order."""
    frozen = FrozenMap(items)

    assert dict(frozen) == items
    assert frozen == FrozenMap(dict(reversed(items.items())))
    assert hash(frozen) == hash(FrozenMap(dict(reversed(items.items()))))
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert len(frozen) == len(items)


def test_frozen_map_extends_into_a_copy():
    """Adding items leaves the original as it was."""
    first = FrozenMap({"a": 1})

    assert first.with_items({"b": 2}) == {"a": 1, "b": 2}
    assert first == {"a": 1}
    assert repr(first) == "FrozenMap({'a': 1})"


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n.endswith("Error")])
def test_every_error_has_a_code_of_its_own(name):
    """Codes are kebab-case and tell the errors apart."""
    cls = getattr(errors, name)

    assert issubclass(cls, AccelError)
    assert cls.code == cls.code.lower().replace("_", "-").replace(" ", "-")
    assert [n for n in errors.__all__ if getattr(getattr(errors, n), "code", None) == cls.code] == [name]


def test_errors_cross_a_process_border_whole():
    """Everything an error carries survives pickling."""
    error = PluginContractError("bad", plugin="p", hook="h", requirement="DISC-001", distribution="d", hint="do")

    again = pickle.loads(pickle.dumps(error))

    assert type(again) is PluginContractError
    assert str(again) == "bad [DISC-001]"
    assert (again.plugin, again.hook, again.requirement, again.distribution, again.hint) == (
        "p",
        "h",
        "DISC-001",
        "d",
        "do",
    )


@pytest.mark.parametrize("amount", [-1, 0.00001, 1.5, float("nan"), float("inf")])
def test_impossible_amounts_are_refused(amount):
    """The message repeats key and value and states the rule."""
    with pytest.raises(InvalidResourceRequestError, match=r"of 'gpu' is neither 0, a fraction below 1") as caught:
        ResourceRequest("gpu", amount)

    assert repr(amount) in caught.value.message


@pytest.mark.parametrize(
    ("amount", "count", "shares", "is_fraction"),
    [(0, 0, 0, False), (2, 2, 20_000, False), (2.0, 2, 20_000, False), (0.3, 1, 3000, True), (0.99999, 1, 9999, True)],
)
def test_amounts_are_whole_units_or_shares(amount, count, shares, is_fraction):
    """A fraction needs one device and is rounded down to shares."""
    request = ResourceRequest("gpu", amount)

    assert (request.count, request.shares, request.is_fraction) == (count, shares, is_fraction)
    assert FRACTION_UNITS == 10_000


def test_legal_sets_are_walked_in_order():
    """The family's order of preference is kept."""
    first, second = LegalSet(("a",)), LegalSet(("b",), is_only_slower=True, reason="other ring")

    assert list(LegalSets((first, second))) == [first, second]


def test_declaration_tells_what_is_supported():
    """Only what was declared as supported is."""
    capabilities = FrozenMap(
        {"links": supported(), "metrics": unsupported("no sensor"), "diagnose": not_implemented("2")}
    )
    declaration = Declaration("toy", "Toy", capabilities=capabilities)

    assert declaration.supports(Capability.LINKS)
    assert not declaration.supports(Capability.METRICS)
    assert not declaration.supports(Capability.DIAGNOSE)
    assert not declaration.supports(Capability.SIMULATE)
    assert capabilities["metrics"].state is SupportState.UNSUPPORTED


def test_match_rules_need_an_owner():
    """A class or a node pattern alone names nobody."""
    assert MatchRule(vendor_id=1).is_specific
    assert MatchRule(drivers=("x",)).is_specific
    assert MatchRule(sysfs_class="neuron_device").is_specific
    assert not MatchRule(class_prefixes=("12",)).is_specific


def test_deadline_is_checked_against_its_clock():
    """Time over is an error; no limit never ends."""
    now = [0.0]
    deadline = Deadline(2, clock=lambda: now[0])

    deadline.check()
    assert deadline.seconds_left() == 2
    now[0] = 3.0
    with pytest.raises(DeadlineExceededError):
        deadline.check()
    assert deadline.seconds_left() == 0
    Deadline(None).check()
    assert Deadline(None).seconds_left() is None


def test_live_answers_ask_once_a_topic_and_keep_it():
    """A question is asked once; what came is kept as JSON for a recording."""
    asked = []
    answers = LiveAnswers(on_ask=asked.append)

    assert answers.answer("x", lambda: {"a": (1, 2)}) == {"a": [1, 2]}
    assert answers.answer("x", lambda: pytest.fail("asked twice")) == {"a": [1, 2]}
    assert asked == ["x"]
    assert answers.given == {"x": {"a": [1, 2]}}


def test_answer_that_never_came_is_kept_with_its_reason():
    """An unavailable driver is recorded and raises the same way when it is replayed."""

    def collect():
        raise UnavailableError("library missing", reason_code="library-missing", hint="install it")

    answers = LiveAnswers()
    with pytest.raises(UnavailableError, match="library missing"):
        answers.answer("x", collect)
    with pytest.raises(UnavailableError, match="library missing") as replayed:
        StoredAnswers(FrozenMap(answers.given)).answer("x", dict)

    assert (replayed.value.reason_code, replayed.value.hint) == ("library-missing", "install it")


def test_no_answers_gives_the_reason():
    """Where nothing can be asked, the reason is what was given."""
    with pytest.raises(UnavailableError, match="not here"):
        NoAnswers("not here").answer("x", dict)


def test_missing_recorded_answer_says_so():
    """A topic that was never recorded is told apart from one that failed."""
    with pytest.raises(UnavailableError, match="holds no answer to 'x'") as caught:
        StoredAnswers().answer("x", dict)

    assert caught.value.reason_code == "not-recorded"


@pytest.mark.parametrize("fault", ["hang", "crash", "other"])
def test_faults_are_not_acted_out_outside_the_probe_child(fault):
    """In the parent an imaginary fault is an unavailable answer, never a hang or crash."""
    answers = StoredAnswers(FrozenMap({"x": {"fault": fault}}))

    assert answers.has_faults
    with pytest.raises(UnavailableError, match=fault):
        answers.answer("x", dict)


def test_unknown_fault_in_the_child_is_named():
    """The child refuses a fault it does not know."""
    with pytest.raises(UnavailableError, match="unknown fault 'gremlins'"):
        StoredAnswers(FrozenMap({"x": {"fault": "gremlins"}}), may_fault=True).answer("x", dict)


def test_public_names_are_listed_and_resolve():
    """Every public name of the package resolves; another is an AttributeError."""
    for name in anyaccel.__all__:
        assert getattr(anyaccel, name) is not None
    assert set(anyaccel.__all__) == set(dir(anyaccel))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        anyaccel.nonsense  # noqa: B018


def test_facts_that_arrive_take_their_reasons_away():
    """A field that is filled in is no longer unknown; what is None leaves field and reason as they were."""
    device = Device(
        id="toy:0",
        family="toy",
        numbers=FrozenMap({"index": None, "minor": 3}),
        unknown=FrozenMap(
            {"memory_bytes": "unasked", "uuid": "unasked", "numbers.index": "unasked", "model": "unasked"}
        ),
    )

    known = with_known(
        device, memory_bytes=8, uuid=None, numbers={"index": 0, "slot": None}, attributes={"mode": "fast"}
    )

    assert (known.memory_bytes, known.uuid, dict(known.numbers)) == (8, None, {"index": 0, "minor": 3})
    assert dict(known.attributes) == {"mode": "fast"}
    assert dict(known.unknown) == {"uuid": "unasked", "model": "unasked"}


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({"chips": [{"slot": 0, "more": 1}], "version": "1"}, True),
        ({"chips": [], "version": None}, True),
        ({"chips": [{"slot": -1}], "version": "1"}, False),
        ({"chips": [{"slot": True}], "version": "1"}, False),
        ({"chips": {}, "version": "1"}, False),
        ({"chips": [{}], "version": "1"}, False),
        (None, False),
    ],
)
def test_an_answer_of_another_shape_is_no_answer(document, fits):
    """Names may be added, none may lack; a number is not negative, true is no number."""
    shape = {"chips": [{"slot": (int,)}], "version": (str, type(None))}

    if fits:
        assert check_shape(document, shape) is document
        return
    with pytest.raises(UnavailableError) as error:
        check_shape(document, shape)

    assert error.value.reason_code == "malformed-answer"
