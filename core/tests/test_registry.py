from __future__ import annotations

import os
import sys
import time
import warnings
from importlib import metadata

import pytest

from anyaccel import registry as registry_module
from anyaccel.errors import (
    CapabilityNotSupportedError,
    PluginContractError,
    PluginError,
    PluginLoadError,
    PluginVersionError,
)
from anyaccel.inventory import OutcomeStatus
from anyaccel.registry import Registry, load_plugin


@pytest.fixture
def install(tmp_path, monkeypatch, write_toy, write_module):
    """Install planted modules as distributions with an entry point, as pip would."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(registry_module, "entry_points", _only_under(str(site)))

    def put(distribution, key, module, version="1.2"):
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[anyaccel.plugins]\n{key} = {module}\n")

    return put


def _only_under(folder):
    def entry_points(group):
        return [
            entry
            for distribution in metadata.distributions(path=[folder])
            for entry in distribution.entry_points
            if entry.group == group
        ]

    return entry_points


def outcome(registry, key):
    return next(failure for failure in registry.failures if failure.plugin == key)


def test_installed_plugins_are_loaded_in_order_of_key(install, write_toy):
    """Entry points become plugins with the name and version of their distribution."""
    install("accel-zeta", "zeta", write_toy(key="zeta"))
    install("accel-alpha", "alpha", write_toy(key="alpha"))

    registry = Registry.installed({})

    assert [(p.key, p.distribution, p.version) for p in registry.plugins] == [
        ("alpha", "accel-alpha", "1.2"),
        ("zeta", "accel-zeta", "1.2"),
    ]


def test_import_error_costs_only_the_plugin_that_has_it(install, write_toy, write_module):
    """A missing library in one plugin leaves the others and names entry point, distribution and file."""
    install("accel-alpha", "alpha", write_toy(key="alpha"))
    install("accel-bad", "bad", write_module("raise ImportError('libfoo.so: cannot open shared object file')"))

    registry = Registry.installed({})

    assert [p.key for p in registry.plugins] == ["alpha"]
    failure = outcome(registry, "bad")
    assert failure.status is OutcomeStatus.BROKEN
    assert failure.code == "plugin-load-failed"
    assert "'bad'" in failure.reason
    assert "accel-bad 1.2" in failure.reason
    assert "libfoo.so" in failure.reason


def test_hanging_import_is_given_up(install, write_toy, write_module, monkeypatch):
    """An import that never ends is named after its time limit; the other plugin is loaded."""
    monkeypatch.setattr(registry_module, "LOAD_TIMEOUT_SECONDS", 0.3)
    install("accel-alpha", "alpha", write_toy(key="alpha"))
    install("accel-slow", "slow", write_module("import time\ntime.sleep(30)"))

    registry = Registry.installed({})

    assert [p.key for p in registry.plugins] == ["alpha"]
    assert "did not come back within 0.3 s" in outcome(registry, "slow").reason


def test_sys_exit_during_import_is_contained(install, write_module):
    """A plugin that calls sys.exit at import is a broken plugin, not the end of the program."""
    install("accel-bad", "bad", write_module("import sys\nsys.exit(7)"))

    assert "SystemExit: 7" in outcome(Registry.installed({}), "bad").reason


def test_two_distributions_with_one_key_are_a_conflict(install, write_toy):
    """Neither of two claimants is loaded; both distributions are named."""
    install("accel-one", "toy", write_toy())
    install("accel-two", "toy", write_toy())

    registry = Registry.installed({})

    assert registry.plugins == ()
    failure = outcome(registry, "toy")
    assert failure.code == "plugin-conflict"
    assert "accel-one and accel-two" in failure.reason


def test_only_the_named_plugins_are_loaded(install, write_toy):
    """ANYACCEL_PLUGINS leaves every other plugin out and says so."""
    install("accel-alpha", "alpha", write_toy(key="alpha"))
    install("accel-zeta", "zeta", write_toy(key="zeta"))

    registry = Registry.installed({"ANYACCEL_PLUGINS": "zeta"})

    assert [p.key for p in registry.plugins] == ["zeta"]
    assert outcome(registry, "alpha").status is OutcomeStatus.DISABLED
    assert "ANYACCEL_PLUGINS='zeta'" in outcome(registry, "alpha").reason


def test_a_named_plugin_that_is_not_installed_is_broken(install, write_toy):
    """ANYACCEL_PLUGINS with a typing mistake is no silence."""
    install("accel-alpha", "alpha", write_toy(key="alpha"))

    failure = outcome(Registry.installed({"ANYACCEL_PLUGINS": "alpa"}), "alpa")

    assert failure.status is OutcomeStatus.BROKEN
    assert "not installed" in failure.reason


def test_disabled_plugins_are_not_imported(install, write_module):
    """ANYACCEL_DISABLE_PLUGINS keeps even the import from happening."""
    install("accel-bad", "bad", write_module("raise RuntimeError('imported')"))

    failure = outcome(Registry.installed({"ANYACCEL_DISABLE_PLUGINS": "bad, other"}), "bad")

    assert failure.status is OutcomeStatus.DISABLED


def test_plugin_of_another_contract_version_is_refused(write_module):
    """A plugin written for another major version is named with both versions."""
    name = write_module(
        """
        from anyaccel.capabilities import Declaration
        from anyaccel.device import Discovery
        from anyaccel.hookspec import hookimpl

        @hookimpl
        def accel_declare():
            return Declaration(key="future", title="Future", contract_version="9.0")

        @hookimpl
        def accel_discover_devices(machine):
            return Discovery(reason="none")
        """
    )

    with pytest.raises(PluginVersionError, match=r"contract 9\.0, this anyaccel speaks 1\.0"):
        load_plugin("future", name)


def test_plugin_without_declaration_breaks_the_contract(write_module):
    """A module without accel_declare is refused with the requirement it breaks."""
    name = write_module("x = 1")

    with pytest.raises(PluginContractError, match="DEC-001"):
        load_plugin("empty", name)


def test_key_must_equal_the_entry_point(write_toy):
    """A plugin may not declare another key than the one it is installed under."""
    with pytest.raises(PluginContractError, match="'toy' under the entry point 'other'"):
        load_plugin("other", write_toy())


def test_unknown_hook_is_named_with_the_nearest(write_toy):
    """A misspelt hook is an error, not a hook that is never called."""
    name = write_toy("@hookimpl\ndef accel_inspect_device(machine, devices):\n    return None\n")

    with pytest.raises(PluginLoadError, match="accel_inspect_device,") as caught:
        load_plugin("toy", name)

    assert caught.value.hint == "did you mean accel_inspect_devices?"


def test_removed_hook_is_a_warning_that_names_the_replacement(write_toy, monkeypatch):
    """A plugin that still has a hook of an older contract is loaded and warned."""
    monkeypatch.setattr(registry_module, "REMOVED_HOOKS", {"accel_old_hook": "accel_inspect_devices"})
    name = write_toy("@hookimpl\ndef accel_old_hook(machine):\n    return None\n")

    with pytest.warns(DeprecationWarning, match="removed hook accel_old_hook; use accel_inspect_devices"):
        plugin = load_plugin("toy", name)

    assert plugin.key == "toy"


def test_hook_with_fewer_arguments_works_without_a_warning(write_toy, pci_machine):
    """A plugin of an older contract may leave arguments out."""
    more = """
    from anyaccel.device import Inspection

    @hookimpl
    def accel_inspect_devices(devices):
        return Inspection(devices)
    """
    plugin = load_plugin("toy", write_toy(more))
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert plugin.call("accel_inspect_devices", machine=pci_machine(), devices=()).devices == ()


def test_missing_hook_is_a_capability_that_is_not_supported(write_toy):
    """Asking a plugin for what it does not implement raises by that name."""
    plugin = load_plugin("toy", write_toy())

    assert not plugin.implements("accel_read_metrics")
    with pytest.raises(CapabilityNotSupportedError, match="accel_read_metrics"):
        plugin.call("accel_read_metrics", machine=None, devices=())


def test_none_is_never_an_answer(write_toy):
    """An implemented hook that returns nothing breaks the contract."""
    plugin = load_plugin("toy", write_toy("@hookimpl\ndef accel_read_metrics(machine):\n    return None\n"))

    with pytest.raises(PluginContractError, match="returned NoneType from accel_read_metrics") as caught:
        plugin.call("accel_read_metrics", machine=None, devices=())

    assert caught.value.requirement == "MET-001"


def test_wrong_item_type_is_named(write_toy):
    """A tuple of something else than readings is refused."""
    plugin = load_plugin("toy", write_toy("@hookimpl\ndef accel_read_metrics(machine):\n    return (1,)\n"))

    with pytest.raises(PluginContractError, match="something else than Reading"):
        plugin.call("accel_read_metrics", machine=None, devices=())


def test_foreign_exception_is_wrapped_and_kept(write_toy):
    """What a hook raises reaches the caller with plugin, hook and cause."""
    plugin = load_plugin("toy", write_toy("@hookimpl\ndef accel_read_metrics(machine):\n    return 1 / 0\n"))

    with pytest.raises(PluginError, match="raised ZeroDivisionError in accel_read_metrics") as caught:
        plugin.call("accel_read_metrics", machine=None, devices=())

    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_unknown_plugin_lists_the_loaded_and_the_nearest(write_toy):
    """A misspelt key gets a suggestion."""
    registry = Registry.of(write_toy())

    with pytest.raises(PluginError, match=r"unknown plugin 'toi' \(loaded: 'toy'\)") as caught:
        registry.plugin("toi")

    assert caught.value.hint == "did you mean 'toy'?"


def test_environment_and_logger_survive_a_plugin(write_toy, monkeypatch):
    """A plugin that changes the environment and the root logger at import is undone and told on."""
    import logging

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    before = (logging.getLogger().level, list(logging.getLogger().handlers))
    meddling = (
        "import os, logging\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\nlogging.getLogger().setLevel(logging.CRITICAL)\n"
    )

    plugin = load_plugin("toy", write_toy(replace=meddling))

    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    assert (logging.getLogger().level, list(logging.getLogger().handlers)) == before
    assert any("CUDA_VISIBLE_DEVICES" in misdeed for misdeed in plugin.misdeeds)
    assert any("root logger" in misdeed for misdeed in plugin.misdeeds)


def test_prints_while_loading_do_not_reach_stdout(write_toy, capsys):
    """What a plugin prints at import is kept from the program's output."""
    plugin = load_plugin("toy", write_toy(replace="print('hello from a plugin')\n"))

    assert capsys.readouterr().out == ""
    assert plugin.misdeeds == ("printed 'hello from a plugin'",)


def test_plugin_package_may_import_core_first(write_toy):
    """Importing the plugin before anything of core works, because core loads nothing at import."""
    import subprocess

    name = write_toy()
    code = f"import sys; sys.path[:0] = {sys.path!r}; import {name}; import anyaccel; print({name}.KEY)"
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20)

    assert done.stdout == "toy\n"
    assert time.monotonic() - started < 20
