"""Work on Spark that Ctrl-C interrupts, and whose failures are one line.

Ctrl-C in the middle of an action leaves PySpark's socket unusable. So work runs in a thread of its
own and the main thread, the only one that hears Ctrl-C, just waits for it.
"""

import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, wait
from contextlib import suppress
from typing import Any, Self, TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import InheritableThread, SparkContext, inheritable_thread_target
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
        _cancel(context, group, [made])
        raise Stopped(f"interrupted: {progress()}") from None
    try:
        return made.result(timeout=0)
    except SPARK_ERRORS as error:
        raise _failure(name, error, progress()) from error


class Parts:
    """Parts of watched work that pools of threads run; the first that fails ends the others.

    Those of one pool begin in the order in which they were given.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._given: list[Future[Any]] = []

    def give(self, pool: Executor, work: Callable[..., Made], *arguments: Any) -> Future[Made]:
        """What `work` will have made of the arguments."""
        ours = inheritable_thread_target(self._spark)  # Ctrl-C ends this, too
        self._given.append(pool.submit(ours(work), *arguments))
        return self._given[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Wait for all. Raises what the first that failed raised."""
        try:
            if raised[0] is None:
                wait(self._given, return_when=FIRST_EXCEPTION)
                for it in self._given:
                    if it.done():
                        it.result()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        """End what has not ended yet."""
        for it in self._given:
            it.cancel()
        group = self._spark.sparkContext.getLocalProperty("spark.jobGroup.id")
        if group is not None:  # else it would end whatever runs without a group
            _cancel(self._spark.sparkContext, group, self._given)


def _cancel(context: SparkContext, group: str, works: Sequence[Future[Any]]) -> None:
    """Again and again: between two actions there is nothing to cancel."""
    end = time.monotonic() + STOP_SECONDS_MAX
    with suppress(*SPARK_ERRORS):
        while not all(it.done() for it in works) and time.monotonic() < end:
            context.cancelJobGroup(group)
            wait(works, LOOK_SECONDS)


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
