"""Run the command line with `python -m anyaccel_cli`."""

from __future__ import annotations

from anyaccel_cli.start import main

if __name__ == "__main__":
    main()
