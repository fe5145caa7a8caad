"""An inventory's topology in the forms people and other programs know: matrix, tree, Graphviz, hwloc XML. Pure functions."""

from __future__ import annotations

from anyaccel_cli.formats.connections import Connections, MatrixCell, nearest_nics
from anyaccel_cli.formats.dot import dot_text
from anyaccel_cli.formats.hwloc_xml import hwloc_xml_text
from anyaccel_cli.formats.matrix import MOST_DEVICES, Matrix, MatrixTable, matrix_table, topology_matrix
from anyaccel_cli.formats.tree import tree_lines
from anyaccel_cli.formats.words import default_devices, device_names

__all__ = [
    "MOST_DEVICES",
    "Connections",
    "Matrix",
    "MatrixCell",
    "MatrixTable",
    "default_devices",
    "device_names",
    "dot_text",
    "hwloc_xml_text",
    "matrix_table",
    "nearest_nics",
    "topology_matrix",
    "tree_lines",
]
