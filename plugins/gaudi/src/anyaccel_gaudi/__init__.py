"""Intel Gaudi for anyaccel."""

__version__ = "0.1.0"
