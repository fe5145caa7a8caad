"""AWS Trainium and Inferentia for anyaccel."""

__version__ = "0.1.0"
