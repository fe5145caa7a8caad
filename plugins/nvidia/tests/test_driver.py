"""The real binding (nvidia-ml-py) on a stub library, against what the simulation says the library would answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MACHINES = sorted(p.stem for p in (Path(__file__).parents[1] / "src" / "anyaccel_nvidia" / "machines").glob("*.toml"))
WITHOUT_LIBRARY = {"nvidia-library-hangs", "nvidia-library-crashes", "nvidia-library-missing"}
ANSWERING = [name for name in MACHINES if name not in {*WITHOUT_LIBRARY, "nvidia-driver-mismatch", "nvidia-wsl"}]

ONE_CARD = """
[[card]]
plugin = "nvidia"
model = "h100-sxm5-80gb"
address = "0000:1b:00.0"
"""


@pytest.fixture
def answers_of(machine_of):
    """Give the simulated answers of a machine by topic."""
    return lambda description: machine_of(description).answers["nvidia"].documents


@pytest.mark.parametrize("name", [*ANSWERING, "nvidia-driver-mismatch"])
def test_simulation_and_binding_give_one_answer(name, answers_of, shipped, ask_stub, stub_text):
    """For every shipped machine the real binding on the stub collects exactly what the simulation answers."""
    answer = answers_of(shipped(name))["nvml"]

    collected = ask_stub(stub_text(answer))

    assert collected == answer


@pytest.mark.parametrize("name", ANSWERING)
def test_metrics_of_simulation_and_binding_agree(name, answers_of, shipped, ask_stub, stub_text):
    """Sensors read through the real binding equal the simulated ones."""
    answers = answers_of(shipped(name))

    collected = ask_stub(stub_text(answers["nvml"], answers["nvml-metrics"]), call="_driver.collect_metrics(())")

    assert collected == answers["nvml-metrics"]


def test_second_library_serves_where_the_first_finds_no_driver(answers_of, shipped, ask_stub, stub_text, build_stub):
    """WSL: the distribution's library answers 9, the host's works; both are named."""
    answer = answers_of(shipped("nvidia-wsl"))["nvml"]
    working = str(build_stub() / "libnvidia-ml.so.1")

    collected = ask_stub(stub_text(answer), "-DSTUB_NO_DRIVER", call=f"_driver.collect_nvml(({working!r},))")

    assert collected["library"].pop("name") == working
    assert answer["library"].pop("name") == "/usr/lib/wsl/lib/libnvidia-ml.so.1"
    assert collected == answer


def test_missing_symbols_cost_single_values(answers_of, ask_stub, stub_text):
    """An old library without three functions answers 13 for them and everything else."""
    fault = '[[fault]]\nkind = "symbol-missing"\nplugin = "nvidia"\nvalues = ["cores", "memory_numa_node"]\n'
    answer = answers_of(ONE_CARD + fault)["nvml"]

    collected = ask_stub(stub_text(answer), "-DSTUB_OLD")

    assert collected["devices"][0].pop("fabric") == {"codes": {"read": 13}}
    assert answer["devices"][0].pop("fabric")["state"] == 3
    assert collected["devices"][0]["codes"]["cores"] == 13
    assert collected == answer


@pytest.mark.parametrize(
    ("fault", "code"), [("lost-card", 15), ("reset-required", 16), ("no-permission", 4), ("vanished", 6)]
)
def test_refused_handles_keep_their_code(fault, code, answers_of, ask_stub, stub_text):
    """A device whose handle is refused stays in the list with its index and code; the others answer."""
    second = ONE_CARD.replace("1b", "43")
    where = 'path = "/dev/nvidia1"' if fault == "no-permission" else 'card = "0000:43:00.0"\nplugin = "nvidia"'
    answer = answers_of(f'{ONE_CARD}{second}[[fault]]\nkind = "{fault}"\n{where}\n')["nvml"]

    collected = ask_stub(stub_text(answer))

    assert collected == answer
    assert collected["devices"][-1]["code"] == code
    assert collected["devices"][0]["name"] == "NVIDIA H100 80GB HBM3"


def test_holes_in_partition_numbers_lose_no_partition(answers_of, shipped, ask_stub, stub_text):
    """MIG devices at 1, 3 and 5 are all found, although 0, 2 and 4 answer "not found"."""
    answer = answers_of(shipped("nvidia-a100x4-mig"))["nvml"]

    collected = ask_stub(stub_text(answer))

    assert [partition["index"] for partition in collected["devices"][1]["partitions"]] == [1, 3, 5]


def test_unsupported_memory_is_a_code(answers_of, shipped, ask_stub, stub_text):
    """A board with unified memory answers "not supported" for memory and is listed all the same."""
    answer = answers_of(shipped("nvidia-gb10"))["nvml"]

    collected = ask_stub(stub_text(answer))

    assert collected["devices"][0]["codes"]["memory_bytes"] == 3
    assert "memory_bytes" not in collected["devices"][0]


def test_cluster_id_keeps_its_zero_bytes(answers_of, ask_stub, stub_text):
    """An id of 16 bytes with zeros in the middle arrives whole."""
    cluster = "130961397ada8313ee08000dd8540fe1"
    answer = answers_of(f'{ONE_CARD}fabric_cluster = "{cluster}"\n')["nvml"]

    collected = ask_stub(stub_text(answer))

    assert collected["devices"][0]["fabric"]["cluster"] == cluster


@pytest.mark.parametrize("node", [0, 63, 64, 70])
def test_any_memory_node_is_found_in_the_mask(node, answers_of, ask_stub, stub_text):
    """The node that the driver names is read from whichever word of the mask holds it."""
    answer = answers_of(f"{ONE_CARD}driver_numa_node = {node}\n")["nvml"]

    assert ask_stub(stub_text(answer))["devices"][0]["numa_nodes"] == [node]


def test_refused_count_still_lists_the_cards(answers_of, shipped, ask_stub, stub_text):
    """When even the count is refused because a card is lost, every index is tried on its own."""
    answer = answers_of(shipped("nvidia-h100x8-one-lost"))["nvml"]
    text = stub_text(answer).replace("count=8\n", "count=!15\n")

    collected = ask_stub(text)

    assert collected == answer


def test_text_that_is_no_text_costs_one_value(answers_of, ask_stub, stub_text, tmp_path, build_stub):
    """A product name of undecodable bytes is refused with words, not raised."""
    text = stub_text(answers_of(ONE_CARD)["nvml"]).replace("NVIDIA H100 80GB HBM3", "NVIDIA \udcff\udcfe")
    file = tmp_path / "odd.txt"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))

    collected = ask_stub(text.encode("ascii", "replace").decode(), environ={"NVML_STUB_FILE": str(file)})

    assert collected["devices"][0]["codes"]["name"] == "text that is not UTF-8"


@pytest.mark.parametrize(("code", "reason_code"), [(9, "driver-not-loaded"), (4, "no-permission"), (999, "nvml-999")])
def test_failed_start_has_a_reason_code(code, reason_code, ask_stub):
    """What the library answers at its start becomes a stable reason code."""
    collected = ask_stub(f"init={code}\n")

    assert collected["reason_code"] == reason_code


def test_absent_library_is_a_reason(tmp_path):
    """Without any library the binding's 12 becomes `library-missing`, with a hint."""
    collected = _collect_with({"LD_LIBRARY_PATH": str(tmp_path)})

    assert "library-missing" in collected
    assert "NVIDIA_DRIVER_CAPABILITIES" in collected


