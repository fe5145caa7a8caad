from __future__ import annotations

import os

import pytest

from anyaccel.errors import FileUnavailableError
from anyaccel.files import FILE_LIMIT, FolderTree, HostTree, MemoryTree, NodeFact
from anyaccel.machine import Journal, Machine, UserFacts


def make_folder(root, files=(), links=()):
    for name, content in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for name, target in links:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


FILES = (("sys/devices/pci0000:00/0000:00:01.0/vendor", "0x10de\n"), ("etc/motd", "hello\n"))
LINKS = (
    ("sys/bus/pci/devices/0000:00:01.0", "../../../devices/pci0000:00/0000:00:01.0"),
    ("sys/absolute", "/etc/motd"),
    ("sys/above", "../../../../../../../etc/motd"),
    ("sys/loop", "loop"),
    ("sys/nowhere", "/not/here"),
)


@pytest.fixture(params=["folder", "memory"])
def tree(request, tmp_path):
    """The same files below a folder and in memory."""
    if request.param == "folder":
        make_folder(tmp_path, FILES, LINKS)
        return FolderTree(tmp_path)
    return MemoryTree({f"/{n}": c.encode() for n, c in FILES}, {f"/{n}": t for n, t in LINKS})


def test_relative_link_is_followed(tree):
    """A link inside sysfs leads to the real folder."""
    path = "/sys/bus/pci/devices/0000:00:01.0"

    assert tree.resolve(path) == "/sys/devices/pci0000:00/0000:00:01.0"
    assert tree.read_bytes(f"{path}/vendor") == b"0x10de\n"


@pytest.mark.parametrize("name", ["absolute", "above"])
def test_links_stay_inside_the_root(tree, name):
    """An absolute link, and one that climbs above the root, end inside the root as the kernel has it."""
    assert tree.read_bytes(f"/sys/{name}") == b"hello\n"


def test_loop_and_dangling_link_are_errors_of_the_system(tree):
    """A loop or a link to nothing raises OSError and does not exist."""
    with pytest.raises(OSError, match=r"symbolic links|Too many levels"):
        tree.read_bytes("/sys/loop")
    assert not tree.exists("/sys/nowhere")
    assert not tree.exists("/sys/loop")


def test_listing_holds_links_and_folders(tree):
    """A folder's names include links that lead nowhere: a file may vanish while it is read."""
    assert tree.list_folder("/sys") == ("above", "absolute", "bus", "devices", "loop", "nowhere")


def test_reading_a_folder_is_an_error(tree):
    """A folder has no content."""
    with pytest.raises(OSError, match=r".*"):
        tree.read_bytes("/sys/bus")


def test_large_file_is_cut(tmp_path):
    """At most FILE_LIMIT bytes are read of one file."""
    (tmp_path / "big").write_bytes(b"x" * (FILE_LIMIT + 10))

    assert len(FolderTree(tmp_path).read_bytes("/big")) == FILE_LIMIT


def test_pipe_in_a_root_folder_does_not_block(tmp_path):
    """A named pipe planted in a root folder is refused, not waited for."""
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match=r".*"):
        FolderTree(tmp_path).read_bytes("/pipe")


def test_root_folder_with_sibling_of_same_prefix_is_not_left(tmp_path):
    """A link to a sibling of the root whose name begins alike does not lead there."""
    root = tmp_path / "root"
    make_folder(root, [("a", "inside")], [("b", "../root-secret/a")])
    make_folder(tmp_path / "root-secret", [("a", "outside")])

    assert not FolderTree(root).exists("/b")


def test_host_tree_tells_rights_without_opening(tmp_path):
    """The rights of a host file come from its status."""
    path = tmp_path / "node"
    path.write_text("")
    path.chmod(0o640)

    fact = HostTree().node(str(path))

    assert (fact.mode, fact.owner, fact.can_open) == (0o640, str(os.getuid()), True)


@pytest.mark.parametrize(
    ("uid", "groups", "can_open"),
    [(0, (), True), (1000, ("render",), True), (1000, ("video",), False), (1000, (), False), (None, (), None)],
)
def test_access_of_an_imaginary_user_follows_the_mode(uid, groups, can_open):
    """For a machine that is not live the rights of its user are worked out from owner, group and mode."""
    tree = MemoryTree(nodes={"/dev/kfd": NodeFact(mode=0o660, owner="0", group="render")})
    machine = Machine(tree, user=UserFacts(uid, groups))

    assert machine.node("/dev/kfd").can_open is can_open


def test_missing_file_says_so():
    """The error of a missing file is told apart from one that cannot be read."""
    machine = Machine(MemoryTree({"/a/b": b"1"}))

    with pytest.raises(FileUnavailableError, match="'/a/c' is missing") as missing:
        machine.read_text("/a/c")
    with pytest.raises(FileUnavailableError) as folder:
        machine.read_text("/a")

    assert missing.value.is_missing
    assert not folder.value.is_missing


def test_undecodable_text_is_replaced_not_raised():
    """A file that is not UTF-8 is still text."""
    assert Machine(MemoryTree({"/x": b"a\xff\n"})).read_text("/x") == "a\ufffd"


def test_journal_rebuilds_what_was_read():
    """Files, links and listings noted in a journal read the same when they are a tree of their own."""
    tree = MemoryTree({f"/{n}": c.encode() for n, c in FILES}, {f"/{n}": t for n, t in LINKS})
    journal = Journal()
    machine = Machine(tree, journal=journal)
    path = "/sys/bus/pci/devices/0000:00:01.0"
    machine.list_folder("/sys/bus/pci/devices")
    machine.resolve(path)
    machine.read_text(f"{path}/vendor")

    again = Machine(MemoryTree(journal.files, journal.links, journal.nodes, tuple(journal.folders)))

    assert again.list_folder("/sys/bus/pci/devices") == ("0000:00:01.0",)
    assert again.resolve(path) == "/sys/devices/pci0000:00/0000:00:01.0"
    assert again.read_text(f"{path}/vendor") == "0x10de"
    assert not again.exists("/etc/motd")


def test_memory_tree_holds_empty_folders_and_nodes():
    """Folders without files and device files are listed; a device file reads as nothing."""
    tree = MemoryTree(nodes={"/dev/x0": NodeFact(0o666)}, folders=("/sys/empty",))

    assert tree.list_folder("/") == ("dev", "sys")
    assert tree.list_folder("/sys/empty") == ()
    assert tree.read_bytes("/dev/x0") == b""
    assert tree.node("/dev/x0").mode == 0o666
    with pytest.raises(PermissionError):
        MemoryTree(nodes={"/sys/secret": NodeFact(mode=0)}).read_bytes("/sys/secret")
    with pytest.raises(NotADirectoryError):
        tree.list_folder("/dev/x0")
    with pytest.raises(FileNotFoundError):
        tree.node("/dev/x1")


def test_folder_tree_takes_recorded_rights_first(tmp_path):
    """Rights that were recorded stand over those of the plain file that represents a device."""
    make_folder(tmp_path, [("dev/x0", ""), ("dev/x1", "")])
    tree = FolderTree(tmp_path, {"/dev/x0": NodeFact(0o660, "0", "render")})

    assert tree.node("/dev/x0").group == "render"
    assert tree.node("/dev/x1").can_open is None
    assert tree.list_folder("/dev") == ("x0", "x1")
    assert tree.resolve("/") == "/"
