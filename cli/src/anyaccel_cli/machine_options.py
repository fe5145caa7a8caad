"""The options that every command shares, and the machine they describe."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.text import nearest_hint

if TYPE_CHECKING:
    from anyaccel.machine import Machine
    from anyaccel.registry import Registry

__all__ = [
    "MachineOptions",
    "complete_machines",
    "complete_vendors",
    "machine_options",
    "narrowed",
    "open_machine",
    "select_option",
    "simulated_machine",
]

DEFAULT_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class MachineOptions:
    """Which machine is looked at, and how long.

    Args: root: a folder that stands for `/`. replay: a recording. simulate: name or TOML file of an imaginary machine.
        environ: NAME=VALUE pairs of its process environment. vendors: keys, empty = all.
    """

    root: str | None = None
    replay: str | None = None
    simulate: str | None = None
    environ: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    @property
    def is_live(self) -> bool:
        """Whether it is the machine we run on."""
        return self.root is None and self.replay is None and self.simulate is None


def _plugin_packages() -> Mapping[str, str]:
    """Give the import package of each installed plugin by key, from metadata alone."""
    from importlib.metadata import entry_points

    return {entry.name: entry.value.partition(".")[0] for entry in entry_points(group="anyaccel.plugins")}


def complete_vendors(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Give the installed vendors that begin so; no plugin is imported."""
    return [CompletionItem(key) for key in sorted(_plugin_packages()) if key.startswith(incomplete)]


def complete_machines(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Give the imaginary machines that begin so, or else let the shell complete a file; no plugin is imported."""
    names = sorted(name for package in _plugin_packages().values() for name in _machine_names(package))
    items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]


def _machine_names(package: str) -> Iterable[str]:
    from importlib.util import find_spec

    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from (path.stem for path in Path(folder, "machines").glob("*.toml"))


def machine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which machine is looked at; the command gets them as `machine`."""

    @functools.wraps(function)
    def with_machine(**values: Any) -> Any:
        options = MachineOptions(**{field.name: values.pop(field.name) for field in fields(MachineOptions)})
        return function(machine=options, **values)

    return _add_options(
        with_machine,
        click.option(
            "--vendor",
            "vendors",
            multiple=True,
            metavar="KEY",
            shell_complete=complete_vendors,
            help="Only this vendor; may be repeated.",
        ),
        click.option("--root", metavar="DIR", help="Read files below DIR and nothing of this host."),
        click.option("--replay", metavar="FILE", help="Look at a recording: a folder or .tar.gz."),
        click.option(
            "--simulate",
            metavar="NAME|FILE.toml",
            shell_complete=complete_machines,
            help="Look at an imaginary machine; accel-cli simulate --list names them.",
        ),
        click.option(
            "--env",
            "environ",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set a variable in the environment of a machine that is not this one; may be repeated.",
        ),
        click.option(
            "--timeout",
            "timeout_seconds",
            type=click.FloatRange(min=0, min_open=True),
            default=DEFAULT_TIMEOUT_SECONDS,
            show_default=True,
            metavar="SECONDS",
            help="Time for the whole command.",
        ),
    )


def select_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--select`; the command gets the `expressions`."""
    return _add_options(
        function,
        click.option(
            "--select",
            "expressions",
            multiple=True,
            metavar="EXPR",
            help="Only these devices: an id, the unique beginning of an id or uuid, a PCI address, vendor:number (the whole "
            "device when a part has the same number), vendor:number/number for a part, vendor:*, key=value, key~text or *; "
            "may be repeated.",
        ),
    )


def _add_options(function: Callable[..., Any], *options: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function


def open_machine(options: MachineOptions, registry: Registry) -> Machine:
    """Give the machine that the options describe, with its environment.

    Raises: WrongUsageError for options that contradict each other; RecordingError for what cannot be opened.
    """
    _check_one(options)
    environ = _pairs(options.environ)
    machine = _opened(options, registry)
    return machine if machine.is_live else machine.with_environ({**machine.environ, **environ})


def _check_one(options: MachineOptions) -> None:
    given = {"--root": options.root, "--replay": options.replay, "--simulate": options.simulate}
    used = [name for name, value in given.items() if value is not None]
    if len(used) > 1:
        raise WrongUsageError(f"{' and '.join(used)} name two machines", hint="give one of them")
    if options.environ and options.is_live:
        raise WrongUsageError(
            "--env changes the environment of a machine that is not this one",
            hint="set the variable in the shell: NAME=VALUE accel-cli …, or add --root, --replay or --simulate",
        )


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise WrongUsageError(f"--env {text!r} is not NAME=VALUE")
        pairs[name] = value
    return pairs


def _opened(options: MachineOptions, registry: Registry) -> Machine:
    if options.root is not None:
        from anyaccel.recording import open_root

        return open_root(options.root)
    if options.replay is not None:
        from anyaccel.recording import open_recording

        machine = open_recording(options.replay)
        if not machine.is_simulated:
            machine.name = options.replay
        return machine
    if options.simulate is not None:
        return simulated_machine(options.simulate, registry)
    from anyaccel.machine import live_machine

    return live_machine(timeout_seconds=options.timeout_seconds)


def simulated_machine(name: str, registry: Registry) -> Machine:
    """Make the imaginary machine of a name or description file.

    Raises: WrongUsageError for an unknown name; RecordingError for a description that is wrong.
    """
    from anyaccel.simulation import find_machine, list_machines, simulate

    if not name.endswith(".toml") and name not in (known := list_machines(registry)):
        raise WrongUsageError(
            f"unknown machine {name!r} (known: {', '.join(known) or 'none'})",
            hint=nearest_hint(name, known) or "the path of a description ends in .toml",
        )
    return simulate(find_machine(name, registry), registry)


def narrowed(registry: Registry, vendors: Iterable[str]) -> Registry:
    """Give the part of a registry that concerns these vendors, with the site policies that could hide their devices.

    Raises: WrongUsageError for an unknown vendor, with the installed ones.
    """
    from anyaccel.registry import Registry as _Registry

    wanted = frozenset(vendors)
    if not wanted:
        return registry
    known = {plugin.key for plugin in registry.plugins} | {failure.plugin for failure in registry.failures}
    for vendor in sorted(wanted - known):
        installed = ", ".join(sorted(known)) or "none"
        raise WrongUsageError(f"unknown vendor {vendor!r} (installed: {installed})", hint=_vendor_hint(vendor, known))
    plugins = (p for p in registry.plugins if p.key in wanted or p.implements("accel_filter_devices"))
    return _Registry(plugins, (failure for failure in registry.failures if failure.plugin in wanted))


def _vendor_hint(vendor: str, installed: Iterable[str]) -> str | None:
    from anyaccel_cli.known_hardware import known_families

    missing = {family.key: family.distribution for family in known_families()}
    if vendor in missing:
        return f"pip install {missing[vendor]}"
    return nearest_hint(vendor, {*installed, *missing})
