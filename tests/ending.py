"""A plugin of pytest: who is told to end cleans up as after Ctrl-C, and Ctrl-C always counts."""

import signal


def pytest_configure() -> None:
    """So that tests leave no process behind.

    xdist tells its workers by SIGINT in the end. A shell has what it runs with `&` ignore that, and
    then also all that tests start.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
