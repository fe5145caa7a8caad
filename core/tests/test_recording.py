from __future__ import annotations

import io
import json
import tarfile
import tracemalloc

import pytest

from anyaccel import recording as recording_module
from anyaccel.discovery import discover
from anyaccel.errors import RecordingError
from anyaccel.files import MemoryTree
from anyaccel.frozen import FrozenMap
from anyaccel.machine import MachineKind, StoredAnswers
from anyaccel.recording import FORMAT, open_recording, open_root, pack_machine, record, write_recording
from anyaccel.registry import Registry

CARDS = (("0000:01:00.0", 0x1DE8, "120000"), ("0000:02:00.0", 0x1DE8, "120000"))

ASKING = """
import dataclasses
from anyaccel.capabilities import Capability

@hookimpl
def accel_inspect_devices(machine, devices):
    told = machine.ask("library", lambda: {"uuids": ["TOY-1", "TOY-2"]})
    return Inspection(tuple(dataclasses.replace(d, uuid=u) for d, u in zip(devices, told["uuids"])))
"""

META = {"format": FORMAT, "name": "planted", "is_simulated": False, "environ": {}, "user": {}, "nodes": {}}


def make_archive(path, entries, meta=META):
    """Write an archive of (name, content or TarInfo) entries."""
    with tarfile.open(path, "w:gz") as archive:
        if meta is not None:
            add(archive, "machine.json", json.dumps(meta).encode())
        for name, content in entries:
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                add(archive, name, content)
    return path


def add(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("name", ["machine.tar.gz", "folder"])
def test_record_and_replay_give_the_same_inventory(name, write_toy, pci_machine, tmp_path):
    """A recording, archive or folder, answers as the machine did, questions to the driver included."""
    registry = Registry.of(write_toy(ASKING))
    machine = pci_machine(
        *CARDS,
        environ={"TOY_VISIBLE": "1", "SECRET": "x"},
        answers={"toy": StoredAnswers(FrozenMap({"library": {"uuids": ["TOY-1", "TOY-2"]}}))},
    )

    inventory, content = record(machine, registry)
    write_recording(content, tmp_path / name)
    replayed = discover(open_recording(tmp_path / name), registry)

    assert [(d.id, d.uuid, d.state) for d in replayed.devices] == [(d.id, d.uuid, d.state) for d in inventory.devices]
    assert replayed.devices[0].uuid == "TOY-1"


def test_recording_keeps_only_declared_variables(write_toy, pci_machine):
    """Masks are kept, everything else of the environment is left out."""
    machine = pci_machine(*CARDS, environ={"TOY_VISIBLE": "1", "AWS_SECRET": "x", "container": "oci-name"})

    _, content = record(machine, Registry.of(write_toy()))

    assert json.loads(content.files["/machine.json"])["environ"] == {"TOY_VISIBLE": "1", "container": "set"}


def test_live_questions_are_recorded_from_the_probe_child(write_toy, pci_machine, tmp_path):
    """What a driver said in the child is stored by plugin and topic."""
    from anyaccel.machine import LiveAnswers

    machine = pci_machine(*CARDS, answers={"toy": LiveAnswers()})

    _, content = record(machine, Registry.of(write_toy(ASKING)), is_scrubbed=False)

    assert json.loads(content.files["/answers/toy.json"]) == {"library": {"uuids": ["TOY-1", "TOY-2"]}}


@pytest.mark.parametrize(
    "entry",
    [
        ("../evil", b"x"),
        ("/etc/evil", b"x"),
        ("root/../../evil", b"x"),
        ("x", special("root/dev/evil", tarfile.CHRTYPE)),
        ("x", special("root/hard", tarfile.LNKTYPE, "/etc/passwd")),
        ("x", special("root/fifo", tarfile.FIFOTYPE)),
    ],
)
def test_unsafe_archives_end_in_one_sentence(entry, tmp_path):
    """Paths that leave the archive and entries that are no plain files are refused."""
    path = make_archive(tmp_path / "bad.tar.gz", [entry])

    with pytest.raises(RecordingError, match=r"unsafe path|neither file, folder nor symbolic link"):
        open_recording(path)


def test_links_of_an_archive_never_lead_to_this_host(tmp_path):
    """A symbolic link to an absolute or climbing path is looked up inside the recording."""
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    links = [
        ("x", special("root/a", tarfile.SYMTYPE, str(secret))),
        ("x", special("root/b", tarfile.SYMTYPE, "../../../../../../" + str(secret))),
    ]

    machine = open_recording(make_archive(tmp_path / "links.tar.gz", links))

    assert machine.read_text_or_none("/a") is None
    assert machine.read_text_or_none("/b") is None


def test_link_in_a_recorded_folder_never_leads_to_this_host(tmp_path):
    """A folder from a stranger is read without following its links on disk."""
    (tmp_path / "secret").write_text("host secret")
    folder = tmp_path / "folder"
    (folder / "root").mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps(META))
    (folder / "root" / "a").symlink_to(tmp_path / "secret")
    (folder / "answers").symlink_to(tmp_path)

    machine = open_recording(folder)

    assert machine.read_text_or_none("/a") is None


