"""Which supervisor serves which topic: rendezvous hashing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.ids import stable_hash
from planaria.protocols.skipring import placement
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.supervisor import Supervisor

SUPERVISORS = st.lists(st.integers(0, 10**6), min_size=1, max_size=9, unique=True)
TOPICS = [f"topic/{number}" for number in range(200)]


@given(SUPERVISORS)
def test_every_supervisor_is_in_every_order_once(supervisors: list[int]) -> None:
    for topic in TOPICS[:20]:
        assert sorted(preference(topic, supervisors)) == sorted(supervisors)


@given(SUPERVISORS)
def test_order_does_not_depend_on_how_supervisors_are_listed(supervisors: list[int]) -> None:
    for topic in TOPICS[:20]:
        assert preference(topic, supervisors) == preference(topic, supervisors[::-1])


@given(SUPERVISORS.filter(lambda several: len(several) > 1), st.integers(0, 8))
def test_removal_of_one_supervisor_moves_only_its_topics(
    supervisors: list[int], which: int
) -> None:
    """Section 1.3: and each to the next in its own order."""
    gone = supervisors[which % len(supervisors)]
    left = [id for id in supervisors if id != gone]
    for topic in TOPICS[:40]:
        before = preference(topic, supervisors)
        assert preference(topic, left) == tuple(id for id in before if id != gone)


@given(SUPERVISORS.filter(lambda several: len(several) > 1), st.binary(max_size=4))
def test_every_supervisor_serves_its_share_of_the_topics(
    supervisors: list[int], secret: bytes
) -> None:
    """Two on a circle may get 1 and 199 of 200; within five deviations of a fair coin's share."""
    serving = [preference(topic, supervisors, secret)[0] for topic in TOPICS]
    share = 1 / len(supervisors)
    apart = 5 * (len(TOPICS) * share * (1 - share)) ** 0.5
    for id in supervisors:
        assert abs(serving.count(id) - len(TOPICS) * share) <= apart


def test_the_topics_of_a_dead_supervisor_are_shared_by_all_others() -> None:
    """On a circle its successor would get them all."""
    orders = [preference(topic, range(4)) for topic in TOPICS]
    for gone in range(4):
        heirs = [order[1] for order in orders if order[0] == gone]
        assert all(heirs.count(id) >= len(heirs) / 6 for id in range(4) if id != gone)


def test_the_clusters_secret_keys_the_order_and_without_one_there_is_the_plain_order() -> None:
    plain = [preference(topic, range(4)) for topic in TOPICS]
    assert plain == [preference(topic, range(4), b"") for topic in TOPICS]
    keyed = [[preference(topic, range(4), key) for topic in TOPICS] for key in (b"one", b"two")]
    assert plain != keyed[0] != keyed[1] != plain
    assert all(sorted(order) == [0, 1, 2, 3] for orders in keyed for order in orders)
    keys = [b"%d" % number for number in range(99)]
    assert {preference("news", range(4), key)[0] for key in keys} == {0, 1, 2, 3}


def test_the_order_of_a_topic_is_found_once_not_in_every_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed = list[object]()

    def counted(kind: str, *rest: str | int | bytes) -> int:
        hashed.append(rest)
        return stable_hash(kind, *rest)

    monkeypatch.setattr(placement, "stable_hash", counted)
    supervisor = Supervisor(3, (1, 3, 5, 7), b"placed once")
    for topic in TOPICS:
        served = supervisor.serve(topic)
        assert served is not None
        served.database.entries = [9]
    for _ in range(3):
        supervisor.on_timeout()
    assert len(hashed) == 4 * len(TOPICS)
    assert len({served.topic for served in supervisor.topics.values()}) == len(TOPICS)
