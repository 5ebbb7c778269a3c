"""The directory: topics of all supervisors, members of topics, nothing that was not asked for."""

from collections.abc import Sequence
from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import LinkDown, LinkUp, Send, Supervisors
from planaria.protocols.skipring.directory import (
    KEPT_MAX,
    PAGES_MAX,
    PATTERNS_MAX,
    SOUGHT_MAX,
    SWEEP_EVERY,
    WANTED_MAX,
    Directory,
    Seek,
    widest,
)
from planaria.protocols.skipring.directory_messages import (
    MEMBERS_MAX,
    PAGE_MAX,
    AskMembers,
    AskTopics,
    Members,
    Topics,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.register import AUDIT_EVERY, SCAN_MAX
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.walk import ANSWER_MAX

ASKER, ONE, TWO = 7, 100, 101


def supervisor(id: NodeId, topics: dict[str, Sequence[NodeId]]) -> Directory:
    """The directory of a supervisor that serves these topics."""
    chief = Supervisor(id, (id,))
    for topic, members in topics.items():
        served = chief.serve(topic)
        assert served is not None
        served.database.entries = list(members)
    return Directory(id, (id,), Random(id), chief)


def asker(*supervisors: NodeId) -> Directory:
    return Directory(ASKER, supervisors or (ONE,), Random(1))


def talk(asking: Directory, *answering: Directory, timeouts: int = 1) -> int:
    """Let time pass at the asker, with links that lose nothing; returns how many were asked."""
    at = {one.id: one for one in answering}
    asked = 0
    for _ in range(timeouts):
        sends = asking.on_timeout()
        for one in answering:
            one.on_timeout()
        while sends:
            asked += len(sends)
            sends = settle(asking, at, sends)
    return asked


def settle(asking: Directory, at: dict[NodeId, Directory], sends: list[Send]) -> list[Send]:
    """Answer questions; returns what is asked then."""
    asked = [it for it in sends if it.target in at]
    answers = [answer for it in asked for answer in at[it.target].on_message(it.message)]
    return [more for it in answers for more in asking.on_message(it.message)]


def only(sends: Sequence[Send], target: NodeId) -> Message:
    (found,) = [it.message for it in sends if it.target == target]
    return found


def test_topics_of_all_supervisors_are_learned_by_pattern() -> None:
    one = supervisor(ONE, {"weather/asia": [1], "weather": [1], "weatherman": [1]})
    two = supervisor(TWO, {"weather/europe/west": [2], "sports": [2]})
    asking = asker(ONE, TWO)
    assert asking.topics("weather/#") == []
    assert not asking.complete("weather/#")
    talk(asking, one, two)
    assert asking.topics("weather/#") == ["weather", "weather/asia", "weather/europe/west"]
    assert asking.topics("+/asia") == ["weather/asia"]
    assert asking.complete("weather/#")
    assert asking.topics("weather/>") == asking.topics("weather/#")
    assert asking.complete("weather/>")
    assert sorted(asking.known) == ["weather", "weather/asia", "weather/europe/west"]
    with pytest.raises(UsageError, match="last level"):
        asking.topics("a/#/b")


def test_a_new_topic_is_found_and_one_that_nobody_names_any_more_is_forgotten() -> None:
    one = supervisor(ONE, {"a": [1]})
    asking = asker()
    asking.want("#")
    talk(asking, one)
    assert one.register is not None
    del one.register.supervisor.topics["a"]
    one.register.supervisor.serve("b")
    talk(asking, one, timeouts=4)
    assert asking.topics("#") == ["a", "b"]
    talk(asking, one, timeouts=KEPT_MAX + SWEEP_EVERY)
    assert asking.topics("#") == ["b"]


def test_many_topics_come_in_pages_that_are_asked_for_at_once() -> None:
    names = [f"t/{number:05}" for number in range(3 * PAGE_MAX + 1)]
    one, asking = supervisor(ONE, {name: [1] for name in names}), asker()
    asking.want("t/+")
    assert talk(asking, one) == 4
    assert asking.topics("t/+") == names
    assert asking.complete("t/+")


def test_an_answer_looks_at_so_many_topics_and_no_more() -> None:
    topics: dict[str, Sequence[NodeId]] = {f"x/{n:05}": [1] for n in range(SCAN_MAX)}
    one = supervisor(ONE, topics | {"x/z/last": [1]})
    (answer,) = one.on_message(AskTopics(ASKER, "x/+/last", "", 5))
    assert answer.message == Topics(ONE, 5, [], f"x/{SCAN_MAX - 1:05}")
    (answer,) = one.on_message(AskTopics(ASKER, "x/+/last", f"x/{SCAN_MAX - 1:05}", 6))
    assert answer.message == Topics(ONE, 6, ["x/z/last"], None)


def test_damage_to_what_a_supervisor_remembers_of_its_topics_does_not_last() -> None:
    one, asking = supervisor(ONE, {"a": [1], "b": [1]}), asker()
    asking.want("#")
    talk(asking, one)
    assert one.register is not None
    one.register._names = ["ghost"]
    talk(asking, one, timeouts=KEPT_MAX + AUDIT_EVERY + 2 * SWEEP_EVERY)
    assert asking.topics("#") == ["a", "b"]


def test_more_pages_than_a_timeout_may_ask_for_wait_for_the_next_one() -> None:
    asking = asker()
    asking.want("#")
    sends = asking.on_timeout()
    pages = 0
    while sends:
        question = only(sends, ONE)
        assert isinstance(question, AskTopics)
        pages += 1
        page = Topics(ONE, question.walk, [f"{pages:06}"], f"{pages:06}")
        sends = asking.on_message(page)
    assert pages == PAGES_MAX + 1
    question = only(asking.on_timeout(), ONE)
    assert isinstance(question, AskTopics)
    assert question.after == f"{pages:06}"
    assert not asking.walks[ONE].silent


def test_an_answer_that_was_not_asked_for_is_not_believed() -> None:
    asking = asker()
    asking.want("a/#")
    question = only(asking.on_timeout(), ONE)
    assert isinstance(question, AskTopics)
    asking.on_message(Topics(ONE, question.walk + 1, ["a/ghost"], None))
    asking.on_message(Topics(TWO, question.walk, ["a/ghost"], None))
    asking.on_message(Members(ONE, "a/ghost", [3], 1))
    assert asking.known == {}
    assert asking.sought == {}
    wrong = ["b", "a/+", "a/\0", "a/\n", "a/\x1b[2J", "a/\x9b", "$SYS/a"]
    asking.on_message(Topics(ONE, question.walk, ["a/true", *wrong], None))
    assert list(asking.known) == ["a/true"]
    asking.on_message(Topics(ONE, question.walk, ["a/again"], None))
    assert list(asking.known) == ["a/true"]


def test_a_supervisor_that_is_silent_is_asked_ever_more_rarely_and_not_waited_for() -> None:
    one, asking = supervisor(ONE, {"a": [1]}), asker(ONE, TWO)
    asking.want("#")
    talk(asking, one)
    assert not asking.complete("#")
    talk(asking, one, timeouts=3 * ANSWER_MAX + 3)
    assert asking.complete("#")
    asked = sum(any(it.target == TWO for it in asking.on_timeout()) for _ in range(200))
    assert 2 <= asked <= 200 // (ANSWER_MAX << 4) + 1
    asking.on_command(LinkUp(TWO))
    assert not asking.complete("#")
    asking.on_command(LinkDown(TWO))
    asking.on_command(LinkDown(TWO))
    assert asking.complete("#")


def test_nobody_has_told_everything_while_no_supervisor_answers() -> None:
    asking = asker(TWO)
    asking.want("#")
    talk(asking, timeouts=100)
    assert not asking.complete("#")
    assert not Directory(ASKER, (), Random(1)).complete("#")


def test_another_set_of_supervisors_is_asked_from_then_on() -> None:
    one, two, asking = supervisor(ONE, {"a": [1]}), supervisor(TWO, {"b": [1]}), asker(ONE)
    asking.want("#")
    talk(asking, one, two)
    asking.on_command(Supervisors((TWO,)))
    assert not asking.complete("#")
    talk(asking, one, two, timeouts=4)
    assert asking.topics("#") == ["a", "b"]
    assert asking.complete("#")
    talk(asking, one, two, timeouts=KEPT_MAX + SWEEP_EVERY)
    assert asking.topics("#") == ["b"]


def test_what_nobody_looks_at_is_not_asked_for() -> None:
    one, asking = supervisor(ONE, {"a": [1]}), asker()
    assert talk(asking, one, timeouts=20) == 0
    asking.topics("#")
    assert talk(asking, one, timeouts=20) > 3
    talk(asking, one, timeouts=WANTED_MAX)
    assert talk(asking, one, timeouts=20) == 0


def test_patterns_and_sought_topics_are_bounded() -> None:
    asking = asker()
    for number in range(PATTERNS_MAX + 3):
        asking.want(f"{number}/#")
    for number in range(SOUGHT_MAX + 50):
        asking.members(f"{number}")
    assert len(asking.wanted) == PATTERNS_MAX
    assert f"{PATTERNS_MAX + 2}/#" in asking.wanted
    assert len(asking.sought) == SOUGHT_MAX


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["a/b", "a/#", "a/+"], ["a/#"]),
        (["#", "+/#"], ["#"]),
        (["+/#", "#"], ["+/#"]),
        (["a/+", "+/b"], ["a/+", "+/b"]),
        ([], []),
    ],
)
def test_only_patterns_that_no_other_covers_are_asked_for(
    patterns: list[str], found: list[str]
) -> None:
    assert widest(patterns) == found


