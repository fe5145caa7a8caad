"""Where the scripts `accel-cli` and `anyaccel-cli` begin: Ctrl-C while the rest is imported ends them without a traceback."""

__all__ = ["main"]


def main() -> None:
    """Import the command line and hand over to it."""
    try:
        from anyaccel_cli.main import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()
