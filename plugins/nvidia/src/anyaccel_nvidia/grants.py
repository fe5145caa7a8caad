"""What a batch system granted: the outermost layer above the masks.

Slurm names the cards of a job or step in SLURM_JOB_GPUS and SLURM_STEP_GPUS by the numbers of the whole machine, whatever
device rules it sets; CUDA_VISIBLE_DEVICES beside them counts inside those rules where they are on, and over the whole
machine where they are not. Where nothing tells which holds, a number is certain only if both readings agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anyaccel.device import Device
from anyaccel.visibility import TokenEffect, TokenReport, VariableReport, number_tokens, split_tokens
from anyaccel_nvidia.declaration import BATCH_VARIABLES

__all__ = ["NO_GRANT", "BatchGrant", "read_grant"]


@dataclass(frozen=True)
class BatchGrant:
    """A batch system's grant.

    Args: variable: which one said it, None = there is none. ids: the devices granted, in PCI order; None = all, because
        there is no grant, or one that cannot be mapped. is_double: whether a number may count over the machine or inside
        the grant, and nothing tells which.
    """

    variable: str | None = None
    ids: tuple[str, ...] | None = None
    is_double: bool = False
    tokens: tuple[TokenReport, ...] = ()
    reports: tuple[VariableReport, ...] = ()

    @property
    def doubt(self) -> str:
        """Why a number is unknown under a grant with two readings."""
        return f"{self.variable} is set, and whether numbers count over the machine or inside the job is unknown"

    def allows(self, device_id: str) -> bool:
        """Whether a device is inside the grant."""
        return self.ids is None or device_id in self.ids

    def certain(self, numbers: Mapping[str, int]) -> Mapping[str, int]:
        """Keep the numbers that mean the same card over the machine and inside the grant."""
        inside = {device_id: position for position, device_id in enumerate(self.ids or ())}
        return {device_id: number for device_id, number in numbers.items() if inside.get(device_id) == number}


NO_GRANT = BatchGrant()


def read_grant(devices: Sequence[Device], environ: Mapping[str, str]) -> BatchGrant:
    """Read the innermost grant of a batch system.

    Args: devices: what the runtime would list, in PCI order.
    """
    variable = next((name for name in BATCH_VARIABLES if environ.get(name)), None)
    if variable is None:
        empty = "empty: the batch system says nothing"
        return BatchGrant(reports=tuple(VariableReport(n, "", False, empty) for n in BATCH_VARIABLES if n in environ))
    value = environ[variable]
    tokens = tuple(_token(devices, variable, *entry) for entry in enumerate(number_tokens(split_tokens(value))))
    others = tuple(
        VariableReport(name, environ[name], False, f"{variable} decides, which is set inside it")
        for name in BATCH_VARIABLES
        if name != variable and name in environ
    )
    if len(devices) == len(tokens):
        reason = "granted by the batch system; its device rules already leave exactly these cards"
        return BatchGrant(variable, None, False, tokens, (VariableReport(variable, value, True, reason), *others))
    if any(token.effect is not TokenEffect.COUNTS for token in tokens):
        reason = "granted by the batch system; its numbers cannot be mapped to cards here, so it narrows nothing"
        report = VariableReport(variable, value, False, reason, is_warning=True)
        return BatchGrant(variable, None, False, tokens, (report, *others))
    granted = {device_id for token in tokens for device_id in token.device_ids}
    ids = tuple(device.id for device in devices if device.id in granted)
    reason = "granted by the batch system; other cards are kept out of every environment made here"
    report = VariableReport(variable, value, True, reason)
    return BatchGrant(variable, ids, not _is_driver_asked(devices), tokens, (report, *others))


def _is_driver_asked(devices: Sequence[Device]) -> bool:
    """Whether the driver itself listed these cards: then it listed more than were granted, so no device rules hide any."""
    return all(device.attributes.get("index_source") == "driver" for device in devices)


def _token(devices: Sequence[Device], variable: str, position: int, entry: tuple[str, int | None]) -> TokenReport:
    """Find the card that a number of the machine names: its device file's number, or the driver's number, if both agree."""
    text, number = entry
    if number is None:
        return TokenReport(variable, position, text, TokenEffect.UNKNOWN, (), "no number")
    named = tuple(d.id for d in devices if number in (d.numbers.get("minor"), d.numbers.get("index")))
    if len(named) == 1:
        return TokenReport(variable, position, text, TokenEffect.COUNTS, named, "granted by the batch system")
    reason = "no card has this number" if not named else "it is one card's device file and another's index"
    return TokenReport(variable, position, text, TokenEffect.UNKNOWN, (), reason)
