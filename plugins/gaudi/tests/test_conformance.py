"""The conformance kit in replay on every machine this plugin ships."""

from anyaccel_conformance.checks import *  # noqa: F403

accel_plugin = "anyaccel_gaudi.plugin"
"""What the kit checks here."""
