"""The conformance kit: numbered requirements, the laws behind them, and checks that run them against any plugin."""

__version__ = "0.1.0"
