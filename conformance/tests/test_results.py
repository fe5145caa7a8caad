"""From the results of checks to one status for each requirement."""

from __future__ import annotations

import pytest

from anyaccel_conformance.requirements import load_requirements
from anyaccel_conformance.results import Result, Status, Tally, results_document, summary_lines, tally

REQUIREMENTS = load_requirements()


def tallied(*statuses):
    row = Tally()
    for status in statuses:
        row.add(Result("toy", "VIS-001", status, f"because {status.value}"))
    return row


@pytest.mark.parametrize(
    ("statuses", "standing"),
    [
        ((), Status.NOT_RUN),
        ((Status.PASS, Status.NOT_RUN), Status.PASS),
        ((Status.PASS, Status.FAIL, Status.PASS), Status.FAIL),
        ((Status.ERROR, Status.PASS), Status.ERROR),
        ((Status.NOT_RUN, Status.UNSUPPORTED), Status.UNSUPPORTED),
        ((Status.NOT_RUN, Status.NOT_IMPLEMENTED), Status.NOT_IMPLEMENTED),
    ],
)
def test_worst_result_stands(statuses, standing):
    """One failure fails a requirement, and what was not run never counts as a pass."""
    assert tallied(*statuses).status is standing


def test_detail_belongs_to_the_status_that_stands():
    """The reason shown is the reason of what is shown."""
    assert tallied(Status.NOT_RUN, Status.FAIL).detail == "because fail"


def test_requirements_without_a_result_are_listed():
    """Silence is visible: a requirement that no check spoke about is not run."""
    found = tally([Result("toy", "VIS-001", Status.PASS)], REQUIREMENTS)["toy"]

    assert set(found) == set(REQUIREMENTS)
    assert found["VIS-002"].status is Status.NOT_RUN


def test_full_summary_has_a_line_for_each_and_the_counts():
    """The table counts apart what passed, what failed and what was not run."""
    results = [Result("toy", "VIS-001", Status.PASS), Result("toy", "VIS-002", Status.FAIL, "wrong\nvery")]

    lines = summary_lines(tally(results, REQUIREMENTS)["toy"], REQUIREMENTS, is_full=True)

    assert "VIS-001  MUST   pass (1)" in lines
    assert "VIS-002  MUST   fail (1)  wrong" in lines
    assert lines[-1] == "35 requirements: 1 fail, 1 pass, 33 not-run"


def test_short_summary_lists_only_what_failed():
    """Inside other test runs the kit stays brief."""
    results = [Result("toy", "VIS-001", Status.PASS), Result("toy", "VIS-002", Status.ERROR, "oops")]

    lines = summary_lines(tally(results, REQUIREMENTS)["toy"], REQUIREMENTS, is_full=False)

    assert [line.split()[0] for line in lines] == ["VIS-002", "35"]


def test_results_cross_a_process_border_as_text():
    """A result is the same after a trip through plain texts."""
    result = Result("toy", "VIS-001", Status.UNSUPPORTED, "no")

    assert Result.from_row(list(result.to_row())) == result


def test_document_holds_every_requirement():
    """The JSON document has status, counts and detail of each."""
    document = results_document(tally([Result("toy", "VIS-001", Status.FAIL, "wrong")], REQUIREMENTS))

    assert document["schema"] == "anyaccel-kit-results/1"
    assert document["plugins"]["toy"]["VIS-001"] == {"status": "fail", "counts": {"fail": 1}, "detail": "wrong"}
