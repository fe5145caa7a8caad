"""Every error of anyaccel: a stable code for programs, a sentence for people, a hint where one helps."""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AccelError",
    "AccelWarning",
    "CapabilityNotSupportedError",
    "DeadlineExceededError",
    "DeviceError",
    "DeviceLostError",
    "DeviceNotFoundError",
    "DriverCallError",
    "DriverNotFoundError",
    "FileUnavailableError",
    "InvalidResourceRequestError",
    "MachineError",
    "NotGrantedError",
    "PluginConflictError",
    "PluginContractError",
    "PluginError",
    "PluginLoadError",
    "PluginVersionError",
    "RecordingError",
    "ResourceError",
    "ResourceUnavailableError",
    "SelectionNotExpressibleError",
    "UnavailableError",
    "VisibilityConflictError",
    "VisibilityError",
]


class AccelError(Exception):
    """Root of all errors raised on purpose.

    Args: message: lower case, one sentence, no final period. hint: what to do next, when we know it.
    """

    code: ClassVar[str] = "accel-error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the state alone, so that an error crosses a process border with all it carries."""
        return (rebuild, (type(self), self.args, self.__dict__))


def rebuild(cls: type[AccelError], args: tuple[object, ...], state: dict[str, object]) -> AccelError:
    """Make an error of its parts, without its constructor."""
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class PluginError(AccelError):
    """Something is wrong with a plugin, not with the machine."""

    code = "plugin-error"

    def __init__(self, message: str, *, plugin: str, distribution: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.plugin = plugin
        self.distribution = distribution


class PluginLoadError(PluginError):
    """A plugin could not be imported or registered."""

    code = "plugin-load-failed"


class PluginConflictError(PluginError):
    """Two distributions claim one plugin key."""

    code = "plugin-conflict"


class PluginContractError(PluginError):
    """A hook answered outside its contract; `requirement` names the rule it broke."""

    code = "plugin-contract-broken"

    def __init__(
        self,
        message: str,
        *,
        plugin: str,
        hook: str,
        requirement: str,
        distribution: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{message} [{requirement}]", plugin=plugin, distribution=distribution, hint=hint)
        self.hook = hook
        self.requirement = requirement


class PluginVersionError(PluginContractError):
    """A plugin was written for another major version of the contract."""

    code = "plugin-contract-version"


class CapabilityNotSupportedError(PluginError):
    """The plugin declared that this family cannot do what was asked."""

    code = "capability-not-supported"


class DeviceError(AccelError):
    """Something is wrong with one device or its driver."""

    code = "device-error"

    def __init__(self, message: str, *, device_id: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.device_id = device_id


class DriverNotFoundError(DeviceError):
    """The vendor's library or kernel module is absent."""

    code = "driver-not-found"


class DriverCallError(DeviceError):
    """A vendor call failed; the vendor's own code and function name are kept."""

    code = "driver-call-failed"

    def __init__(
        self,
        message: str,
        *,
        vendor_code: int | str | None = None,
        vendor_function: str | None = None,
        device_id: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, device_id=device_id, hint=hint)
        self.vendor_code = vendor_code
        self.vendor_function = vendor_function


class DeviceNotFoundError(DeviceError):
    """No device, or more than one, answers to a name."""

    code = "device-not-found"


class DeviceLostError(DeviceError):
    """The device was there and no longer answers."""

    code = "device-lost"


class VisibilityError(AccelError):
    """A mask cannot be written or read as asked."""

    code = "visibility-error"


class SelectionNotExpressibleError(VisibilityError):
    """No environment of this family shows exactly the selection."""

    code = "selection-not-expressible"


class NotGrantedError(VisibilityError):
    """The selection holds devices outside what the starting environment grants."""

    code = "not-granted"


class VisibilityConflictError(VisibilityError):
    """Two families would write one variable differently."""

    code = "visibility-conflict"


class ResourceError(AccelError):
    """A request for devices is wrong or cannot be met."""

    code = "resource-error"


class InvalidResourceRequestError(ResourceError):
    """The request itself is malformed: unknown key or impossible amount."""

    code = "invalid-resource-request"


class ResourceUnavailableError(ResourceError):
    """This node can never meet the request."""

    code = "resource-unavailable"


class MachineError(AccelError):
    """The machine, or the folder or archive that stands for one, cannot be read as asked."""

    code = "machine-error"


class FileUnavailableError(MachineError):
    """One file below the machine's root is missing, denied or broken."""

    code = "file-unavailable"

    def __init__(self, message: str, *, path: str, is_missing: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.is_missing = is_missing


class UnavailableError(MachineError):
    """A live question was asked where none can be answered, or the recorded answer is that none came."""

    code = "question-unavailable"

    def __init__(self, message: str, *, reason_code: str = "unavailable", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason_code = reason_code


class DeadlineExceededError(MachineError):
    """The time given for looking at the machine is over."""

    code = "deadline-exceeded"


class RecordingError(MachineError):
    """A recording or machine description is malformed, too large or unsafe."""

    code = "recording-invalid"


class AccelWarning(UserWarning):
    """Root of all warnings issued on purpose."""
