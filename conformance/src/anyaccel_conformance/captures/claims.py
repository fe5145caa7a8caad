"""What a comparison is made of: claims, each with what the machine's own tool says and what anyaccel answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Claim", "Comparison", "claim_each", "skipped"]


@dataclass(frozen=True)
class Claim:
    """One value. Args: kind: `address`, `numa`, `link` … subject: whose value. said: by the tool. answered: by anyaccel."""

    kind: str
    subject: str
    said: object
    answered: object

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return self.said == self.answered

    @property
    def sentence(self) -> str:
        """What is different, for people."""
        return f"{self.kind} of {self.subject}: the machine says {self.said!r}, we find {self.answered!r}"


@dataclass(frozen=True)
class Comparison:
    """What came of one machine.

    Args: name: its place in the folder. claims: everything compared. reason: why it was skipped, or what kept it from being
        read. is_required: a skip is a failure. notes: parts of the machine that were left out, and why.
    """

    name: str
    claims: tuple[Claim, ...] = ()
    reason: str | None = None
    is_required: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def differences(self) -> tuple[Claim, ...]:
        """The claims on which the two sides disagree."""
        return tuple(claim for claim in self.claims if not claim.agrees)

    @property
    def is_failure(self) -> bool:
        """Whether the comparison failed: something differs, or a machine that must be read was not."""
        return bool(self.differences) or (self.is_required and not self.claims)

    @property
    def line(self) -> str:
        """One line about the machine.

        Example: "compared  nvidia/dgx-a100: 24 values (8 address, 8 driver, 8 numa)"
        """
        if not self.claims:
            return (
                f"{'FAILED' if self.is_required else 'skipped':<9} {self.name}: {self.reason or 'nothing to compare'}"
            )
        counts = Counter(claim.kind for claim in self.claims)
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        return f"{'DIFFERS' if self.differences else 'compared':<9} {self.name}: {len(self.claims)} values ({listed})"


def skipped(name: str, reason: str, *, is_required: bool = False) -> Comparison:
    """Give a machine of which nothing was compared."""
    return Comparison(name, reason=reason, is_required=is_required)


def claim_each(kind: str, said: Mapping[str, object], answered: Mapping[str, object]) -> Iterable[Claim]:
    """Give one claim for every subject of either side; what one side does not have is None there."""
    for subject in sorted({*said, *answered}):
        yield Claim(kind, subject, said.get(subject), answered.get(subject))
