"""Imaginary machines of this family: PCI functions, KFD tree, DRM entries, device files and amdsmi's answer, from one source."""

from __future__ import annotations

from anyaccel.errors import RecordingError
from anyaccel.files import NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine_description import MachineDescription, SimulatedFamily, SimulatedFunction
from anyaccel.pci import normal_address
from anyaccel_amd.simulated_kfd import kfd_files
from anyaccel_amd.simulated_plan import ImaginaryGpu, Plan, plan_machine
from anyaccel_amd.simulated_smi import smi_answer

__all__ = ["simulate_family"]

_SENSOR_TEXTS = {
    "gpu_busy_percent": "0",
    "mem_info_vram_used": "11579392",
    "hwmon/hwmon4/power1_average": "41000000",
    "hwmon/hwmon4/temp1_label": "edge",
    "hwmon/hwmon4/temp1_input": "31000",
    "hwmon/hwmon4/temp2_label": "junction",
    "hwmon/hwmon4/temp2_input": "34000",
    "hwmon/hwmon4/temp3_label": "mem",
    "hwmon/hwmon4/temp3_input": "29000",
    "hwmon/hwmon4/freq1_label": "sclk",
    "hwmon/hwmon4/freq1_input": "132000000",
}
"""An idle GPU, as the driver shows it."""

_DRM_MAJOR = 226
_KFD_MAJOR = 511


def simulate_family(description: MachineDescription) -> SimulatedFamily:
    """Make this family's part of an imaginary machine.

    Raises: RecordingError for a model, option or fault it does not know.
    """
    plan = plan_machine(description)
    files, denied = kfd_files(plan, description.host)
    files |= _module_files(plan)
    files |= {path: text for gpu in plan.gpus for path, text in _partition_files(gpu).items()}
    nodes = {**_device_nodes(plan), **{path: NodeFact(mode=0, owner="0", group="root") for path in denied}}
    for path in denied:
        files.pop(path, None)
    return SimulatedFamily(
        functions=tuple(_function(gpu, plan) for gpu in plan.gpus),
        files=FrozenMap(files),
        links=FrozenMap(_class_links(plan)),
        nodes=FrozenMap(nodes),
        answers=FrozenMap({"amdsmi": smi_answer(plan)}),
    )


def _module_files(plan: Plan) -> dict[str, str]:
    if not plan.is_driver_loaded:
        return {}
    if plan.driver_version is None:
        return {"/sys/module/amdgpu/srcversion": "533BB7E5866E52F63B9ACCB\n"}
    return {"/sys/module/amdgpu/version": f"{plan.driver_version}\n"}


def _function(gpu: ImaginaryGpu, plan: Plan) -> SimulatedFunction:
    card, model = gpu.card, gpu.model
    address = normal_address(card.address or "")
    if address is None:
        raise RecordingError(f"amd card {card.model!r} needs a PCI address")
    return SimulatedFunction(
        address=address,
        vendor_id=0x1002,
        device_id=model.device_id,
        class_code=model.class_code,
        parent=card.parent,
        numa_node=card.numa_node,
        driver=gpu.driver,
        subsystem_vendor_id=0x1002,
        subsystem_id=0x0B0C,
        speed_gts=model.speed_gts,
        width=model.width,
        max_speed_gts=model.speed_gts,
        max_width=model.width,
        files=FrozenMap(_function_texts(gpu, plan) if gpu.driver == "amdgpu" else {}),
        links=FrozenMap({f"drm/card{gpu.card_number}/device": "../.."} if gpu.driver == "amdgpu" else {}),
    )


def _function_texts(gpu: ImaginaryGpu, plan: Plan) -> dict[str, str]:
    texts = {
        **_SENSOR_TEXTS,
        "mem_info_vram_total": str(gpu.vram_bytes),
        "mem_info_gtt_total": str(plan.gtt_bytes),
        "vbios_version": "113-SIMULATED-001",
        "product_name": gpu.product_name,
        "power/runtime_status": "suspended" if gpu.is_suspended else "active",
        f"drm/card{gpu.card_number}/dev": f"{_DRM_MAJOR}:{gpu.card_number}",
        f"drm/renderD{gpu.partitions[0].render}/dev": f"{_DRM_MAJOR}:{gpu.partitions[0].render}",
    }
    if gpu.unique_id:
        texts["unique_id"] = f"{gpu.unique_id:016x}"
    if gpu.model.dies > 1:
        texts["current_compute_partition"] = gpu.compute_partition
        texts["available_compute_partition"] = "SPX, DPX, QPX, CPX"
        texts["current_memory_partition"] = gpu.memory_partition
    if gpu.hive_id:
        texts["xgmi_hive_info/xgmi_hive_id"] = str(gpu.hive_id)
        texts["xgmi_num_hops"] = " ".join(f"{hops:02x}" for hops in plan.hops_of(gpu))
    texts |= {f"ras/{block}_err_count": text for block, text in gpu.error_texts.items()}
    return texts


def _partition_files(gpu: ImaginaryGpu) -> dict[str, str]:
    """Give the platform devices of partitions beyond the first, as new kernels name them; older ones write `amdgpu_xcp.<n>`."""
    if gpu.driver != "amdgpu":
        return {}
    return {
        f"/sys/devices/platform/amdgpu_xcp_{part.platform_number}/drm/renderD{part.render}/dev": f"{_DRM_MAJOR}:{part.render}\n"
        for part in gpu.partitions[1:]
    }


def _class_links(plan: Plan) -> dict[str, str]:
    links = {}
    for gpu in plan.gpus:
        if gpu.driver != "amdgpu":
            continue
        folder = f"/sys/bus/pci/devices/{normal_address(gpu.card.address or '')}/drm"
        links[f"/sys/class/drm/card{gpu.card_number}"] = f"{folder}/card{gpu.card_number}"
        links[f"/sys/class/drm/renderD{gpu.partitions[0].render}"] = f"{folder}/renderD{gpu.partitions[0].render}"
        for part in gpu.partitions[1:]:
            home = f"/sys/devices/platform/amdgpu_xcp_{part.platform_number}/drm/renderD{part.render}"
            links[f"/sys/class/drm/renderD{part.render}"] = home
    return links


def _device_nodes(plan: Plan) -> dict[str, NodeFact]:
    if not plan.is_driver_loaded:
        return {}
    nodes = {"/dev/kfd": NodeFact(plan.node_mode, "0", plan.node_group, _KFD_MAJOR, 0)}
    for gpu in plan.gpus:
        if gpu.driver != "amdgpu":
            continue
        if gpu.is_granted:
            nodes[f"/dev/dri/card{gpu.card_number}"] = NodeFact(0o660, "0", "video", _DRM_MAJOR, gpu.card_number)
        for part in gpu.partitions:
            if part.is_granted:
                path = f"/dev/dri/renderD{part.render}"
                nodes[path] = NodeFact(plan.node_mode, "0", plan.node_group, _DRM_MAJOR, part.render)
    return nodes
