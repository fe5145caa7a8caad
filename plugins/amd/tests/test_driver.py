"""The real amdsmi binding on a stub library, in child processes; and every way in which it may be missing or broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import anyaccel
import anyaccel_amd
from anyaccel.discovery import discover
from anyaccel.machine import LiveAnswers

ONE = '[[card]]\nplugin = "amd"\nmodel = "mi210"\naddress = "0000:23:00.0"\n'
SOURCES = [str(Path(package.__file__).parent.parent) for package in (anyaccel, anyaccel_amd)]
BARE = f"import sys; sys.path[:0] = {SOURCES!r}; "
"""With `-S`: a process without installed packages, which has only the sources of core and of this plugin."""
ANSWERING = ("amd-mi300x8", "amd-mi300x8-cpx-63", "amd-mi300x8-uncorrected", "amd-mi210x4")


@pytest.fixture
def answer_of():
    """Give a machine's simulated amdsmi answer."""
    return lambda machine: machine.answers["amd"].documents["amdsmi"]


@pytest.mark.parametrize("name", ANSWERING)
def test_simulation_and_binding_give_one_answer(name, shipped, answer_of, ask_stub, stub_text):
    """For the shipped machines the real binding on the stub collects exactly what the simulation answers."""
    answer = answer_of(shipped(name))

    assert ask_stub(stub_text(answer)) == answer


def test_library_is_found_by_the_linker_too(described, answer_of, stub_text, run_collector, stub_root, tmp_path):
    """LD_LIBRARY_PATH serves where ROCM_PATH leads nowhere."""
    answer = answer_of(described(ONE))
    (tmp_path / "stub.txt").write_text(stub_text(answer))

    collected = run_collector(
        {
            "ROCM_PATH": str(tmp_path),
            "LD_LIBRARY_PATH": str(stub_root / "lib"),
            "AMDSMI_STUB_FILE": str(tmp_path / "stub.txt"),
        }
    )

    assert collected == answer


def test_a_refused_call_costs_one_value(described, answer_of, ask_stub, stub_text):
    """A call that fails leaves its status; the rest of the row is there."""
    text = stub_text(answer_of(described(ONE))).replace("0.vram_bytes=", "0.vram_bytes=!10 #")

    (row,) = ask_stub(text)["processors"]

    assert row["vram_bytes"] is None
    assert row["problems"]["vram_bytes"] == "AMDSMI_STATUS_NO_PERM"
    assert row["hip_id"] == 0


def test_an_odd_process_name_costs_one_value(described, answer_of, ask_stub, stub_text):
    """The binding cannot decode a process name: the number of processes is unknown, with words."""
    text = stub_text(answer_of(described(ONE))).replace("0.process_count=0\n", "0.process_count=2\n")

    (row,) = ask_stub(text.encode() + b"0.process_name=\xff\xfe\n")["processors"]

    assert row["process_count"] is None
    assert row["problems"]["process_count"].startswith("the binding cannot read the answer")


def test_processes_are_counted_and_not_named(described, answer_of, ask_stub, stub_text):
    """Only their number is kept."""
    text = stub_text(answer_of(described(ONE))).replace("0.process_count=0\n", "0.process_count=2\n")

    collected = ask_stub(text + "0.process_name=secret-job\n")

    assert collected["processors"][0]["process_count"] == 2
    assert "secret-job" not in str(collected)


def test_serial_numbers_are_left_out(described, answer_of, ask_stub, stub_text):
    """What the library tells as serial number is not in the answer."""
    collected = ask_stub(stub_text(answer_of(described(ONE))) + "0.serial=0x1234DEADBEEF\n")

    assert "1234deadbeef" not in str(collected).lower()


def test_unsupported_link_bandwidth_is_unknown(described, answer_of, ask_stub, stub_text):
    """All ones is no bandwidth."""
    text = f'[amd]\nhive = "mesh"\n{ONE}{ONE.replace("23", "26")}'
    told = stub_text(answer_of(described(text)))

    rows = ask_stub("".join(line + "\n" for line in told.splitlines() if "max_gbits" not in line))["processors"]

    assert [link["max_gbits"] for row in rows for link in row["xgmi_links"]] == [None, None]


@pytest.mark.parametrize(
    ("status", "reason_code"), [(34, "driver-not-loaded"), (10, "permission-denied"), (32, "init-failed")]
)
def test_a_failed_start_has_a_reason_code(status, reason_code, ask_stub):
    """What the library answers at its start becomes a stable reason code with the library's word."""
    collected = ask_stub(f"init={status}\n")

    assert collected["reason_code"] == reason_code
    assert "AMDSMI_STATUS_" in collected["unavailable"]


def test_a_driver_without_gpu_answers_with_nothing(ask_stub):
    """No socket is no error."""
    collected = ask_stub("version=26.0.2\nsockets=0\nprocessors=0\n")

    assert (collected["processors"], collected["links"]) == ([], [])


