"""Finding, loading, describing and calling plugins, each on its own, so that a bad one costs only its own rows."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from anyaccel import _contract, errors, hookspec
from anyaccel._exact import why_not_exact
from anyaccel._guard import Guarded, OverrunError, call_guarded
from anyaccel.capabilities import Declaration
from anyaccel.errors import (
    AccelError,
    CapabilityNotSupportedError,
    PluginConflictError,
    PluginContractError,
    PluginError,
    PluginLoadError,
)
from anyaccel.inventory import OutcomeStatus, PluginOutcome

__all__ = ["ENTRY_POINT_GROUP", "Plugin", "Registry", "load_plugin", "plain_error"]

ENTRY_POINT_GROUP = "anyaccel.plugins"
LOAD_TIMEOUT_SECONDS = 5.0
REMOVED_HOOKS: Mapping[str, str] = {}
"""Hooks of older contracts by name, each with its replacement; a plugin that still has one is warned, not refused."""


@dataclass(frozen=True)
class Plugin:
    """One loaded plugin.

    Args: key: of its family. module_name: what was imported. declaration: what it says of itself.
        distribution, version: where it came from, None when handed in by name. misdeeds: what it did wrong while loading.
    """

    key: str
    module_name: str
    declaration: Declaration
    manager: pluggy.PluginManager
    distribution: str | None = None
    version: str | None = None
    misdeeds: tuple[str, ...] = ()

    def implements(self, hook: str) -> bool:
        """Whether the plugin answers a hook."""
        caller = getattr(self.manager.hook, hook)
        return bool(caller.get_hookimpls())

    def call(self, hook: str, **arguments: Any) -> Any:
        """Call one hook in this thread and check the type of what it answers.

        Raises: CapabilityNotSupportedError when the plugin has no such hook; PluginContractError for None or a wrong type;
            AccelError as the plugin raised it; PluginError around everything else.
        """
        return self.opened(hook, self.call_guarded(hook, timeout_seconds=None, **arguments))

    def call_guarded(self, hook: str, *, timeout_seconds: float | None, **arguments: Any) -> Guarded:
        """Call one hook under the guard; see `opened` for the answer."""
        if not self.implements(hook):
            raise CapabilityNotSupportedError(f"plugin {self.key!r} has no hook {hook}", plugin=self.key)
        caller = getattr(self.manager.hook, hook)
        return call_guarded(lambda: caller(**arguments), timeout_seconds=timeout_seconds, name=f"{self.key}-{hook}")

    def opened(self, hook: str, guarded: Guarded) -> Any:
        """Give the answer of a guarded call, or raise what is wrong with it."""
        if guarded.error is not None:
            raise self._as_error(hook, guarded.error) from guarded.error
        answers: Sequence[Any] = guarded.value
        answer = answers[0] if answers else None
        _contract.check_answer(self.key, hook, answer)
        return answer

    def _as_error(self, hook: str, error: BaseException) -> AccelError:
        if isinstance(error, AccelError):
            return plain_error(error)
        if isinstance(error, OverrunError):
            return PluginError(
                f"plugin {self.key!r} {error} in {hook}", plugin=self.key, distribution=self.distribution
            )
        return PluginError(
            f"plugin {self.key!r} raised {type(error).__name__} in {hook}: {_one_line(error)}",
            plugin=self.key,
            distribution=self.distribution,
        )


def _one_line(error: BaseException) -> str:
    """Give an error's text; making it runs the plugin's own code, so it may fail in any way."""
    try:
        return " ".join(str(error).split()) or "no message"
    except Exception as problem:  # noqa: BLE001 - whatever a plugin's __str__ raises is told instead
        return f"its text cannot be made ({type(problem).__name__})"


_ERROR_DEFAULTS: Mapping[str, object] = {
    "hint": None,
    "plugin": "unknown",
    "distribution": None,
    "hook": "unknown",
    "requirement": None,
    "reason_code": "unavailable",
}
"""What an error that was not made by its own constructor lacks."""


def plain_error(error: AccelError) -> AccelError:
    """Give one of our own errors in place of one that a plugin made: of a class of ours, with plain values only."""
    is_ours = type(error).__module__ == errors.__name__ and type(getattr(error, "message", None)) is str
    if is_ours and why_not_exact(error.__dict__, Any) is None:
        return error
    cls = next(cls for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
    state = {name: value for name, value in error.__dict__.items() if why_not_exact(value, Any) is None}
    assert issubclass(cls, AccelError)
    return errors.rebuild(cls, (), {**_ERROR_DEFAULTS, "message": _one_line(error), **state})


class Registry:
    """The plugins of one program.

    Args: plugins: loaded ones, kept in order of key. failures: outcomes of those that could not be loaded or are disabled.
    """

    def __init__(self, plugins: Iterable[Plugin] = (), failures: Iterable[PluginOutcome] = ()) -> None:
        self.plugins = tuple(sorted(plugins, key=lambda plugin: plugin.key))
        self.failures = tuple(sorted(failures, key=lambda outcome: outcome.plugin))

    @classmethod
    def of(cls, *module_names: str) -> Registry:
        """Load plugins by the name of their module, for tests and tools; the key is the one they declare."""
        plugins, failures = [], []
        for module_name in module_names:
            try:
                plugins.append(load_plugin(None, module_name))
            except PluginError as error:
                failures.append(_failure(error))
        return cls(plugins, failures)

    @classmethod
    def installed(cls, environ: Mapping[str, str] | None = None) -> Registry:
        """Load what is installed under the entry point group.

        `ANYACCEL_PLUGINS` (comma list of keys) loads only these; `ANYACCEL_DISABLE_PLUGINS` leaves these out.
        """
        environ = os.environ if environ is None else environ
        found: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            found.setdefault(entry.name, []).append(entry)
        plugins, failures = [], list(_unknown_names(environ, found))
        for key in sorted(found):
            disabled = _why_disabled(key, environ)
            if disabled is not None:
                failures.append(_disabled(key, found[key][0], disabled))
                continue
            try:
                plugins.append(_load_entry(key, found[key]))
            except PluginError as error:
                failures.append(_failure(error, found[key][0]))
        return cls(plugins, failures)

    def plugin(self, key: str) -> Plugin:
        """Give a loaded plugin. Raises: PluginError naming the loaded ones and the nearest."""
        for plugin in self.plugins:
            if plugin.key == key:
                return plugin
        known = [plugin.key for plugin in self.plugins]
        near = _nearest(key, known)
        raise PluginError(
            f"unknown plugin {key!r} (loaded: {', '.join(map(repr, known)) or 'none'})",
            plugin=key,
            hint=f"did you mean {near!r}?" if near else None,
        )


def _nearest(name: str, known: Sequence[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, n=1)), None)


def _listed(environ: Mapping[str, str], variable: str) -> frozenset[str]:
    return frozenset(name.strip() for name in environ.get(variable, "").split(",") if name.strip())


def _why_disabled(key: str, environ: Mapping[str, str]) -> str | None:
    only = _listed(environ, "ANYACCEL_PLUGINS")
    if only and key not in only:
        return f"left out by ANYACCEL_PLUGINS={environ['ANYACCEL_PLUGINS']!r}"
    if key in _listed(environ, "ANYACCEL_DISABLE_PLUGINS"):
        return f"disabled by ANYACCEL_DISABLE_PLUGINS={environ['ANYACCEL_DISABLE_PLUGINS']!r}"
    return None


def _unknown_names(environ: Mapping[str, str], found: Mapping[str, object]) -> Iterable[PluginOutcome]:
    for key in sorted(_listed(environ, "ANYACCEL_PLUGINS") - set(found)):
        yield PluginOutcome(
            key,
            OutcomeStatus.BROKEN,
            reason=f"ANYACCEL_PLUGINS names {key!r}, which is not installed",
            hint=f"installed: {', '.join(sorted(found)) or 'none'}",
            code=PluginLoadError.code,
        )


def _disabled(key: str, entry: EntryPoint, reason: str) -> PluginOutcome:
    name, version = _distribution(entry)
    return PluginOutcome(key, OutcomeStatus.DISABLED, name, version, reason=reason)


def _distribution(entry: EntryPoint) -> tuple[str | None, str | None]:
    distribution = entry.dist
    return (None, None) if distribution is None else (distribution.name, distribution.version)


def _load_entry(key: str, entries: Sequence[EntryPoint]) -> Plugin:
    distributions = sorted({_distribution(entry)[0] or "unknown" for entry in entries})
    if len({entry.value for entry in entries}) > 1 or len(distributions) > 1:
        raise PluginConflictError(
            f"plugin key {key!r} is claimed by {' and '.join(distributions)}",
            plugin=key,
            distribution=distributions[0],
            hint="uninstall one of them",
        )
    name, version = _distribution(entries[0])
    return load_plugin(key, entries[0].value, distribution=name, version=version)


def _failure(error: PluginError, entry: EntryPoint | None = None) -> PluginOutcome:
    name, version = (error.distribution, None) if entry is None else _distribution(entry)
    return PluginOutcome(
        plugin=error.plugin,
        status=OutcomeStatus.BROKEN,
        distribution=name,
        version=version,
        reason=error.message,
        hint=error.hint,
        hook="load",
        code=error.code,
        requirement=getattr(error, "requirement", None),
    )


def load_plugin(
    key: str | None, module_name: str, *, distribution: str | None = None, version: str | None = None
) -> Plugin:
    """Import one plugin and read its declaration, under the guard.

    Args: key: the entry point's name, None = the one it declares. module_name: the entry point's value.
    Raises: PluginLoadError naming the entry point, its distribution and the cause; PluginContractError.
    """
    name = key or module_name
    guarded = call_guarded(
        lambda: _import(name, module_name), timeout_seconds=LOAD_TIMEOUT_SECONDS, name=f"load-{name}"
    )
    if guarded.error is not None:
        raise _load_error(name, module_name, distribution, version, guarded.error) from guarded.error
    manager, declaration = guarded.value
    plugin_key = key or declaration.key
    _contract.check_declaration(plugin_key, declaration)
    _contract.check_contract_version(plugin_key, declaration)
    return Plugin(
        plugin_key, module_name, declaration, manager, distribution, version, misdeeds=tuple(guarded.misdeeds)
    )


def _load_error(
    name: str, module_name: str, distribution: str | None, version: str | None, error: BaseException
) -> PluginError:
    if isinstance(error, PluginError):
        plain = plain_error(error)
        assert isinstance(plain, PluginError)
        plain.plugin = name
        return plain
    what = str(error) if isinstance(error, OverrunError) else f"{type(error).__name__}: {_one_line(error)}"
    source = f"{distribution} {version}" if distribution else "no distribution"
    return PluginLoadError(
        f"plugin {name!r} ({module_name} of {source}) could not be loaded: {what}",
        plugin=name,
        distribution=distribution,
        hint=f"repair or remove it: pip uninstall {distribution}" if distribution else None,
    )


def _import(name: str, module_name: str) -> tuple[pluggy.PluginManager, Declaration]:
    module = importlib.import_module(module_name)
    manager = pluggy.PluginManager(hookspec.PROJECT_NAME)
    manager.add_hookspecs(hookspec)
    manager.register(module, name=name)
    _check_hook_names(name, manager)
    declared = manager.hook.accel_declare()
    declaration = declared[0] if declared else None
    _contract.check_answer(name, "accel_declare", declaration)
    assert isinstance(declaration, Declaration)
    if not manager.hook.accel_discover_devices.get_hookimpls():
        raise PluginContractError(
            f"plugin {name!r} has no hook accel_discover_devices",
            plugin=name,
            hook="accel_discover_devices",
            requirement="DISC-001",
        )
    return manager, declaration


def _check_hook_names(name: str, manager: pluggy.PluginManager) -> None:
    known = [hook for hook in dir(hookspec) if hook.startswith("accel_")]
    for caller in manager.get_hookcallers(manager.get_plugin(name)) or ():
        if caller.has_spec():
            continue
        if caller.name in REMOVED_HOOKS:
            warnings.warn(
                f"plugin {name!r} has the removed hook {caller.name}; use {REMOVED_HOOKS[caller.name]}",
                DeprecationWarning,
                stacklevel=2,
            )
            continue
        near = _nearest(caller.name, known)
        raise PluginLoadError(
            f"plugin {name!r} has the hook {caller.name}, which this contract does not know",
            plugin=name,
            hint=f"did you mean {near}?" if near else None,
        )