TOPIC = "news"
FIRST, SECOND = preference(TOPIC, (ONE, TWO))


def test_members_are_unknown_until_a_supervisor_has_named_some_and_then_their_number() -> None:
    chief, asking = supervisor(FIRST, {TOPIC: range(50)}), asker(ONE, TWO)
    assert asking.members(TOPIC) is None
    talk(asking, chief)
    members, count = asking.members(TOPIC) or ([], 0)
    assert count == 50
    assert len(set(members)) == MEMBERS_MAX
    assert set(members) <= set(range(50))
    talk(asking, chief, timeouts=20)
    assert asking.members(TOPIC) != (members, count)


def test_who_seeks_members_asks_at_once_and_not_twice_in_a_turn() -> None:
    chief, asking = supervisor(FIRST, {TOPIC: [5]}), asker(ONE, TWO)
    sends = asking.on_command(Seek(TOPIC))
    assert only(sends, FIRST) == AskMembers(ASKER, TOPIC)
    assert asking.on_command(Seek(TOPIC)) == []
    assert settle(asking, {FIRST: chief}, sends) == []
    assert asking.members(TOPIC) == ([5], 1)
    assert asking.on_command(Seek("a/#")) == []


def test_the_next_supervisor_is_asked_when_the_first_is_silent() -> None:
    chief, asking = supervisor(SECOND, {TOPIC: [5]}), asker(ONE, TWO)
    asking.members(TOPIC)
    talk(asking, chief)
    assert asking.members(TOPIC) is None
    talk(asking, chief, timeouts=2)
    assert asking.members(TOPIC) == ([5], 1)


