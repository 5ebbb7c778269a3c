"""Work on Spark that Ctrl-C interrupts, and whose failures are one line.

Ctrl-C in the middle of an action leaves PySpark's socket unusable. So work runs in a thread of its
own and the main thread, the only one that hears Ctrl-C, just waits for it.
"""

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from planaria.core.errors import PlanariaError, UsageError
from planaria.spark.sessions import plain

STOP_SECONDS_MAX = 5.0  # a worker has two seconds to end before Spark kills it
LOOK_SECONDS = 0.2
SPARK_ERRORS = (Py4JError, PySparkException, ConnectionError, EOFError)

Made = TypeVar("Made")


class SweepFailed(PlanariaError):
    """Spark gave up; what is done is kept."""


class WorkerDied(SweepFailed):
    """The workers of a batch died, as often as Spark tries a task."""


class Stopped(KeyboardInterrupt):
    """The user interrupted the work; the text says what is done and how to resume."""


def watched(
    spark: SparkSession,
    name: str,
    work: Callable[[], Made],
    progress: Callable[[], str],
    look: Callable[[], None] = lambda: None,
) -> Made:
    """What `work` gives; `progress` says how much is done when it is stopped or fails.

    `look` is called now and then meanwhile. Watched work may have parts that are watched, too.
    """
    context, made = spark.sparkContext, Future[Made]()
    group = f"planaria-{name}-{time.monotonic_ns()}"
    outermost = threading.current_thread() is threading.main_thread()

    def act() -> None:
        try:
            if outermost:  # a part belongs to the group of the whole: threads inherit it
                context.setJobGroup(group, name, interruptOnCancel=True)
            made.set_result(work())
        except BaseException as error:
            made.set_exception(error)

    thread = InheritableThread(target=act, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            wait([made], LOOK_SECONDS)  # a `join` that is interrupted takes the thread for ended
            look()
    except KeyboardInterrupt:
        _cancel(context, group, made)
        raise Stopped(f"interrupted: {progress()}") from None
    try:
        return made.result(timeout=0)
    except SPARK_ERRORS as error:
        raise _failure(name, error, progress()) from error


def _cancel(context: SparkContext, group: str, made: Future[Made]) -> None:
    """Again and again: between two actions there is nothing to cancel."""
    end = time.monotonic() + STOP_SECONDS_MAX
    with suppress(*SPARK_ERRORS):
        while not made.done() and time.monotonic() < end:
            context.cancelJobGroup(group)
            wait([made], LOOK_SECONDS)


def _failure(name: str, error: Exception, progress: str) -> PlanariaError:
    ours = re.search(r"core\.errors\.UsageError: (.*)", str(error))
    if ours:
        return UsageError(f"{ours[1]}; {progress}")
    if "Python worker exited unexpectedly" in str(error):
        return WorkerDied(f"{name}: a worker died repeatedly; {progress}")
    lines = [line for line in str(error).splitlines() if "Exception" in line]
    reason = plain((lines or str(error).splitlines() or [repr(error)])[0].strip())
    gone = "Java side is empty" in str(error)
    if gone or isinstance(error, Py4JNetworkError | ConnectionError | EOFError):
        reason = "Spark's Java process is gone, killed or out of memory"
    return SweepFailed(f"{name}: {reason}; {progress}")
