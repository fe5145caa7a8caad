"""The imaginary vendor's runtime: README.md's manual as a program of its own, so that the resolver can be held against it.

It imports nothing of this package. Chips that open come on stdin, the names of the visible units go to stdout.
"""

import json
import os
import sys

chips = json.load(sys.stdin)
whole_chips = os.environ.get("EXAMPLE_CORES_PER_UNIT", "1") == "2"
units = {}
for chip in chips:
    for part in [chip] if whole_chips else chip["cores"]:
        units[part["unit"]] = part["uuid"]

wanted = set()
for entry in os.environ.get("EXAMPLE_VISIBLE_UNITS", "").split(","):
    digits = entry.strip(" ")
    if digits and set(digits) <= set("0123456789") and len(digits) < 10:
        wanted.add(int(digits))

visible = [number for number in sorted(units) if number in wanted] or sorted(units)
sys.stdout.write(json.dumps([units[number] for number in visible]))