def test_a_library_of_another_major_version_is_refused(ask_stub):
    """Structures differ in size between versions: nothing is read from a library the binding was not made for."""
    collected = ask_stub("version=25.5.1\nsockets=0\nprocessors=0\n")

    assert collected["reason_code"] == "library-version"
    assert "made for library 26, found 25.5.1" in collected["unavailable"]


def test_the_binding_without_its_library_is_a_reason(binding, run_collector, tmp_path):
    """The wheel is installed, the library is not: its KeyError and the two lines it prints stay inside."""
    collected = run_collector({"ROCM_PATH": str(tmp_path)})

    assert collected["reason_code"] == "library-missing"
    assert collected["unavailable"].startswith("library missing")
    assert "ROCM_PATH" in collected["hint"]


def test_a_library_without_a_symbol_is_a_reason(binding, run_collector, tmp_path):
    """An old library lacks a function that the binding looks up when it is imported."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler (cc)")
    (tmp_path / "lib").mkdir()
    (tmp_path / "old.c").write_text("int amdsmi_init(void) { return 0; }\n")
    command = [compiler, "-shared", "-fPIC", "-o", tmp_path / "lib" / "libamd_smi.so", tmp_path / "old.c"]
    subprocess.run(command, check=True)

    collected = run_collector({"ROCM_PATH": str(tmp_path)})

    assert collected["reason_code"] == "symbol-missing"
    assert "amdsmi_free_name_value_pairs" in collected["unavailable"]


def test_a_missing_binding_is_a_reason(run_collector, tmp_path):
    """Where amdsmi is not installed the hint says how to get it."""
    collected = run_collector({"ROCM_PATH": str(tmp_path)}, "-S", before=BARE)

    assert collected["reason_code"] == "binding-missing"
    assert "anyaccel-amd[smi]" in collected["hint"]


def test_the_copy_that_rocm_ships_is_found(
    binding, stub_root, described, answer_of, stub_text, run_collector, tmp_path
):
    """Without an installed amdsmi the one below ROCm's folder is used."""
    shutil.copytree(stub_root / "lib", tmp_path / "lib")
    shutil.copytree(binding, tmp_path / "share" / "amd_smi" / "amdsmi")
    answer = answer_of(described(ONE))
    (tmp_path / "stub.txt").write_text(stub_text(answer))
    environ = {"ROCM_PATH": str(tmp_path), "AMDSMI_STUB_FILE": str(tmp_path / "stub.txt")}

    assert run_collector(environ, "-S", before=BARE) == answer


def test_another_module_of_that_name_is_named(run_collector, tmp_path):
    """Something else called amdsmi is told by its file."""
    (tmp_path / "amdsmi.py").write_text("value = 1\n")

    collected = run_collector({"PYTHONPATH": str(tmp_path)})

    assert collected["reason_code"] == "wrong-binding"
    assert str(tmp_path / "amdsmi.py") in collected["unavailable"]


def test_discovery_with_the_real_binding_equals_the_simulation(
    shipped, registry, stub_root, stub_text, answer_of, tmp_path, monkeypatch
):
    """End to end: files of an imaginary machine and the real binding in the probe child give the simulated inventory."""
    machine = shipped("amd-mi210x4")
    (tmp_path / "stub.txt").write_text(stub_text(answer_of(machine)))
    monkeypatch.setenv("ROCM_PATH", str(stub_root))
    monkeypatch.setenv("AMDSMI_STUB_FILE", str(tmp_path / "stub.txt"))

    real = discover(machine.with_answers({"amd": LiveAnswers()}), registry, isolate=True)

    simulated = discover(machine, registry, isolate=False)
    assert real.devices == simulated.devices
    assert real.links == simulated.links


def test_structures_have_the_sizes_of_the_header(stub_root):
    """The binding's structures have the sizes that the stub asserts in C."""
    sizes = {
        "amdsmi_bdf_t": 8,
        "amdsmi_asic_info_t": 896,
        "amdsmi_driver_info_t": 768,
        "amdsmi_kfd_info_t": 64,
        "amdsmi_enumeration_info_t": 272,
        "amdsmi_link_metrics_t": 3648,
        "amdsmi_proc_info_t": 704,
        "amdsmi_error_count_t": 64,
        "amdsmi_version_t": 24,
    }
    code = (
        "import ctypes, json, sys; from amdsmi import amdsmi_wrapper as w; "
        "print(json.dumps({name: ctypes.sizeof(getattr(w, name)) for name in sys.argv[1:]}))"
    )

    child = subprocess.run(
        [sys.executable, "-c", code, *sizes],
        env={**os.environ, "ROCM_PATH": str(stub_root)},
        capture_output=True,
        text=True,
        timeout=15,
        check=True,
    )

    assert json.loads(child.stdout) == sizes
