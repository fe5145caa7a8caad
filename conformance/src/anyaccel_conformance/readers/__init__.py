"""Readers of what other tools print or store: small pure parsers giving plain frozen values.

They are the independent side of every comparison, so none of them looks at anything of anyaccel but its address form.
"""

from __future__ import annotations

from anyaccel_conformance.readers.foreign import ForeignFormatError, parse_xml, read_document, read_text_document
from anyaccel_conformance.readers.hwloc_console import parse_hwloc_console
from anyaccel_conformance.readers.hwloc_xml import parse_hwloc_xml, write_hwloc_xml
from anyaccel_conformance.readers.lspci import parse_lspci
from anyaccel_conformance.readers.nccl_xml import parse_nccl_xml, write_nccl_xml
from anyaccel_conformance.readers.nvidia_nvlink import parse_nvlink_status
from anyaccel_conformance.readers.nvidia_smi_xml import parse_nvidia_smi_xml
from anyaccel_conformance.readers.nvidia_topo import parse_topo_matrix, write_topo_matrix
from anyaccel_conformance.readers.rocm_json import parse_rocm_json
from anyaccel_conformance.readers.rocm_topo import parse_rocm_topology, write_rocm_topology
from anyaccel_conformance.readers.udev_db import parse_udev_db

__all__ = [
    "ForeignFormatError",
    "parse_hwloc_console",
    "parse_hwloc_xml",
    "parse_lspci",
    "parse_nccl_xml",
    "parse_nvidia_smi_xml",
    "parse_nvlink_status",
    "parse_rocm_json",
    "parse_rocm_topology",
    "parse_topo_matrix",
    "parse_udev_db",
    "parse_xml",
    "read_document",
    "read_text_document",
    "write_hwloc_xml",
    "write_nccl_xml",
    "write_rocm_topology",
    "write_topo_matrix",
]