def test_hanging_library_hangs_only_its_own_process(ask_stub):
    """A start that never returns is ended from outside, by the deadline of whoever asked."""
    with pytest.raises(subprocess.TimeoutExpired):
        ask_stub("action=hang\n", timeout_seconds=2)


def test_crashing_library_ends_its_process(ask_stub):
    """A start that aborts ends the child with a signal."""
    with pytest.raises(AssertionError, match="-6"):
        ask_stub("action=crash\n")


def test_wrong_binding_names_file_and_owner(tmp_path):
    """An old fork under the binding's name is reported with path, distribution and fix."""
    package = tmp_path / "pynvml"
    package.mkdir()
    (package / "__init__.py").write_text("class NVMLError(Exception): pass\ndef nvmlInit(): pass\n")
    info = tmp_path / "oldfork-8.0.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: oldfork\nVersion: 8.0.4\n")
    (info / "RECORD").write_text("pynvml/__init__.py,,\n")

    collected = _collect_with({"PYTHONPATH": str(tmp_path)})

    assert "wrong-binding" in collected
    assert f"wrong binding module found: {package / '__init__.py'} of distribution oldfork 8.0.4" in collected
    assert "--force-reinstall nvidia-ml-py" in collected


def test_missing_binding_is_a_reason(tmp_path):
    """Where the binding cannot be imported the reason says so and the hint installs it."""
    (tmp_path / "pynvml.py").write_text("raise ImportError('broken on purpose')\n")

    collected = _collect_with({"PYTHONPATH": str(tmp_path)})

    assert "binding-missing" in collected
    assert "broken on purpose" in collected


def _collect_with(environ):
    code = (
        "from anyaccel.machine import LiveAnswers; from anyaccel_nvidia import _driver; "
        "print(LiveAnswers()._collect(lambda: _driver.collect_nvml(())))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=15,
        check=True,
    )
    return child.stdout


def test_importing_the_plugin_loads_no_binding():
    """Importing the plugin module imports neither the binding nor any library."""
    code = "import sys, anyaccel_nvidia.plugin; print('pynvml' in sys.modules)"

    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15, check=True)

    assert child.stdout == "False\n"


def test_structures_have_the_sizes_of_the_header():
    """The binding's structures agree with nvml.h (NVIDIA/go-nvml, gen/nvml/nvml.h), which the stub asserts in C."""
    import ctypes

    import pynvml

    sizes = {
        pynvml.nvmlPciInfo_t: 68,
        pynvml.c_nvmlMemory_t: 24,
        pynvml.c_nvmlMemory_v2_t: 40,
        pynvml.c_nvmlUtilization_t: 8,
        pynvml.c_nvmlProcessInfo_v3_t: 24,
        pynvml.c_nvmlDeviceAttributes: 40,
        pynvml.c_nvmlFieldValue_t: 40,
        pynvml.c_nvmlGpuFabricInfo_v2_t: 36,
    }

    assert {structure: ctypes.sizeof(structure) for structure in sizes} == sizes
    assert pynvml.nvmlMemory_v2 == 40 | 2 << 24
    assert pynvml.nvmlGpuFabricInfo_v2 == 36 | 2 << 24
    assert pynvml.nvmlPciInfo_t.busId.offset == 36
    assert pynvml.c_nvmlFieldValue_t.value.offset == 32
    assert pynvml.NVML_FI_DEV_NVLINK_GET_SPEED == 164
