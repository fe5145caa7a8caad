"""The one place that touches amdsmi, AMD's binding of `libamd_smi.so`. Runs in the probe child only.

The binding prints two lines and raises KeyError when it is imported without the library, and AttributeError when the library
lacks one of its symbols. Both stay in here, and so does everything it or the library prints.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from anyaccel.driver_calls import silenced
from anyaccel.errors import UnavailableError
from anyaccel.replies import plain_text, whole_number
from anyaccel_amd.smi_answer import expected_library_major, library_major

__all__ = ["collect_amdsmi"]

Json = Any

_INSTALL = "pip install 'anyaccel-amd[smi]' of the version that fits the ROCm release, with ROCm's amd-smi-lib"
_INIT_REASONS = {10: "permission-denied", 34: "driver-not-loaded", 4: "library-missing", 5: "symbol-missing"}
"""AMDSMI_STATUS_NO_PERM, _DRIVER_NOT_LOADED, _FAIL_LOAD_MODULE and _FAIL_LOAD_SYMBOL of `amdsmi.h`."""


def collect_amdsmi() -> Json:
    """Ask amdsmi about every GPU.

    Returns: `library_version`, `binding_version`, `processors` (one a GPU or partition) and `links` (one a pair of GPUs).
        Serial numbers and process names are left out.
    Raises: UnavailableError saying what is missing; reason codes `binding-missing`, `library-missing`, `symbol-missing`,
        `wrong-binding`, `library-version`, `permission-denied`, `driver-not-loaded`, `init-failed`.
    """
    with silenced():
        smi = _binding()
        _start(smi)
        try:
            return _document(smi)
        finally:
            with contextlib.suppress(smi.AmdSmiException):
                smi.amdsmi_shut_down()


def _binding() -> ModuleType:
    """Import the binding that is installed, else the copy that ROCm ships."""
    with _module_path():
        if importlib.util.find_spec("amdsmi") is None:
            raise UnavailableError("amdsmi is not installed", reason_code="binding-missing", hint=_INSTALL)
        try:
            module = importlib.import_module("amdsmi")
        except (KeyError, OSError) as error:
            raise UnavailableError(
                "library missing: amdsmi is installed, libamd_smi.so cannot be loaded",
                reason_code="library-missing",
                hint="install ROCm's amd-smi-lib, or set ROCM_PATH to the folder that holds lib/libamd_smi.so",
            ) from error
        except AttributeError as error:
            raise UnavailableError(
                f"libamd_smi.so does not fit this amdsmi: {error}", reason_code="symbol-missing", hint=_INSTALL
            ) from error
    if not hasattr(module, "amdsmi_get_processor_handles"):
        where = getattr(module, "__file__", None)
        raise UnavailableError(f"the module amdsmi at {where} is not AMD's", reason_code="wrong-binding")
    return module


@contextlib.contextmanager
def _module_path() -> Iterator[None]:
    """Let the copy below ROCm's folder be found after everything that is installed."""
    shipped = Path(os.environ.get("ROCM_PATH") or "/opt/rocm") / "share" / "amd_smi"
    if not shipped.is_absolute() or not (shipped / "amdsmi").is_dir():
        yield
        return
    sys.path.append(str(shipped))
    try:
        yield
    finally:
        sys.path.remove(str(shipped))


def _start(smi: ModuleType) -> None:
    try:
        smi.amdsmi_init(smi.AmdSmiInitFlags.INIT_AMD_GPUS)
    except smi.AmdSmiLibraryException as error:
        code = _INIT_REASONS.get(error.get_error_code(), "init-failed")
        raise UnavailableError(f"amdsmi_init failed: {_status(error)}", reason_code=code) from error
    found, wanted = library_major(_library_version(smi)), expected_library_major(_binding_version(smi))
    if wanted is not None and found is not None and found != wanted:
        smi.amdsmi_shut_down()
        raise UnavailableError(
            f"wrong version: amdsmi {_binding_version(smi)} was made for library {wanted}, found {_library_version(smi)}",
            reason_code="library-version",
            hint=_INSTALL,
        )


def _status(error: Exception) -> str:
    """Give the vendor's short text for a failed call."""
    info = getattr(error, "err_info", None)
    return str(info).partition(" - ")[0] if info else type(error).__name__


def _library_version(smi: ModuleType) -> str | None:
    try:
        version = smi.amdsmi_get_lib_version()
    except smi.AmdSmiException:
        return None
    return ".".join(str(version[part]) for part in ("major", "minor", "release"))


def _binding_version(smi: ModuleType) -> str | None:
    version = getattr(smi, "__version__", None)
    return None if version is None else str(version)


