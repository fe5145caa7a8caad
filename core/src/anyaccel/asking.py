"""One question to every plugin that has hardware: readings, findings. Each in its own guard and, live, its own child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anyaccel import _probe, _probe_child
from anyaccel.errors import AccelError
from anyaccel.inventory import Inventory
from anyaccel.machine import Answers, LiveAnswers, Machine, StoredAnswers
from anyaccel.registry import Plugin, Registry

__all__ = ["Asked", "Asker", "needs_child"]


@dataclass(frozen=True)
class Asked:
    """What one plugin answered.

    Args: answer: what the hook gives, None when there is none. reason: why there is none, and None when the plugin does not
        implement the hook at all. is_broken: the plugin's own fault, not the driver's. misdeeds: forbidden side effects.
    """

    plugin: str
    answer: Any = None
    reason: str | None = None
    hint: str | None = None
    is_broken: bool = False
    misdeeds: tuple[str, ...] = ()


def needs_child(machine: Machine) -> bool:
    """Whether a driver is really asked, or a stored answer acts out a hang or crash."""
    return machine.is_live or any(_is_dangerous(answers) for answers in machine.answers.values())


def _is_dangerous(answers: Answers) -> bool:
    return isinstance(answers, LiveAnswers) or (isinstance(answers, StoredAnswers) and answers.has_faults)


class Asker:
    """Asks the plugins of one machine, again and again; drivers stay started between questions.

    Use it from one thread that outlives it, and close it.
    """

    def __init__(self, inventory: Inventory, machine: Machine, registry: Registry) -> None:
        self._inventory = inventory
        self._machine = machine
        self._registry = registry
        self._session = _probe.ProbeSession()
        self._is_isolated = needs_child(machine)

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every child."""
        self._session.close()

    def ask(
        self,
        hook: str,
        *,
        timeout_seconds: float = 10.0,
        on_progress: Callable[[str], None] | None = None,
    ) -> tuple[Asked, ...]:
        """Ask every plugin that has devices, all at once; in order of key.

        Args: hook: one that takes machine and devices. timeout_seconds: for everything together.
        """
        plugins = [plugin for plugin in self._registry.plugins if self._inventory.view(plugin.key).devices]
        able = [plugin for plugin in plugins if plugin.implements(hook)]
        requests = [self._request(plugin, hook, timeout_seconds) for plugin in able]
        if self._is_isolated:
            results = self._session.ask(requests, on_progress)
        else:
            results = {p.key: _probe_child.run_here(p, request) for p, request in zip(able, requests, strict=True)}
        return tuple(
            _asked(plugin.key, hook, results[plugin.key]) if plugin.key in results else Asked(plugin.key)
            for plugin in sorted(plugins, key=lambda plugin: plugin.key)
        )

    def _request(self, plugin: Plugin, hook: str, timeout_seconds: float) -> _probe.ProbeRequest:
        return _probe.ProbeRequest(
            key=plugin.key,
            module_name=plugin.module_name,
            machine=self._machine.for_plugin(plugin.key),
            devices=self._inventory.view(plugin.key).devices,
            hooks=(hook,),
            timeout_seconds=min(timeout_seconds, plugin.declaration.probe_timeout_seconds),
            is_live=self._machine.is_live,
        )


def _asked(plugin: str, hook: str, result: _probe.ProbeResult) -> Asked:
    misdeeds = tuple(f"plugin {plugin!r} {misdeed}" for misdeed in result.misdeeds)
    if hook in result.answers:
        return Asked(plugin, result.answers[hook], misdeeds=misdeeds, is_broken=bool(misdeeds))
    error: AccelError | None = result.errors.get(hook)
    if error is None:
        return Asked(plugin, None, result.failure, result.hint, is_broken=True, misdeeds=misdeeds)
    from anyaccel.errors import PluginError

    is_broken = isinstance(error, PluginError) or bool(misdeeds)
    return Asked(plugin, None, error.message, error.hint, is_broken=is_broken, misdeeds=misdeeds)
