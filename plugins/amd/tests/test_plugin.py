"""The plugin as a whole: its declaration, and what importing it does not do."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from anyaccel.capabilities import Capability, SupportState, VariableScope, VariableUse
from anyaccel.files import MemoryTree
from anyaccel.machine import Machine
from anyaccel_amd.pci_names import NAMES, TARGETS, product_name
from anyaccel_amd.presence import has_any_sign
from anyaccel_amd.targets import target_name


def test_every_capability_is_declared(plugin):
    """Nothing is left unsaid, and what is refused has a reason."""
    declared = plugin.declaration.capabilities

    assert set(declared) == {capability.value for capability in Capability}
    assert all(s.reason for s in declared.values() if s.state is not SupportState.SUPPORTED)


@pytest.mark.parametrize(
    ("capability", "hook"),
    [
        (Capability.INSPECT, "accel_inspect_devices"),
        (Capability.LINKS, "accel_describe_topology"),
        (Capability.VISIBILITY, "accel_visibility_environment"),
        (Capability.SIMULATE, "accel_simulate"),
    ],
)
def test_what_is_supported_is_implemented(capability, hook, plugin):
    """A declared capability has its hook."""
    assert plugin.declaration.supports(capability)
    assert plugin.implements(hook)


def test_one_layered_variable_is_written_and_the_others_are_cleared(plugin):
    """HIP's variable carries numbers; a mask of another layer is removed or it would be counted through."""
    uses = {variable.name: variable.uses for variable in plugin.declaration.variables}

    assert VariableUse.WRITES in uses["HIP_VISIBLE_DEVICES"]
    cleared = {name for name, what in uses.items() if VariableUse.CLEARS in what}
    assert cleared == {"ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}


def test_the_container_s_variable_is_declared_as_such(plugin):
    """AMD_VISIBLE_DEVICES is read at the start of a container only."""
    scopes = {variable.name: variable.scope for variable in plugin.declaration.variables}

    assert [name for name, scope in scopes.items() if scope is VariableScope.CONTAINER] == ["AMD_VISIBLE_DEVICES"]


def test_resources_have_the_names_of_schedulers(plugin):
    """`gpu` is `amd.com/gpu` in Kubernetes and `GPU` in Ray; partitions are named by profile."""
    gpu, partition = plugin.declaration.resources

    assert (gpu.kind, gpu.kubernetes, gpu.ray) == ("gpu", "amd.com/gpu", "GPU")
    assert (partition.kind, partition.kubernetes) == ("gpu-partition", "amd.com/{profile}")


def test_installed_plugin_is_found_by_its_entry_point():
    """Installing the distribution is enough."""
    (point,) = (found for found in entry_points(group="anyaccel.plugins") if found.name == "amd")

    assert point.value == "anyaccel_amd.plugin"


def test_importing_the_plugin_loads_no_binding():
    """Importing it, and its driver module, imports neither amdsmi nor any library."""
    code = (
        "import sys, anyaccel_amd.plugin, anyaccel_amd._driver; print('amdsmi' in sys.modules, 'ctypes' in sys.modules)"
    )

    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15, check=True)

    assert child.stdout == "False False\n"


@pytest.mark.parametrize(
    ("files", "is_sign"),
    [
        ({}, False),
        ({"/sys/bus/pci/devices/0000:03:00.0/vendor": b"0x8086\n"}, False),
        ({"/sys/class/kfd/kfd/topology/nodes/0/gpu_id": b"0\n"}, True),
        ({"/sys/class/drm/card0/device/uevent": b"PCI_ID=1002:67DF\n"}, True),
        (
            {
                "/sys/bus/pci/devices/0000:03:00.0/vendor": b"0x1002\n",
                "/sys/bus/pci/devices/0000:03:00.0/class": b"0x030000\n",
            },
            True,
        ),
    ],
)
def test_any_one_source_is_a_sign(files, is_sign):
    """The first look passes over a machine only when PCI, KFD and DRM are all silent."""
    assert has_any_sign(Machine(MemoryTree(files=files))) is is_sign


def test_a_machine_without_a_sign_loads_no_more():
    """Discovery of a machine without AMD GPUs imports none of the modules that read them."""
    code = (
        "import sys; from anyaccel.files import MemoryTree; from anyaccel.machine import Machine; "
        "from anyaccel_amd.plugin import accel_discover_devices as find; find(machine=Machine(MemoryTree())); "
        "print([name for name in ('devices', 'kfd', 'masks', 'simulate') if f'anyaccel_amd.{name}' in sys.modules])"
    )

    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15, check=True)

    assert child.stdout == "[]\n"


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (90402, "gfx942"),
        (90010, "gfx90a"),
        (90500, "gfx950"),
        (110000, "gfx1100"),
        (110501, "gfx1151"),
        (100306, "gfx1036"),
    ],
)
def test_target_numbers_become_names(number, name):
    """Major, minor and stepping in decimal, the last two written in hexadecimal."""
    assert target_name(number) == name


@pytest.mark.parametrize("number", [None, 0])
def test_no_target_has_no_name(number):
    """A node without a target tells none."""
    assert target_name(number) is None


def test_names_and_targets_are_of_this_vendor_s_ids():
    """Every id with a target has a name, and ids are 16-bit numbers."""
    assert set(TARGETS) <= set(NAMES)
    assert all(0 < device_id < 0xFFFF for device_id in NAMES)


def test_an_id_without_name_gives_none():
    """The table never guesses."""
    assert product_name(0x7FFF) is None
    assert product_name(None) is None