def test_nobody_is_believed_of_the_first_supervisor_and_of_another_only_in_its_place() -> None:
    asking = asker(ONE, TWO)
    asking.members(TOPIC)
    asking.on_timeout()
    asking.on_message(Members(SECOND, TOPIC, [], 0))
    assert asking.members(TOPIC) is None
    asking.on_message(Members(FIRST, TOPIC, [], 0))
    assert asking.members(TOPIC) == ([], 0)
    talk(asking, supervisor(SECOND, {}), timeouts=12)
    assert asking.members(TOPIC) == ([], 0)


def test_the_accused_are_named_only_if_there_is_nobody_else() -> None:
    chief = supervisor(ONE, {TOPIC: [1, 2], "other": [3]})
    assert chief.register is not None
    for served in chief.register.supervisor.topics.values():
        served.suspects = {1: 5, 3: 5}
    (answer,) = chief.on_message(AskMembers(ASKER, TOPIC))
    assert answer.message == Members(ONE, TOPIC, [2], 2)
    (answer,) = chief.on_message(AskMembers(ASKER, "other"))
    assert answer.message == Members(ONE, "other", [3], 1)


def test_who_does_not_supervise_answers_nothing() -> None:
    assert asker().on_message(AskTopics(ONE, "#", "", 1)) == []
    assert asker().on_message(AskMembers(ONE, TOPIC)) == []
    assert supervisor(ONE, {}).on_message(AskTopics(ASKER, "a/#/b", "", 1)) == []


def test_a_number_that_is_not_certain_is_asked_for_in_every_timeout_until_it_is() -> None:
    asking = asker(ONE)
    asking.on_command(Seek(TOPIC))
    assert not asking.settled(TOPIC)
    asking.on_message(Members(ONE, TOPIC, [5], 1, settled=False))
    for _ in range(3):
        assert (asking.members(TOPIC), asking.settled(TOPIC)) == (([5], 1), False)
        assert only(asking.on_timeout(), ONE) == AskMembers(ASKER, TOPIC)
        asking.on_message(Members(ONE, TOPIC, [5], 1, settled=False))
    asking.on_timeout()
    asking.on_message(Members(ONE, TOPIC, [5, 6], 2))
    assert asking.settled(TOPIC)
    assert asking.on_timeout() == []


def test_a_supervisor_says_whether_there_may_be_more_members() -> None:
    chief = supervisor(ONE, {TOPIC: [1]})
    assert chief.register is not None
    chief.register.supervisor.topics[TOPIC].unsettle(1)
    (answer,) = chief.on_message(AskMembers(ASKER, TOPIC))
    assert answer.message == Members(ONE, TOPIC, [1], 1, settled=False)
    (answer,) = chief.on_message(AskMembers(ASKER, "new"))
    assert answer.message == Members(ONE, "new", [], 0, settled=True)
