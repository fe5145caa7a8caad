"""Where a recording may go, decided before a machine is looked at."""

from __future__ import annotations

from pathlib import Path

from anyaccel.errors import AccelError
from anyaccel_cli.failures import WrongUsageError

__all__ = ["TargetExistsError", "check_target"]

_ARCHIVES = (".tar.gz", ".tgz")
_OTHER_ARCHIVES = (".zip", ".tar", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".7z", ".gz")


class TargetExistsError(AccelError):
    """A file is where a recording shall go."""

    code = "target-exists"


def check_target(path: str, *, is_forced: bool) -> None:
    """Make sure that a recording of this name is what one expects and overwrites nothing unasked.

    Args: is_forced: an archive that exists is replaced. A folder with content never is; writing it says so.
    Raises: WrongUsageError for another kind of archive; TargetExistsError for a file that is there.
    """
    name = Path(path).name.lower()
    is_archive = name.endswith(_ARCHIVES)
    if not is_archive and name.endswith(_OTHER_ARCHIVES):
        suffix = next(suffix for suffix in _OTHER_ARCHIVES if name.endswith(suffix))
        raise WrongUsageError(
            f"a recording cannot be a {suffix} file: {path!r}", hint="take a name that ends in .tar.gz, or a new folder"
        )
    if not Path(path).exists() or Path(path).is_dir():
        return
    if not is_archive:
        raise TargetExistsError(f"{path!r} is a file, not a folder", hint="take another name")
    if not is_forced:
        raise TargetExistsError(f"file {path!r} exists", hint="take another name, or --force to replace it")
