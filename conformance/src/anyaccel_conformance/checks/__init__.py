# ruff: noqa: F403 - this module is the sum of its parts
"""The checks. `pytest --pyargs anyaccel_conformance.checks --accel-plugin KEY` runs them against an installed plugin.

A plugin's own tests run them with three lines, see the kit's README:

    from anyaccel_conformance.checks import *

    accel_plugin = "anyaccel_example.plugin"
"""

from anyaccel_conformance.checks.test_declaration import *
from anyaccel_conformance.checks.test_discovery import *
from anyaccel_conformance.checks.test_health import *
from anyaccel_conformance.checks.test_inspection import *
from anyaccel_conformance.checks.test_requests import *
from anyaccel_conformance.checks.test_runtime import *
from anyaccel_conformance.checks.test_simulation import *
from anyaccel_conformance.checks.test_topology import *
from anyaccel_conformance.checks.test_visibility import *
