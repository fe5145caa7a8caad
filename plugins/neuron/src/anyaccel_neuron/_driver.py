"""The one module that starts the vendor's program; nothing else in this package starts or opens anything.

`libnrt.so` is never loaded: the runtime takes the cores that it is asked about.
"""

from __future__ import annotations

from typing import Any

from anyaccel.driver_calls import run_program_json

__all__ = ["FOLDER", "collect"]

FOLDER = "/opt/aws/neuron/bin"
"""Where the package aws-neuronx-tools installs."""


def collect() -> Any:
    """Ask `neuron-ls` for everything it lists, as it writes it.

    Raises: UnavailableError; without a driver the program ends with 1 and writes one line to stderr.
    """
    return run_program_json(
        ["neuron-ls", "--json-output"], hint="install the package aws-neuronx-tools", folders=(FOLDER,)
    )
