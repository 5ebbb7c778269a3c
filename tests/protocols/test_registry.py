"""The overlays of the product by name: each can be made, with the options it says it has."""

import inspect
import subprocess
import sys

import pytest

from planaria.core.errors import UsageError
from planaria.protocols.registry import PRODUCTS, STRATEGIES, find_product
from planaria.protocols.routing import strategies
from planaria.simulator.worlds.registry import REGISTERED, find_kind


@pytest.mark.parametrize("name", PRODUCTS)
def test_each_overlay_is_made_by_name_with_its_options(name: str) -> None:
    product = find_product(name)
    parameters = inspect.signature(product.load()).parameters
    for option in product.options:
        parameter = parameters[option.name.replace("-", "_")]
        assert parameter.default == option.default, option.name
    given = {option.name.replace("-", "_"): option.default for option in product.options}
    if name == "mobile":
        with pytest.raises(UsageError, match="in reach"):
            product.make(**given)
    else:
        overlay = product.make(**given)
        assert overlay.name == name
        assert overlay.messages


def test_the_simulator_knows_the_same_overlays_and_all_their_options() -> None:
    assert sorted(REGISTERED) == sorted(PRODUCTS)
    for name, product in PRODUCTS.items():
        kind = find_kind(name)
        assert kind.make().name == name
        assert {it.name for it in product.options} <= {it.name for it in kind.options}


def test_an_unknown_overlay_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean gossip"):
        find_product("gosip")


def test_the_strategies_are_those_of_the_routing() -> None:
    assert strategies.STRATEGIES == STRATEGIES


def test_no_overlay_is_loaded_until_it_is_asked_for() -> None:
    program = (
        "import sys\nfrom planaria.protocols.registry import PRODUCTS\n"
        "print([it for it in sys.modules if it.startswith('planaria.protocols.')])"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert finished.stdout.strip() == "['planaria.protocols.registry']"
