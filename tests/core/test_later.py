"""A module that is imported later is not there before, and the same then."""

import subprocess
import sys

import pytest

from planaria.core.later import Later


def test_a_module_is_imported_when_something_of_it_is_used() -> None:
    code = (
        "import sys; from planaria.core.later import Later; it = Later('colorsys');"
        "print('colorsys' in sys.modules); found = it.rgb_to_hsv; import colorsys;"
        "print(found is colorsys.rgb_to_hsv, 'rgb_to_hsv' in vars(it))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue True\n"


def test_what_a_module_does_not_have_it_does_not_have_later() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        Later("colorsys").nothing  # noqa: B018 - to be looked for
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        Later("no_such_module").anything  # noqa: B018 - to be looked for