def _document(smi: ModuleType) -> Json:
    handles = smi.amdsmi_get_processor_handles()
    rows = [_processor(smi, handle) for handle in handles]
    whole = [
        (row["address"], handle)
        for row, handle in zip(rows, handles, strict=True)
        if row["address"] is not None and not row["partition_id"]
    ]
    return {
        "library_version": _library_version(smi),
        "binding_version": _binding_version(smi),
        "processors": rows,
        "links": _links(smi, whole),
    }


class _Asker:
    """Asks one processor; a call that fails leaves None and its status behind.

    The binding decodes texts and serial numbers strictly, so an odd process name makes it raise ValueError.
    """

    def __init__(self, smi: ModuleType) -> None:
        self._smi = smi
        self.problems: dict[str, str] = {}

    def ask(self, name: str, call: Callable[[], Json]) -> Json:
        """Give a call's answer with `N/A` as None."""
        try:
            value = call()
        except self._smi.AmdSmiException as error:
            self.problems[name] = _status(error)
            return None
        except ValueError as error:
            self.problems[name] = f"the binding cannot read the answer: {error}"
            return None
        return None if value == "N/A" else value


def _processor(smi: ModuleType, handle: Any) -> dict[str, Json]:
    asker = _Asker(smi)
    ask = asker.ask
    kfd = ask("kfd_node", lambda: smi.amdsmi_get_gpu_kfd_info(handle)) or {}
    ids = ask("hip_id", lambda: smi.amdsmi_get_gpu_enumeration_info(handle)) or {}
    asic = ask("market_name", lambda: smi.amdsmi_get_gpu_asic_info(handle)) or {}
    driver = ask("driver_version", lambda: smi.amdsmi_get_gpu_driver_info(handle)) or {}
    memory = smi.AmdSmiMemoryType.VRAM
    row = {
        "address": ask("address", lambda: smi.amdsmi_get_gpu_device_bdf(handle)),
        "kfd_node": whole_number(kfd.get("node_id"), bits=32),
        "partition_id": whole_number(kfd.get("current_partition_id"), bits=32),
        "render": whole_number(ids.get("drm_render"), bits=32),
        "card": whole_number(ids.get("drm_card"), bits=32),
        "hsa_id": whole_number(ids.get("hsa_id"), bits=32),
        "hip_id": whole_number(ids.get("hip_id"), bits=32),
        "hip_uuid": plain_text(ids.get("hip_uuid")),
        "market_name": plain_text(asic.get("market_name")),
        "driver_version": plain_text(driver.get("driver_version")),
        "vram_bytes": ask("vram_bytes", lambda: smi.amdsmi_get_gpu_memory_total(handle, memory)),
        "compute_partition": ask("compute_partition", lambda: smi.amdsmi_get_gpu_compute_partition(handle)),
        "memory_partition": ask("memory_partition", lambda: smi.amdsmi_get_gpu_memory_partition(handle)),
        "errors_counted": _errors(ask("errors_counted", lambda: smi.amdsmi_get_gpu_total_ecc_count(handle))),
        "process_count": _length(ask("process_count", lambda: smi.amdsmi_get_gpu_process_list(handle))),
        "xgmi_links": _xgmi_links(ask("xgmi_links", lambda: smi.amdsmi_get_link_metrics(handle))),
    }
    return {**row, "problems": dict(sorted(asker.problems.items()))}


def _length(rows: Json) -> int | None:
    return None if rows is None else len(rows)


def _errors(counts: Json) -> Json:
    if counts is None:
        return None
    names = {"corrected": "correctable_count", "uncorrected": "uncorrectable_count"}
    return {kind: whole_number(counts.get(name), bits=64) for kind, name in names.items()}


def _xgmi_links(metrics: Json) -> Json:
    if metrics is None:
        return None
    rows = metrics["links"][: metrics["num_links"]]
    return [
        {
            "address": plain_text(row["bdf"]),
            "type": whole_number(row["link_type"]),
            "max_gbits": _known(row["max_bandwidth"]),
        }
        for row in rows
    ]


def _known(number: Json) -> int | None:
    """Give a 32-bit number; 0 and all ones are the library's words for unsupported."""
    return whole_number(number, bits=32) or None


def _links(smi: ModuleType, whole: Sequence[tuple[str, Any]]) -> list[dict[str, Json]]:
    """Ask for the link of every pair of GPUs; partitions of one GPU share its links."""
    rows = []
    for place, (a, first) in enumerate(whole):
        for b, second in whole[place + 1 :]:
            asker = _Asker(smi)
            link = asker.ask("type", partial(smi.amdsmi_topo_get_link_type, first, second)) or {}
            weight = asker.ask("weight", partial(smi.amdsmi_topo_get_link_weight, first, second))
            rows.append({"a": a, "b": b, "type": link.get("type"), "hops": link.get("hops"), "weight": weight})
    return rows
