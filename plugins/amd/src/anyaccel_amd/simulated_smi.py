"""What amdsmi would say of an imaginary machine: the document `_driver.collect_amdsmi` would make there."""

from __future__ import annotations

from typing import Any

from anyaccel_amd.simulated_plan import ImaginaryGpu, ImaginaryPartition, Plan

__all__ = ["smi_answer"]

Json = Any

_UNAVAILABLE = {
    "binding-missing": "amdsmi is not installed",
    "library-missing": "library missing: amdsmi is installed, libamd_smi.so cannot be loaded",
    "symbol-missing": "libamd_smi.so does not fit this amdsmi: undefined symbol: amdsmi_get_gpu_enumeration_info",
    "library-version": "wrong version: amdsmi 7.0.2 was made for library 26, found 25.4.0",
    "driver-not-loaded": "amdsmi_init failed: AMDSMI_STATUS_DRIVER_NOT_LOADED",
}
_NOT_SUPPORTED = "AMDSMI_STATUS_NOT_SUPPORTED"


def smi_answer(plan: Plan) -> Json:
    """Give the answer of the topic `amdsmi`."""
    for fault in ("hang", "crash"):
        if plan.faults_of(fault):
            return {"fault": fault}
    for code, reason in _UNAVAILABLE.items():
        if plan.faults_of(code) or plan.smi["smi"] == code:
            return {"unavailable": reason, "reason_code": code, "hint": None}
    driven = [gpu for gpu in plan.gpus if gpu.driver == "amdgpu"]
    if not driven:
        reason = _UNAVAILABLE["driver-not-loaded"]
        return {"unavailable": reason, "reason_code": "driver-not-loaded", "hint": None}
    alive = [gpu for gpu in driven if not gpu.is_dead]
    order = {
        part.kfd_node: n for n, part in enumerate(p for g in driven for p in g.partitions if p.kfd_node is not None)
    }
    return {
        "library_version": plan.smi["library_version"],
        "binding_version": plan.smi["binding_version"],
        "processors": [_processor(gpu, part, order, plan) for gpu in alive for part in gpu.partitions],
        "links": _links([gpu for gpu in alive if gpu.partitions and gpu.partitions[0].number == 0], plan),
    }


def _processor(
    gpu: ImaginaryGpu, part: ImaginaryPartition, order: dict[int | None, int], plan: Plan
) -> dict[str, Json]:
    is_divided = gpu.part_count > 1
    problems = {} if gpu.model.dies > 1 else {"compute_partition": _NOT_SUPPORTED, "memory_partition": _NOT_SUPPORTED}
    if not gpu.model.ras_blocks:
        problems["errors_counted"] = _NOT_SUPPORTED
    links = _xgmi_links(gpu, part, plan)
    if links is None:
        problems["xgmi_links"] = _NOT_SUPPORTED
    hip = order.get(part.kfd_node)
    return {
        "address": f"{gpu.address[:-1]}{part.number}" if is_divided else gpu.address,
        "kfd_node": part.kfd_node,
        "partition_id": part.number if is_divided else 0,
        "render": part.render,
        "card": gpu.card_number if part is gpu.partitions[0] else None,
        "hsa_id": None if part.kfd_node is None else part.kfd_node,
        "hip_id": hip,
        "hip_uuid": f"GPU-{gpu.unique_id:016x}" if gpu.unique_id else "GPU-XX",
        "market_name": gpu.model.market_name,
        "driver_version": plan.driver_version or "Linuxversion6.8.0-simulated",
        "vram_bytes": gpu.vram_bytes,
        "compute_partition": gpu.compute_partition if gpu.model.dies > 1 else None,
        "memory_partition": gpu.memory_partition if gpu.model.dies > 1 else None,
        "errors_counted": _errors(gpu),
        "process_count": 0,
        "xgmi_links": links,
        "problems": dict(sorted(problems.items())),
    }


def _errors(gpu: ImaginaryGpu) -> dict[str, int] | None:
    if not gpu.model.ras_blocks:
        return None
    rows = [line.split(": ") for text in gpu.error_texts.values() for line in text.splitlines() if ": " in line]
    total = {word: sum(int(count) for name, count in rows if name == word) for word in ("ue", "ce")}
    return {"corrected": total["ce"], "uncorrected": total["ue"]}


def _xgmi_links(gpu: ImaginaryGpu, part: ImaginaryPartition, plan: Plan) -> list[dict[str, Json]] | None:
    if not gpu.model.xgmi_mbs or part.number:
        return None
    type_number = _type_number(plan, "xgmi", call="metrics")
    rows = []
    for link in plan.links:
        if gpu.address in (link.a, link.b) and link.hops == 1:
            other = link.b if link.a == gpu.address else link.a
            row = {"address": other, "type": type_number, "max_gbits": gpu.model.xgmi_mbs * 8 // 1000}
            rows.extend([row] * link.count)
    return rows


def _type_number(plan: Plan, kind: str, *, call: str) -> int:
    """Give the number that the library of this version uses for a kind of link."""
    is_old = int(plan.smi["library_version"].partition(".")[0]) < 26
    xgmi, pcie = (1, 2) if is_old and call == "metrics" else (2, 1)
    return xgmi if kind == "xgmi" else pcie


def _links(gpus: list[ImaginaryGpu], plan: Plan) -> list[dict[str, Json]]:
    rows = []
    for place, a in enumerate(gpus):
        for b in gpus[place + 1 :]:
            link = plan.link_between(a.address, b.address)
            kind = "pcie" if link is None else link.kind
            is_near = a.card.numa_node == b.card.numa_node
            hops, weight = (1, 15 * link.hops) if link is not None else ((2, 40) if is_near else (3, 72))
            number = _type_number(plan, kind, call="topology")
            rows.append({"a": a.address, "b": b.address, "type": number, "hops": hops, "weight": weight})
    return rows
