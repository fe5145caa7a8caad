"""Compare anyaccel's answers with what machines' own tools said: `python conformance/compare_captures.py FOLDER...`.

Prints one line a machine: what was compared and how many values, or why it was skipped. Ends with 1 when anything differs, when
an archive of `/sys` or KFD files could not be compared, or when nothing was; with 2 when used wrongly.
"""

from __future__ import annotations

import sys

from anyaccel_conformance.captures.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
