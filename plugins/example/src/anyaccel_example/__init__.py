"""An imaginary accelerator: the smallest plugin that needs every corner of the contract."""

__version__ = "0.1.0"