@pytest.mark.parametrize(("limit", "value"), [("MAX_ENTRIES", 2), ("MAX_TOTAL_BYTES", 3000), ("FILE_LIMIT", 1000)])
def test_limits_are_kept_while_reading(limit, value, tmp_path, monkeypatch):
    """Too many entries, too much data and too large a file are each refused."""
    monkeypatch.setattr(recording_module, limit, value)
    path = make_archive(tmp_path / "big.tar.gz", [(f"root/{n}", b"x" * 1500) for n in range(3)])

    with pytest.raises(RecordingError, match="too large"):
        open_recording(path)


def test_compressed_bomb_is_refused_before_it_fills_memory(tmp_path):
    """Gigabytes of zeros in a small archive are not held in memory."""
    path = tmp_path / "bomb.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=9) as archive:
        info = tarfile.TarInfo("root/zeros")
        info.size = 200 * 1024 * 1024
        archive.addfile(info, _Zeros())
    tracemalloc.start()

    with pytest.raises(RecordingError, match="too large"):
        open_recording(path)

    assert tracemalloc.get_traced_memory()[1] < 50 * 1024 * 1024
    tracemalloc.stop()


class _Zeros(io.RawIOBase):
    def read(self, size=-1):
        return b"\0" * max(size, 0)


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        (None, "holds no machine.json"),
        ({"format": "other/1"}, "format 'other/1'"),
        (["list"], "format None"),
        ({**META, "nodes": {"../x": {}}}, "unsafe path"),
        ({**META, "nodes": {"/dev/x": {"mode": "rwx"}}}, "malformed machine.json"),
        ({**META, "environ": ["x"]}, "malformed machine.json"),
        ({**META, "user": {"uid": float("inf")}}, "'inf' is no whole number"),
        ({**META, "user": {"uid": "7"}}, "'7' is no whole number"),
        ({**META, "nodes": {"/dev/x": {"major": float("inf")}}}, "'inf' is no whole number"),
    ],
)
def test_malformed_description_ends_in_one_sentence(meta, told, tmp_path):
    """Whatever is wrong with machine.json is told in one sentence."""
    path = make_archive(tmp_path / "bad.tar.gz", [("root/x", b"")], meta=meta)

    with pytest.raises(RecordingError, match=told) as caught:
        open_recording(path)

    assert "\n" not in caught.value.message


@pytest.mark.parametrize("content", [b"no archive at all", b"", b"\x1f\x8b\x08\x00garbage"])
def test_no_archive_ends_in_one_sentence(content, tmp_path):
    """A file that is no archive is refused as such."""
    path = tmp_path / "x.tar.gz"
    path.write_bytes(content)

    with pytest.raises(RecordingError, match=r"is no archive|cannot be read"):
        open_recording(path)


@pytest.mark.parametrize(("answers", "told"), [(b"{", "is not JSON"), (b"[1]", "holds no topics")])
def test_malformed_answers_end_in_one_sentence(answers, told, tmp_path):
    """Answers that are no JSON object are refused."""
    path = make_archive(tmp_path / "x.tar.gz", [("answers/toy.json", answers)])

    with pytest.raises(RecordingError, match=told):
        open_recording(path)


def test_missing_recording_is_named(tmp_path):
    """A path that is not there is an error of ours, not a traceback."""
    with pytest.raises(RecordingError, match="cannot be read"):
        open_recording(tmp_path / "nothing.tar.gz")


def test_root_needs_a_readable_folder(tmp_path):
    """--root with a file or a missing folder is refused."""
    with pytest.raises(RecordingError, match="no readable folder"):
        open_root(tmp_path / "nothing")


