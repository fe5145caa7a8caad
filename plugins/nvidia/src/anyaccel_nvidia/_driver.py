"""The one place that touches NVIDIA's library, through the vendor's binding `pynvml` (distribution nvidia-ml-py).

Each `collect_` function opens the library, asks, closes it, and gives plain JSON data. What one call refuses costs that one
value: its return code is kept under `codes`. Indices follow the PCI bus (NVML API reference, device queries).
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyaccel.errors import UnavailableError
from anyaccel.pci import normal_address

__all__ = ["DEFAULT_LIBRARY", "WSL_LIBRARY", "collect_metrics", "collect_nvml"]

DEFAULT_LIBRARY = "libnvidia-ml.so.1"
WSL_LIBRARY = "/usr/lib/wsl/lib/libnvidia-ml.so.1"

_NEEDED = (
    "NVMLError",
    "nvmlInitWithFlags",
    "nvmlShutdown",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetPciInfo",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetFieldValues",
)
_INVALID_ARGUMENT = 2
_MOST_DEVICES = 64
_LIBRARY_NOT_FOUND, _DRIVER_NOT_LOADED, _MISMATCH, _NO_PERMISSION = 12, 9, 18, 4
_MEMORY_V2 = 0x02000028
"""nvmlMemory_v2 in nvml.h: version 2 of a structure of 40 bytes."""
_NODE_WORDS = 4
"""64-bit words of a NUMA node mask: more than Linux allows nodes by default."""
_FIELD_LINK_SPEED = 164
"""NVML_FI_DEV_NVLINK_GET_SPEED in nvml.h: MB/s of one link; the scope is the link's number."""


def collect_nvml(fallbacks: Sequence[str] = (WSL_LIBRARY,)) -> dict[str, Any]:
    """Ask the driver for everything inspection and topology need.

    Args: fallbacks: libraries to try when the loader's choice is missing or finds no driver.
    Raises: UnavailableError with a reason code when nothing can be asked.
    """
    with _open_library(fallbacks) as (binding, library):
        handles = _handles(binding)
        system = _Values(binding)
        system.take("driver_version", "nvmlSystemGetDriverVersion")
        system.take("cuda_version", "nvmlSystemGetCudaDriverVersion_v2")
        return {
            "format": 1,
            "library": library,
            **system.document(),
            "devices": [_device(binding, index, *handle) for index, handle in enumerate(handles)],
            "pairs": list(_pairs(binding, [handle for handle, _ in handles])),
        }


def collect_metrics(fallbacks: Sequence[str] = (WSL_LIBRARY,)) -> dict[str, Any]:
    """Ask the driver for sensors and counters. Raises: UnavailableError as collect_nvml."""
    with _open_library(fallbacks) as (binding, _):
        handles = _handles(binding)
        return {"format": 1, "devices": [_sensors(binding, *handle) for handle in handles]}


