"""A calm topic that is left alone for a few intervals behaves as if it had been looked at."""

import pytest

from planaria.core.chance import stream
from planaria.core.node import Command, Effect, LinkDown, Publish, Unsubscribe
from planaria.core.state import encode_state
from planaria.protocols.skipring import pace as pace_module
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.pace import PACE_MAX, REST_MAX, Pace
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.place import Place
from planaria.protocols.skipring.rest import make_up, silence
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.simulator.trial import Spec, Trial

DEEP = 120  # intervals after which a topic is as calm as it gets
LOOKED = 60  # intervals that are compared


def test_a_pace_rests_no_longer_than_until_it_speaks() -> None:
    pace = Pace(PACE_MAX)
    spoke, looked = [], 0
    for interval in range(64):
        if pace.rests():
            continue
        looked += 1
        pace.make_up()
        if pace.on_timeout(doubt=False):
            spoke.append(interval)
        pace.lie_down()
    assert spoke == [0, 2, 6, 14, 30, 46, 62]
    assert looked < 64 / 2


@pytest.mark.parametrize(("rest", "rested"), [(10**9, 0), (3, -5), (-1, 2), (2, 10**9)])
def test_no_garbage_lets_a_pace_rest_for_long(rest: int, rested: int) -> None:
    pace = Pace(PACE_MAX)
    pace.pace = pace.left = PACE_MAX
    pace.rest, pace.rested = rest, rested
    assert sum(pace.rests() for _ in range(100)) <= REST_MAX
    assert 0 <= pace.make_up() <= REST_MAX


def run(monkeypatch: pytest.MonkeyPatch, rest_max: int, n: int, seed: int, what: str) -> Trial:
    """The same run, with so much rest at most."""
    monkeypatch.setattr(pace_module, "REST_MAX", rest_max)
    overlay = RingOverlay(supervisors=2, pace=PACE_MAX)
    trial = Trial(overlay, Spec(n=n, seed=seed, start="legitimate"))
    for _ in range(DEEP):
        trial.simulator.run_interval()
    peers = [it for it in trial.simulator.nodes.values() if isinstance(it, Peer)]
    one, *_, other = stream(seed, "members").sample(peers, len(peers)) * 2
    said: dict[str, Command] = {
        "publish": Publish(TOPIC, b"news"),
        "leave": Unsubscribe(TOPIC),
        "link": LinkDown(other.id),
    }
    if what == "crash":
        trial.simulator.remove(one.id)
    elif what != "nothing":
        trial.simulator.command(one.id, said[what])
    for _ in range(LOOKED):
        trial.simulator.run_interval()
    for node in trial.simulator.nodes.values():
        if isinstance(node, Peer):
            for membership in node.topics.values():
                make_up(membership.subscriber)
                membership.subscriber.pace.rest = 0
                assert node.clock.seconds is not None
                membership.history.horizon.catch_up()
                membership.history.read_clock(node.clock.seconds)
        elif isinstance(node, Supervisor):
            for served in node.topics.values():
                served.make_up()
                served.pace.rest = 0
    return trial


@pytest.mark.parametrize("what", ["nothing", "publish", "leave", "link", "crash"])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_who_rested_is_as_who_was_looked_at(
    monkeypatch: pytest.MonkeyPatch, n: int, what: str
) -> None:
    """The same messages at the same times, and the same memory at the end."""
    if n == 1 and what == "crash":
        pytest.skip("nobody is left")
    rested = run(monkeypatch, REST_MAX, n, 3 * n, what)
    looked = run(monkeypatch, 0, n, 3 * n, what)
    assert rested.simulator.sent == looked.simulator.sent
    for id, node in rested.simulator.nodes.items():
        other = looked.simulator.nodes[id]
        assert encode_state(node.state()) == encode_state(other.state()), type(node)


def test_a_calm_ring_rests() -> None:
    trial = Trial(RingOverlay(pace=PACE_MAX), Spec(n=6, seed=1, start="legitimate"))
    for _ in range(DEEP):
        trial.simulator.run_interval()
    rested = 0
    for _ in range(PACE_MAX):
        trial.simulator.run_interval()
        for node in trial.simulator.nodes.values():
            topics = node.topics.values() if isinstance(node, Peer) else ()
            rested += sum(it.subscriber.pace.rested > 0 for it in topics)
    assert rested > 6 * PACE_MAX / 2


def test_silence_runs_on_in_a_rest() -> None:
    trial = Trial(RingOverlay(pace=PACE_MAX), Spec(n=3, seed=1, start="legitimate"))
    for _ in range(DEEP):
        trial.simulator.run_interval()
    peer = next(it for it in trial.simulator.nodes.values() if isinstance(it, Peer))
    one = peer.topics[TOPIC].subscriber
    while not one.pace.resting:
        peer.on_timeout()
    before = silence(one)
    peer.on_timeout()
    assert one.pace.rested
    assert silence(one) == (before[0] + 1, before[1] + 1)


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_a_calm_member_is_looked_at_when_it_is_time_to_speak(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    """Those without children too: nobody's sum can grow old there."""
    trial = Trial(RingOverlay(pace=PACE_MAX), Spec(n=n, seed=1, start="legitimate"))
    for _ in range(DEEP):
        trial.simulator.run_interval()
    look, looks = Membership.on_timeout, list[int]()

    def counted(one: Membership) -> list[Effect]:
        looks.append(one.subscriber.id)
        return look(one)

    monkeypatch.setattr(Membership, "on_timeout", counted)
    for _ in range(4 * PACE_MAX):
        trial.simulator.run_interval()
    assert 4 * n <= len(looks) < 6 * n


@pytest.mark.parametrize("false", [9, -1, 2**63, 10**30])
def test_a_shortcut_to_nobody_or_to_myself_is_dropped_and_others_stay(false: int) -> None:
    place = Place(9)
    place.label, place.pred, place.succ = 0, (15, 25), (8, 18)
    place.shortcuts = dict.fromkeys(place.around.slots, 7)
    assert len(place.shortcuts) > 1
    wrong = min(place.shortcuts)
    place.shortcuts |= {wrong: false, max(place.shortcuts) + 40: 7}
    place.repair()
    assert place.shortcuts == dict.fromkeys(place.around.slots - {wrong}, 7)
