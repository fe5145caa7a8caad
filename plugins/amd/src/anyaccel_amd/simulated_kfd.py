"""The KFD tree of an imaginary machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from anyaccel.cpus import parse_cpu_list
from anyaccel.machine_description import HostDescription
from anyaccel.pci import address_key
from anyaccel_amd.simulated_plan import ImaginaryGpu, ImaginaryPartition, Plan

__all__ = ["kfd_files"]

_ROOT = "/sys/class/kfd/kfd/topology"
_XGMI, _PCIE, _HYPERTRANSPORT = 11, 2, 1
_HOP, _INSIDE, _TO_CPU = 15, 13, 20
_PEER_NEAR, _PEER_FAR = 40, 72
_PARTITION_EXTRA = 2 * _INSIDE
"""A way between partitions of two GPUs weighs one hop and two ways inside a package: 15 + 13 + 13 = 41."""


@dataclass(frozen=True)
class _Way:
    """One link's properties; bandwidth in MB/s of one link and of all together, 0 = unknown."""

    type: int
    weight: int
    one_mbs: int = 0
    all_mbs: int = 0


@dataclass(frozen=True)
class _Member:
    """One KFD node of a GPU."""

    gpu: ImaginaryGpu
    part: ImaginaryPartition
    node: int


def kfd_files(plan: Plan, host: HostDescription) -> tuple[dict[str, str], tuple[str, ...]]:
    """Give the files of the KFD tree, and those of them that this container may not read."""
    if not plan.has_kfd or not plan.is_driver_loaded:
        return {}, ()
    members = [_Member(g, p, p.kfd_node) for g in plan.gpus for p in g.partitions if p.kfd_node is not None]
    files = {
        f"{_ROOT}/generation_id": "2\n",
        f"{_ROOT}/system_properties": "platform_oem 0\nplatform_id 0\nplatform_rev 2\n",
    }
    for number, cpus in enumerate(host.numa_cpus):
        files |= _cpu_node(number, len(parse_cpu_list(cpus)), host, members, plan)
    denied: list[str] = []
    for member in members:
        texts = _gpu_node(member, members, plan)
        files |= texts
        if not member.part.is_granted:
            denied.extend(path for path in texts if path.count("/") == 8)
    return files, tuple(denied)


def _cpu_node(number: int, cores: int, host: HostDescription, members: list[_Member], plan: Plan) -> dict[str, str]:
    memory = host.numa_memory_bytes[number] if number < len(host.numa_memory_bytes) else 0
    near = [member for member in members if _cpu_of(member.gpu, plan) == number]
    links = [_link(number, m.node, _Way(_PCIE, _TO_CPU, 0, m.gpu.model.pcie_mbs)) for m in near]
    links += [_link(number, other, _Way(_HYPERTRANSPORT, 32)) for other in range(plan.cpu_nodes) if other != number]
    return _node(
        number,
        gpu_id=0,
        properties={"cpu_cores_count": cores, "simd_count": 0, "mem_banks_count": 1, "location_id": 0, "domain": 0},
        bank=(0, memory),
        links={"io_links": links, "p2p_links": []},
    )


def _gpu_node(member: _Member, members: list[_Member], plan: Plan) -> dict[str, str]:
    gpu, model, parts = member.gpu, member.gpu.model, member.gpu.part_count
    dies = model.dies // parts
    simds = model.simds_per_die * dies
    domain, bus, device, function = address_key(gpu.address)
    low = member.part.number if parts > 1 else function
    properties = {
        "cpu_cores_count": 0,
        "simd_count": simds,
        "mem_banks_count": 1,
        "simd_per_cu": model.simds_per_unit,
        "wave_front_size": model.wave_front_size,
        "gfx_target_version": model.target_version,
        "vendor_id": 0x1002,
        "device_id": model.device_id,
        "location_id": bus << 8 | device << 3 | low,
        "domain": domain,
        "drm_render_minor": member.part.render,
        "hive_id": gpu.hive_id,
        "local_mem_size": 0,
        "unique_id": gpu.unique_id,
        "num_xcc": dies,
    }
    memory = plan.host_memory_bytes // 2 if model.is_integrated else gpu.vram_bytes // parts
    io_links = [_link(member.node, _cpu_of(gpu, plan), _Way(_PCIE, _TO_CPU, 0, model.pcie_mbs))]
    io_links += [link for other in members for link in _xgmi(member, other, plan)]
    p2p_links = [link for other in members for link in _peer(member, other, plan)]
    links = {"io_links": io_links, "p2p_links": p2p_links}
    return _node(member.node, 1000 + member.node * 37, properties, (1, memory), links)


def _cpu_of(gpu: ImaginaryGpu, plan: Plan) -> int:
    numa = gpu.card.numa_node
    return numa if numa is not None and 0 <= numa < plan.cpu_nodes else 0


def _xgmi(a: _Member, b: _Member, plan: Plan) -> Iterable[str]:
    if a.node == b.node:
        return
    model = a.gpu.model
    if a.gpu is b.gpu:
        yield _link(a.node, b.node, _Way(_XGMI, _INSIDE, model.inside_mbs, model.inside_mbs))
        return
    link = plan.link_between(a.gpu.address, b.gpu.address)
    if link is None or link.kind != "xgmi":
        return
    is_divided = a.gpu.part_count > 1 or b.gpu.part_count > 1
    weight = _HOP * link.hops + (_PARTITION_EXTRA if is_divided else 0)
    is_told = link.hops == 1 and not is_divided
    one = model.xgmi_mbs if is_told else 0
    yield _link(a.node, b.node, _Way(_XGMI, weight, one, one * link.count))


def _peer(a: _Member, b: _Member, plan: Plan) -> Iterable[str]:
    """Give the PCIe way between two GPUs that no xGMI link joins; integrated parts have none."""
    if a.gpu is b.gpu or plan.link_between(a.gpu.address, b.gpu.address) is not None:
        return
    if a.gpu.model.is_integrated or b.gpu.model.is_integrated:
        return
    weight = _PEER_NEAR if _cpu_of(a.gpu, plan) == _cpu_of(b.gpu, plan) else _PEER_FAR
    speed = min(a.gpu.model.pcie_mbs, b.gpu.model.pcie_mbs)
    yield _link(a.node, b.node, _Way(_PCIE, weight, speed, speed))


def _link(a: int, b: int, way: _Way) -> str:
    fields = {
        "type": way.type,
        "version_major": 0,
        "version_minor": 0,
        "node_from": a,
        "node_to": b,
        "weight": way.weight,
        "min_latency": 0,
        "max_latency": 0,
        "min_bandwidth": way.one_mbs,
        "max_bandwidth": way.all_mbs,
        "recommended_transfer_size": 0,
        "flags": 1,
    }
    return _text(fields)


def _node(
    number: int, gpu_id: int, properties: dict[str, int], bank: tuple[int, int], links: dict[str, list[str]]
) -> dict[str, str]:
    folder = f"{_ROOT}/nodes/{number}"
    counts = {f"{name}_count": len(texts) for name, texts in links.items()}
    files = {
        f"{folder}/gpu_id": f"{gpu_id}\n",
        f"{folder}/name": "\n",
        f"{folder}/properties": _text({**properties, **counts}),
        f"{folder}/mem_banks/0/properties": _text({"heap_type": bank[0], "size_in_bytes": bank[1], "flags": 0}),
    }
    for name, texts in links.items():
        files |= {f"{folder}/{name}/{place}/properties": text for place, text in enumerate(texts)}
    return files


def _text(fields: dict[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in fields.items())
