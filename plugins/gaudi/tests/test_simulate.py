"""What a description may say of Gaudi cards."""

from __future__ import annotations

import pytest

from anyaccel.errors import RecordingError

CARD = '[[card]]\nplugin = "gaudi"\nmodel = "gaudi2"\naddress = "0000:10:00.0"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CARD.replace("gaudi2", "gaudi9"), "gaudi9"),
        (CARD + "colour = 1\n", "colour"),
        (CARD + 'module = "0"\n', "whole number"),
        (CARD + "minor = -1\n", "whole number"),
        ('[gaudi]\nentries = "new"\n' + CARD, "'new'"),
        (CARD + '[[fault]]\nkind = "melted"\nplugin = "gaudi"\n', "melted"),
    ],
)
def test_what_nobody_knows_is_refused(text, words, machine_of):
    """Each with a sentence that names it."""
    with pytest.raises(RecordingError, match=words):
        machine_of(text)


@pytest.mark.parametrize("fault", ["library-missing", "library-crashes"])
def test_silent_library_leaves_the_files(fault, view_of):
    """Module ids are known all the same."""
    view = view_of(CARD + f'[[fault]]\nkind = "{fault}"\nplugin = "gaudi"\n')

    assert (view.roots[0].memory_bytes, view.roots[0].numbers["module"]) == (None, 0)


def test_without_a_bound_card_there_is_no_driver(machine_of):
    """No entry, no module, no device file."""
    machine = machine_of(CARD + 'driver = "vfio-pci"\n')

    assert not any(machine.exists(path) for path in ("/dev/accel/accel0", "/sys/module/habanalabs/version"))
