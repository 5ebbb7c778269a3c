"""The book: what was due to whom; delivered once, late or not; twice, or without being wanted."""

from math import inf

import pytest

from planaria.core.book import Book, Summary
from planaria.core.node import Deliver, Joined, Leave, Publish, Published, Subscribe, Unsubscribe
from planaria.core.topics import matches


def wants(subscribe: Subscribe, publish: Publish) -> bool:
    return matches(subscribe.pattern, publish.topic)


class Run:
    """A book with applications 0 (the publisher), 1 and 2, all subscribed since ever."""

    def __init__(self, *, history: bool = False, own: bool = False) -> None:
        self.book = Book(wants, within=3, history=history, own=own)
        for node in range(3):
            self.book.start(0, node)
            self.book.subscribed(node, Subscribe("news"))

    def publish(self, time: float, id: bytes = b"a", topic: str = "news", node: int = 0) -> None:
        self.book.command(time, node, Publish(topic, b"payload"))
        self.book.effect(time, node, Published(topic, id))

    def deliver(self, time: float, *nodes: int, id: bytes = b"a", client: int = 0) -> None:
        for node in nodes:
            self.book.effect(time, node, Deliver.one("news", id, b"payload", client=client))

    def missed(self, time: float) -> list[int]:
        return [it.client[0] for it in self.book.missed(time)]

    def kinds(self) -> list[str]:
        return [it.kind for it in self.book.wrong()]


def test_what_was_due_is_once_late_or_missed() -> None:
    run = Run()
    run.publish(10)
    run.deliver(11, 1)
    assert run.missed(12.9) == []  # its time has not come
    assert run.missed(13) == [2]
    run.publish(20, b"b")
    run.deliver(21, 1, id=b"b")
    run.deliver(23.5, 2, id=b"b")
    assert run.book.summary(30) == Summary(
        published=2, delivered=3, due=4, once=2, late=1, missed=1, twice=0, unwanted=0,
        never_published=0,
    )  # fmt: skip
    (violation,) = run.book.violations(30)
    assert str(violation) == "missed at 2: client 0 was not given 61 of interval 10"
    assert [run.book.when(it) for it in run.book.due(30)] == [11, None, 21, 23.5]


def test_asking_changes_nothing() -> None:
    asked, silent = Run(), Run()
    for run in (asked, silent):
        run.publish(10)
        for time in (10, 11, 13, 14):
            if run is asked:
                run.book.violations(time)
                run.book.summary(time)
            run.deliver(time, 1 if time == 11 else 0)
        run.book.command(15, 2, Subscribe("#"))
    assert asked.book.violations(20) == silent.book.violations(20) != []
    assert asked.book.summary(20) == silent.book.summary(20)


def test_a_publisher_is_owed_its_own_only_where_the_book_says_so() -> None:
    for own in (False, True):
        run = Run(own=own)
        run.publish(10)
        assert run.missed(20) == ([0, 1, 2] if own else [1, 2])


def test_wrong_deliveries() -> None:
    run = Run()
    run.publish(10)
    run.deliver(11, 1)
    run.deliver(12, 1)
    run.deliver(12, 1, client=1)  # another client of the same node, that wants nothing
    run.deliver(12, 2, id=b"?")
    run.publish(13, b"s", "sport")
    run.deliver(14, 1, id=b"s")
    assert run.kinds() == ["twice", "unwanted", "never published", "unwanted"]
    kinds = [str(it) for it in run.book.violations(12)]
    assert kinds[0] == "delivery at 1: client 0: 61 twice"
    summary = run.book.summary(12)
    assert (summary.twice, summary.unwanted, summary.never_published) == (1, 2, 1)


def test_a_subscription_is_owed_from_within_after_it_until_within_before_its_end() -> None:
    for since, until, owed in [
        (6.9, inf, True),
        (7, inf, True),
        (7.1, inf, False),
        (0, 13, False),
        (0, 13.1, True),
    ]:
        run = Run()
        run.book.command(since, 5, Subscribe("news", client=4))
        run.publish(10)
        if until < inf:
            run.book.command(until, 5, Unsubscribe("news", client=4))
        assert (5 in run.missed(20)) == owed, (since, until)