def test_root_answers_no_questions(write_toy, tmp_path):
    """Below a root folder rows come from files and each says that no question could be asked."""
    folder = tmp_path / "sys/devices/pci0000:01/0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text("0x1de8")
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:01:00.0").symlink_to("../../../devices/pci0000:01/0000:01:00.0")

    inventory = discover(open_root(tmp_path), Registry.of(write_toy(ASKING)))

    assert inventory.kind is MachineKind.ROOT
    assert inventory.devices[0].reason == "the driver was not heard: no live questions under --root"


def test_simulated_machine_packs_into_a_recording(write_toy, pci_machine, tmp_path):
    """A machine in memory becomes a folder that opens as the same simulated machine, and as a root."""
    machine = pci_machine(*CARDS)
    write_recording(pack_machine(machine), tmp_path / "out")
    registry = Registry.of(write_toy())

    again = open_recording(tmp_path / "out")

    assert again.is_simulated
    assert discover(again, registry).generation == discover(machine, registry).generation
    assert discover(open_root(tmp_path / "out"), registry).generation == discover(machine, registry).generation


def test_links_in_a_written_recording_are_relative(pci_machine, tmp_path):
    """Links stay inside the recording when somebody unpacks it."""
    write_recording(pack_machine(pci_machine(*CARDS)), tmp_path / "out")

    link = tmp_path / "out/root/sys/bus/pci/devices/0000:01:00.0"
    assert not link.readlink().is_absolute()
    assert link.resolve() == (tmp_path / "out/root/sys/devices/pci0000:01/0000:01:00.0").resolve()


def test_writing_never_overwrites_a_folder_with_content(tmp_path):
    """A folder that holds something is left alone."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/precious").write_text("x")

    with pytest.raises(RecordingError, match="not empty"):
        write_recording(MemoryTree({"/machine.json": b"{}"}), tmp_path / "out")

    assert (tmp_path / "out/precious").read_text() == "x"


def test_archive_is_written_whole_or_not_at_all(tmp_path):
    """A target that cannot be written leaves no part of an archive behind."""
    with pytest.raises(RecordingError, match="cannot be written"):
        write_recording(MemoryTree({"/machine.json": b"{}"}), tmp_path / "missing" / "x.tar.gz")

    assert list(tmp_path.iterdir()) == []


def test_recording_of_a_root_names_no_folder_of_its_maker(write_toy, pci_machine):
    """The path under which a root was opened may hold a user's name; only its last part is kept."""
    machine = pci_machine(*CARDS)
    machine.name = "/home/jane/server-7/"

    _, content = record(machine, Registry.of(write_toy()))

    assert json.loads(content.files["/machine.json"])["name"] == "server-7"


def test_links_that_double_at_each_step_end_at_once(tmp_path):
    """A chain of links that would take longer than the universe to follow is refused after forty, as the kernel does."""
    links = [("x", special(f"root/L{n}", tarfile.SYMTYPE, f"L{n + 1}/L{n + 1}")) for n in range(60)]

    machine = open_recording(
        make_archive(tmp_path / "links.tar.gz", [*links, ("x", special("root/L60", tarfile.SYMTYPE, "."))])
    )

    assert not machine.exists("/L0/x")
    assert machine.list_folder("/L0") == ()


@pytest.mark.parametrize("name", ["root/" + "d/" * 5000 + "x", "root/" + "d" * 5000])
def test_paths_of_no_machine_are_refused(name, tmp_path):
    """A path deeper or longer than any machine's is unsafe."""
    with pytest.raises(RecordingError, match="unsafe path"):
        open_recording(make_archive(tmp_path / "deep.tar.gz", [(name, b"")]))


def test_headers_count_as_size(tmp_path, monkeypatch):
    """A header of gigabytes is not read into memory: the limit counts what is uncompressed, not what is stored."""
    monkeypatch.setattr(recording_module, "MAX_TOTAL_BYTES", 100_000)
    monkeypatch.setattr(recording_module, "MAX_ENTRIES", 10)
    path = tmp_path / "headers.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("root/x")
        info.pax_headers = {"comment": "x" * 5_000_000}
        archive.addfile(info)

    with pytest.raises(RecordingError, match="too large"):
        open_recording(path)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", ""])
def test_every_compression_is_read(kind, tmp_path):
    """The kind is told by the content, not by the name."""
    path = tmp_path / "machine"
    with tarfile.open(path, f"w:{kind}" if kind else "w") as archive:
        add(archive, "machine.json", json.dumps(META).encode())
        add(archive, "root/x", b"hello")

    assert open_recording(path).read_text("/x") == "hello"