@contextmanager
def _open_library(fallbacks: Sequence[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    binding = _import_binding()
    library = _start(binding, fallbacks)
    try:
        values = _Values(binding)
        values.take("version", "nvmlSystemGetNVMLVersion")
        yield binding, {**library, **values.document()}
    finally:
        binding.nvmlShutdown()


def _import_binding() -> Any:
    try:
        binding = importlib.import_module("pynvml")
    except ImportError as error:
        raise UnavailableError(
            f"the binding pynvml cannot be imported: {error}",
            reason_code="binding-missing",
            hint="pip install nvidia-ml-py",
        ) from error
    missing = [name for name in _NEEDED if not hasattr(binding, name)]
    if missing:
        where = getattr(binding, "__file__", None) or "an unknown place"
        raise UnavailableError(
            f"wrong binding module found: {where} of {_owner(where)} lacks {', '.join(missing[:3])}",
            reason_code="wrong-binding",
            hint="pip uninstall the distribution named above, then pip install --force-reinstall nvidia-ml-py",
        )
    return binding


def _owner(where: str) -> str:
    """Name the distribution that installed a file."""
    for distribution in importlib.metadata.distributions():
        if any(str(distribution.locate_file(file)) == where for file in distribution.files or ()):
            return f"distribution {distribution.metadata['Name']} {distribution.version}"
    return "no known distribution"


def _start(binding: Any, fallbacks: Sequence[str]) -> dict[str, Any]:
    """Start the first library that works, and say which and why others were passed over."""
    skipped = []
    code = _start_code(binding)
    if code == 0:
        return {"name": DEFAULT_LIBRARY, "skipped": []}
    skipped.append({"name": DEFAULT_LIBRARY, "code": code})
    if code in (_LIBRARY_NOT_FOUND, _DRIVER_NOT_LOADED):
        for path in fallbacks:
            if _switch_library(binding, path):
                other = _start_code(binding)
                if other == 0:
                    return {"name": path, "skipped": skipped}
                skipped.append({"name": path, "code": other})
    raise _unavailable(binding, code)


def _start_code(binding: Any) -> int:
    try:
        binding.nvmlInitWithFlags(0)
    except binding.NVMLError as error:
        return int(error.value)
    return 0


def _switch_library(binding: Any, path: str) -> bool:
    """Make the binding use another library file; it has no call for that, `nvmlLib` is its documented global."""
    if not Path(path).is_file():
        return False
    try:
        binding.nvmlLib = ctypes.CDLL(path)
    except OSError:
        return False
    getattr(binding, "_nvmlGetFunctionPointer_cache", {}).clear()
    return True


def _unavailable(binding: Any, code: int) -> UnavailableError:
    if code == _LIBRARY_NOT_FOUND:
        return UnavailableError(
            f"library {DEFAULT_LIBRARY} was not found",
            reason_code="library-missing",
            hint="install the driver's user libraries; in a container NVIDIA_DRIVER_CAPABILITIES must hold utility",
        )
    if code == _DRIVER_NOT_LOADED:
        return UnavailableError(
            "the library finds no loaded driver", reason_code="driver-not-loaded", hint="sudo modprobe nvidia"
        )
    if code == _MISMATCH:
        return UnavailableError(
            f"driver version mismatch: the library is {_library_version(binding)}",
            reason_code="driver-mismatch",
            hint="reload the nvidia kernel modules or reboot, so that both are of one release",
        )
    if code == _NO_PERMISSION:
        return UnavailableError("this user may not ask the driver", reason_code="no-permission")
    return UnavailableError(f"the library's start answered {code}", reason_code=f"nvml-{code}")


def _library_version(binding: Any) -> str:
    """Give the driver release a library belongs to: its version without the leading CUDA number (12.550.54 is 550.54)."""
    values = _Values(binding)
    version = values.take("version", "nvmlSystemGetNVMLVersion")
    return version.partition(".")[2] if isinstance(version, str) else "of unknown version"


class _Values:
    """Answers about one thing, and the return codes of what was refused."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding
        self._values: dict[str, Any] = {}
        self._codes: dict[str, int | str] = {}

    def take(self, name: str, function: str, *arguments: Any, convert: Callable[[Any], Any] | None = None) -> Any:
        """Ask one question and keep the answer or its return code; give the answer, None when there is none."""
        try:
            answer = getattr(self._binding, function)(*arguments)
            value = answer if convert is None else convert(answer)
        except self._binding.NVMLError as error:
            self._codes[name] = int(error.value)
            return None
        except AttributeError:
            self._codes[name] = f"the installed nvidia-ml-py has no {function}"
            return None
        except UnicodeDecodeError:
            self._codes[name] = "text that is not UTF-8"
            return None
        self._values[name] = value
        return value

    def refused(self, name: str) -> bool:
        """Whether a question was refused."""
        return name in self._codes

    def document(self) -> dict[str, Any]:
        """Give the answers, with `codes` when something was refused."""
        return {**self._values, **({"codes": self._codes} if self._codes else {})}


def _handles(binding: Any) -> list[tuple[Any, int]]:
    """Give a handle or a return code for every index, one lost card or a refused count notwithstanding."""
    try:
        count = binding.nvmlDeviceGetCount()
    except binding.NVMLError:
        found = (_handle(binding, index) for index in range(_MOST_DEVICES))
        return list(itertools.takewhile(lambda answer: answer[1] != _INVALID_ARGUMENT, found))
    return [_handle(binding, index) for index in range(count)]


def _handle(binding: Any, index: int) -> tuple[Any, int]:
    """Give the handle of a device, or its return code."""
    try:
        return binding.nvmlDeviceGetHandleByIndex(index), 0
    except binding.NVMLError as error:
        return None, int(error.value)


def _device(binding: Any, index: int, handle: Any, code: int) -> dict[str, Any]:
    if handle is None:
        return {"index": index, "code": code}
    values = _Values(binding)
    _take_identity(values, handle)
    _take_abilities(values, handle)
    _take_health(values, handle)
    return {
        "index": index,
        **values.document(),
        "partitions": _partitions(binding, handle),
        "nvlinks": _nvlinks(binding, handle),
        "fabric": _fabric(binding, handle),
    }


def _take_identity(values: _Values, handle: Any) -> None:
    values.take("name", "nvmlDeviceGetName", handle)
    values.take("uuid", "nvmlDeviceGetUUID", handle)
    values.take("minor", "nvmlDeviceGetMinorNumber", handle)
    values.take("pci_address", "nvmlDeviceGetPciInfo", handle, convert=_address)
    values.take("pci_id", "nvmlDeviceGetPciInfo", handle, convert=_pci_id)
    values.take("memory_bytes", "nvmlDeviceGetMemoryInfo", handle, convert=_memory_total)
    values.take(
        "memory_reserved_bytes", "nvmlDeviceGetMemoryInfo", handle, _MEMORY_V2, convert=lambda m: int(m.reserved)
    )
    values.take("numa_nodes", "nvmlDeviceGetMemoryAffinity", handle, _NODE_WORDS, 0, convert=_node_numbers)
    values.take("memory_numa_node", "nvmlDeviceGetNumaNodeId", handle)


def _take_abilities(values: _Values, handle: Any) -> None:
    values.take("compute_capability", "nvmlDeviceGetCudaComputeCapability", handle, convert=list)
    values.take("cores", "nvmlDeviceGetNumGpuCores", handle)
    values.take("sm_clock_mhz", "nvmlDeviceGetMaxClockInfo", handle, 1)
    values.take("compute_mode", "nvmlDeviceGetComputeMode", handle)
    values.take("display_active", "nvmlDeviceGetDisplayActive", handle)
    values.take("mig_mode", "nvmlDeviceGetMigMode", handle, convert=list)


def _take_health(values: _Values, handle: Any) -> None:
    values.take("ecc_mode", "nvmlDeviceGetEccMode", handle, convert=list)
    values.take("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", handle, 1, 0)
    values.take("ecc_uncorrected_lifetime", "nvmlDeviceGetTotalEccErrors", handle, 1, 1)
    values.take("remapped_rows", "nvmlDeviceGetRemappedRows", handle, convert=list)
    values.take("retired_pages", "nvmlDeviceGetRetiredPages", handle, 1, convert=len)
    values.take("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus", handle)
    values.take("processes", "nvmlDeviceGetComputeRunningProcesses", handle, convert=_pids)


def _address(info: Any) -> str:
    return _address_text(info) or ""


def _address_text(info: Any) -> str | None:
    bus_id = info.busId.decode("ascii", "replace") if isinstance(info.busId, bytes) else str(info.busId)
    return normal_address(bus_id)


def _pci_id(info: Any) -> str:
    """The number holds the device id in its upper and the vendor id in its lower half."""
    return f"{info.pciDeviceId & 0xFFFF:04x}:{info.pciDeviceId >> 16:04x}"


def _memory_total(info: Any) -> int:
    return int(info.total)


def _node_numbers(words: Any) -> list[int]:
    mask = sum(int(word) << (64 * position) for position, word in enumerate(words))
    return [node for node in range(mask.bit_length()) if mask >> node & 1]


def _pids(processes: Any) -> list[int]:
    return sorted(int(process.pid) for process in processes)


def _partitions(binding: Any, handle: Any) -> list[dict[str, Any]]:
    """Give the MIG devices of a card. Their numbers may have holes: a missing one says nothing about the next."""
    try:
        count = binding.nvmlDeviceGetMaxMigDeviceCount(handle)
    except binding.NVMLError:
        return []
    found = ((index, _partition_handle(binding, handle, index)) for index in range(count))
    return [_partition(binding, index, partition) for index, partition in found if partition is not None]


def _partition_handle(binding: Any, handle: Any, index: int) -> Any:
    try:
        return binding.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
    except binding.NVMLError:
        return None


def _partition(binding: Any, index: int, handle: Any) -> dict[str, Any]:
    values = _Values(binding)
    values.take("name", "nvmlDeviceGetName", handle)
    values.take("uuid", "nvmlDeviceGetUUID", handle)
    values.take("gpu_instance", "nvmlDeviceGetGpuInstanceId", handle)
    values.take("compute_instance", "nvmlDeviceGetComputeInstanceId", handle)
    values.take("memory_bytes", "nvmlDeviceGetMemoryInfo", handle, convert=_memory_total)
    values.take("multiprocessors", "nvmlDeviceGetAttributes", handle, convert=lambda a: int(a.multiprocessorCount))
    values.take("gpu_slices", "nvmlDeviceGetAttributes", handle, convert=lambda a: int(a.gpuInstanceSliceCount))
    values.take("compute_slices", "nvmlDeviceGetAttributes", handle, convert=lambda a: int(a.computeInstanceSliceCount))
    return {"index": index, **values.document()}


def _nvlinks(binding: Any, handle: Any) -> list[dict[str, Any]]:
    """Give the links in order. How many there are is found by asking until the library says that there is none."""
    links: list[dict[str, Any]] = []
    for link in range(binding.NVML_NVLINK_MAX_LINKS):
        values = _Values(binding)
        values.take("state", "nvmlDeviceGetNvLinkState", handle, link)
        if values.refused("state"):
            break
        values.take("version", "nvmlDeviceGetNvLinkVersion", handle, link)
        values.take("remote_type", "nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
        values.take("remote_address", "nvmlDeviceGetNvLinkRemotePciInfo", handle, link, convert=_address)
        values.take("speed_mbps", "nvmlDeviceGetFieldValues", handle, [(_FIELD_LINK_SPEED, link)], convert=_field)
        links.append({"link": link, **values.document()})
    return links


def _field(values: Any) -> int | None:
    """Give the value of one field; each carries a return code of its own."""
    field = values[0]
    return int(field.value.uiVal) if field.nvmlReturn == 0 else None


def _fabric(binding: Any, handle: Any) -> dict[str, Any]:
    values = _Values(binding)
    info_type = getattr(binding, "c_nvmlGpuFabricInfoV_t", None)
    if info_type is None:
        return {}
    info = info_type()
    values.take("read", "nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info), convert=lambda _: True)
    if values.refused("read"):
        return values.document()
    return {
        "cluster": bytes(info.clusterUuid).hex(),
        "status": int(info.status),
        "clique": int(info.cliqueId),
        "state": int(info.state),
        "health_mask": int(info.healthMask),
    }


def _pairs(binding: Any, handles: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for a, first in enumerate(handles):
        for b in range(a + 1, len(handles)):
            if first is not None and handles[b] is not None:
                values = _Values(binding)
                values.take("peer_read", "nvmlDeviceGetP2PStatus", first, handles[b], 0)
                yield {"a": a, "b": b, **values.document()}


def _sensors(binding: Any, handle: Any, code: int) -> dict[str, Any]:
    if handle is None:
        return {"code": code}
    values = _Values(binding)
    values.take("pci_address", "nvmlDeviceGetPciInfo", handle, convert=_address)
    values.take("uuid", "nvmlDeviceGetUUID", handle)
    values.take("power_milliwatts", "nvmlDeviceGetPowerUsage", handle)
    values.take("temperature_celsius", "nvmlDeviceGetTemperature", handle, 0)
    values.take("utilization_percent", "nvmlDeviceGetUtilizationRates", handle, convert=lambda u: int(u.gpu))
    values.take("memory_used_bytes", "nvmlDeviceGetMemoryInfo", handle, convert=lambda m: int(m.used))
    return values.document()