def test_joined_says_when_a_subscription_is_in_force() -> None:
    run = Run()
    run.book.command(9, 5, Subscribe("news"))
    run.publish(9.2, b"before")
    run.book.effect(9.5, 5, Joined("news"))
    run.publish(10)
    run.deliver(10, 1, 2)
    run.deliver(10, 1, 2, id=b"before")
    assert run.missed(20) == [5]


def test_with_a_history_who_comes_later_is_owed_all_of_it() -> None:
    run = Run(history=True)
    run.publish(10)
    run.deliver(11, 1, 2)
    assert run.missed(19) == []
    run.book.command(20, 5, Subscribe("news"))
    assert run.missed(25.9) == []
    assert run.missed(26) == [5]
    run.deliver(27, 5)
    assert run.missed(30) == []
    assert run.book.summary(30).late == 1


@pytest.mark.parametrize("history", [False, True])
def test_nobody_is_owed_what_it_cannot_get(history: bool) -> None:
    run = Run(history=history)
    run.publish(10)
    run.book.stop(11, 1)
    run.book.command(11, 2, Leave())
    assert run.missed(20) == []


def test_a_node_that_comes_back_wants_what_it_wanted_and_remembers_what_it_had() -> None:
    run = Run(history=True)
    run.publish(10)
    run.deliver(10.5, 1, 2)
    run.publish(10.6, b"b")
    run.deliver(10.7, 2, id=b"b")
    run.book.stop(11, 1)
    run.book.start(12, 1)
    assert run.missed(17.9) == []
    assert [it.publication.id for it in run.book.missed(18)] == [b"b"]
    run.deliver(19, 1)
    assert run.kinds() == ["twice"]


def test_a_new_application_is_owed_the_history_and_is_handed_it_again() -> None:
    run = Run(history=True)
    run.publish(10)
    run.deliver(11, 1, 2)
    run.book.forget(12, 1)
    assert run.missed(17) == []
    assert run.missed(18) == [1]
    run.deliver(18.5, 1)
    assert run.kinds() == []
    assert run.missed(20) == []
    run.book.stop(21, 1)
    run.book.forget(21, 1)
    run.book.start(22, 1)  # with nothing: whoever starts it says what it wants
    assert run.missed(40) == []
    run.book.command(41, 1, Subscribe("news"))
    assert run.missed(47) == [1]


def test_without_a_history_a_new_application_is_owed_nothing_of_before() -> None:
    run = Run()
    run.publish(10)
    run.deliver(11, 1, 2)
    run.book.forget(20, 1)
    assert run.missed(30) == []


def test_damage_excuses_what_was_under_way_and_keeps_what_arrived() -> None:
    run = Run(history=True)
    run.publish(10)
    run.deliver(11, 1)
    run.deliver(11, 2, id=b"?")
    run.book.excuse(12)
    assert run.missed(30) == []
    assert run.kinds() == []
    assert run.book.summary(30).due == 1
    run.publish(13, b"b")
    assert run.missed(30) == [1, 2]


def test_an_illegitimate_network_owes_only_a_history() -> None:
    for history in (False, True):
        run = Run(history=history)
        run.publish(10)
        run.deliver(10, 1, id=b"?")
        run.book.illegitimate(11)
        assert run.kinds() == []
        assert run.missed(20) == ([1, 2] if history else [])
        run.publish(12, b"b")
        run.deliver(12, 1, 2)
        run.deliver(12, 1, 1, id=b"b")
        assert run.kinds() == ["twice"]
        assert run.missed(20) == [2]


def test_a_publication_that_was_not_asked_for_is_known_by_its_topic() -> None:
    run = Run()
    run.book.effect(5, 0, Published("news", b"x"))
    run.deliver(6, 1, id=b"x")
    assert run.missed(9) == [2]
    assert run.kinds() == []


def test_a_refused_publication_leaves_no_trace() -> None:
    run = Run()
    run.book.command(5, 0, Publish("sport"))
    run.book.command(6, 0, Subscribe("other"))
    run.book.effect(7, 0, Published("news", b"x"))
    assert run.book.published[b"x"].command == Publish("news")
