"""The laws of the contract as plain functions, for the kit's checks and for a plugin's own property tests.

Each takes a loaded plugin and what the law is about, raises RequirementBrokenError with the requirement's id, and tells
whether there was anything to hold the law against.
"""

from anyaccel_conformance.laws.breach import RequirementBrokenError
from anyaccel_conformance.laws.declaration import check_capabilities, check_declaration, check_refusal
from anyaccel_conformance.laws.devices import (
    check_discovery_is_stable,
    check_discovery_without_driver,
    check_ids,
    check_inspection_keeps_devices,
    check_inspection_without_driver,
    check_memory,
    check_unknown_values,
)
from anyaccel_conformance.laws.health import check_findings, check_policy, check_readings
from anyaccel_conformance.laws.merge import check_merge
from anyaccel_conformance.laws.requests import check_request, check_requests_are_answered
from anyaccel_conformance.laws.topology import check_link_ends, check_link_values, check_places, check_unasked_links
from anyaccel_conformance.laws.visibility import (
    check_change,
    check_explained,
    check_gang,
    check_hidden_is_told,
    check_hide_all,
    check_never_widens,
    check_order,
    check_refuses_impossible,
    check_round_trip,
    check_same_from_everywhere,
    check_singletons,
    clean_environ,
    granted_selection,
)

__all__ = [
    "RequirementBrokenError",
    "check_capabilities",
    "check_change",
    "check_declaration",
    "check_discovery_is_stable",
    "check_discovery_without_driver",
    "check_explained",
    "check_findings",
    "check_gang",
    "check_hidden_is_told",
    "check_hide_all",
    "check_ids",
    "check_inspection_keeps_devices",
    "check_inspection_without_driver",
    "check_link_ends",
    "check_link_values",
    "check_memory",
    "check_merge",
    "check_never_widens",
    "check_order",
    "check_places",
    "check_policy",
    "check_readings",
    "check_refusal",
    "check_refuses_impossible",
    "check_request",
    "check_requests_are_answered",
    "check_round_trip",
    "check_same_from_everywhere",
    "check_singletons",
    "check_unasked_links",
    "check_unknown_values",
    "clean_environ",
    "granted_selection",
]
