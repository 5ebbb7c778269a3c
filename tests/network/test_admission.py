"""What a member admits: records that their publishers signed, for this topic, at a time they might.

Keys and certificates are real; the record's time is judged, never the present.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from planaria.core.errors import UsageError
from planaria.network.admission import Admissions, read_certificate
from planaria.network.charters import judge, seal_void
from planaria.network.identity import AUTHORITY_KEY, FORMER, found_cluster, issue, load_key
from planaria.network.rotation import finish_rotation, rotate
from planaria.network.tls import Credentials
from planaria.protocols.publications.admission import EVERYTHING, Admission
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.charter import (
    GRACE_SECONDS,
    OPEN,
    SLACK_SECONDS,
    Charter,
    Ends,
    next_charter,
    voiding,
    with_publishers,
)
from planaria.records.evidence import MANIFEST, PUBLISHED, STAGED, Sealer, sealer
from planaria.records.manifest import (
    Part,
    Portion,
    row_incarnation,
    seal_manifest,
    settled,
    stage_incarnation,
)
from planaria.records.record import Draft, MalformedRecord, Record, decode, seal

NOW = int(time.time()) + 3600  # certificates are made minutes after this is imported
DAY = 86_400


class Cluster:
    """An authority, two people it named, and one of another authority."""

    def __init__(self, directory: Path) -> None:
        for name in ("keys", "foreign"):
            found_cluster(directory / name, "demo")
        self.alice = Credentials(issue(directory / "keys", "alice", ("client",)))
        self.bob = Credentials(issue(directory / "keys", "bob", ("node",)))
        self.stranger = Credentials(issue(directory / "foreign", "alice", ("client",)))
        self.admissions = Admissions(self.bob)
        self.revoked: dict[bytes, int] = {}
        self.ends: Ends | None = None  # that revocations tell
        self.laid: dict[str, Charter] = {}
        self.admissions.obey(self)  # type: ignore[arg-type]

    # What charters say of themselves

    @property
    def revocations(self) -> object:
        return len(self.revoked)

    def revoked_since(self, id: bytes) -> int | None:
        return self.revoked.get(id)

    def revocation(self, id: bytes) -> Charter | None:
        since = self.revoked.get(id)
        return None if since is None else voiding(id, since, self.ends)

    def best(self, topic: str) -> Charter | None:
        return self.laid.get(topic)

    def news(self) -> Admission:
        return self.admissions("news")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(tmp_path_factory.mktemp("cluster"))


def made(
    who: Credentials, sign: Sealer | None = None, *, time: int = NOW, topic: str = "news"
) -> Record:
    sign = sign or who.sealer(PUBLISHED, topic)
    stream = (who.identity.handle, bytes(12))
    return seal(stream, 0, [Draft(b"one"), Draft(b"two")], time=time, sign=sign)


def test_a_record_is_admitted_by_whoever_knows_the_authority(cluster: Cluster) -> None:
    assert cluster.news().admits(made(cluster.alice))
    assert cluster.news().admits(made(cluster.bob))
    assert Admissions(cluster.alice)("news").admits(made(cluster.alice))
    assert Admissions(None)("news") is EVERYTHING


def plain(who: Credentials) -> Record:
    stream = (who.identity.handle, bytes(12))
    return seal(stream, 0, [Draft(b"one")], time=NOW)


FORGED: dict[str, Callable[[Cluster], Record]] = {
    "unsigned": lambda it: plain(it.alice),
    "signed by another": lambda it: made(it.alice, it.bob.sealer(PUBLISHED, "news")),
    "another's certificate": lambda it: made(
        it.alice, sealer(it.alice.der, it.bob.sign, PUBLISHED, "news")
    ),
    "moved from another topic": lambda it: made(it.alice, topic="other"),
    "another authority": lambda it: made(it.stranger),
    "no certificate": lambda it: made(it.alice, sealer(b"", it.alice.sign, PUBLISHED, "news")),
    "garbage": lambda it: made(it.alice, sealer(b"x" * 365, it.alice.sign, PUBLISHED, "news")),
    "huge": lambda it: made(
        it.alice, sealer(it.alice.der + bytes(1600), it.alice.sign, PUBLISHED, "news")
    ),
    "signed as a stage": lambda it: made(it.alice, it.alice.sealer(STAGED, "news")),
    "signed as a manifest": lambda it: made(it.alice, it.alice.sealer(MANIFEST, "")),
    "before its certificate": lambda it: made(it.alice, time=NOW - DAY),
    "after its certificate": lambda it: made(it.alice, time=NOW + 366 * DAY),
}


@pytest.mark.parametrize("how", FORGED)
def test_what_its_publisher_did_not_sign_here_is_not_admitted(cluster: Cluster, how: str) -> None:
    record = FORGED[how](cluster)
    assert not cluster.news().admits(record)
    assert cluster.news().times(record) == [] or how.endswith("its certificate")


def test_no_bit_of_a_record_can_be_changed(cluster: Cluster) -> None:
    data, news = made(cluster.alice).data, cluster.news()
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        try:
            record = decode(bytes(flipped))
        except MalformedRecord:
            continue
        assert not news.admits(record)


def test_an_expired_certificate_does_not_undo_what_was_published_before(cluster: Cluster) -> None:
    late = NOW + 364 * DAY
    assert cluster.news().admits(made(cluster.alice, time=late))
    named = read_certificate(cluster.alice.der, cluster.bob.authority)
    assert named is not None
    assert named.since <= NOW < late < named.before <= NOW + 366 * DAY


def test_a_revocation_counts_from_its_second_on(cluster: Cluster) -> None:
    news, before = cluster.news(), made(cluster.alice)
    cluster.revoked[cluster.alice.identity.id] = NOW + 10
    assert news.admits(before)
    assert not news.admits(made(cluster.alice, time=NOW + 10))
    assert news.times(before)[0][1] == NOW + 10
    del cluster.revoked[cluster.alice.identity.id]


def test_what_a_revocation_does_not_reach_cannot_be_dated_back(cluster: Cluster) -> None:
    alice, news = cluster.alice, cluster.news()
    stream, sign = (alice.identity.handle, b"s" * 12), alice.sealer(PUBLISHED, "news")
    held, more = (seal(stream, at, [Draft(b"x")] * 3, time=NOW, sign=sign) for at in (0, 3))
    other = made(alice)
    cluster.revoked[alice.identity.id] = NOW + 10
    assert all(news.admits(it) for it in (held, more, other)), "a second alone lets them in"
    cluster.ends = ((stream[1], 3),)
    assert news.admits(held)
    assert not news.admits(more)
    assert not news.admits(other), "a stream of the thief's own"
    assert not news.admits(seal(stream, 1, [Draft(b"x")] * 3, time=NOW, sign=sign))
    assert news.ends(held) == {stream[1]: 3}
    assert news.admits(made(cluster.bob)), "nobody else"
    assert not any(news.admits_staged(it) for it in batch(alice).values())
    cluster.revoked[alice.identity.id] = NOW
    assert not news.admits(held), "both are judged"
    cluster.revoked.clear()
    cluster.ends = None
    assert news.ends(held) is None


def batch(
    who: Credentials, manifest_by: Credentials | None = None, sign_manifest: Sealer | None = None
) -> dict[str, Record]:
    by = manifest_by or who
    stage, rows = stage_incarnation(bytes(12)), row_incarnation("q", bytes(12))
    sign = who.sealer(STAGED, "news")
    staged = seal((who.identity.handle, stage), 0, [Draft(b"row")], time=NOW, sign=sign)
    portions = {"news": Portion(rows, [Part(stage, 1, 0)])}
    publisher, sign = by.identity.handle, sign_manifest or by.sealer(MANIFEST, "")
    found = seal_manifest(publisher, "q", 0, portions, time=NOW, staged=NOW, sign=sign)
    portion = found.portions["news"]
    made = settled(staged, found, portion, portion.parts[0])
    return {"stage": staged, "manifest": found.record, "settled": made}


def test_a_batch_is_proved_by_who_staged_it_and_signed_its_manifest(cluster: Cluster) -> None:
    news, found = cluster.news(), batch(cluster.alice)
    assert news.admits(found["settled"])
    assert news.admits_staged(found["stage"])
    assert news.admits_staged(found["manifest"])
    for kind in ("stage", "manifest"):
        assert not news.admits(found[kind]), "what is staged is not published"
    assert not news.admits_staged(found["settled"])
    other = cluster.admissions("other")
    assert not other.admits(found["settled"])
    assert not other.admits_staged(found["stage"])


def test_rows_of_one_are_not_published_by_the_manifest_of_another(cluster: Cluster) -> None:
    mixed = batch(cluster.alice, cluster.bob)
    assert not cluster.news().admits(mixed["settled"])


def test_a_manifest_in_anothers_name_publishes_nothing(cluster: Cluster) -> None:
    """Else a lying member could publish twice, or elsewhere, what somebody staged."""
    alice, bob = cluster.alice, cluster.bob
    own = bob.sealer(MANIFEST, "")
    copied = sealer(alice.der, bob.sign, MANIFEST, "")
    other = alice.sealer(PUBLISHED, "news")  # what alice published is no manifest
    for sign in (own, copied, other):
        forged = batch(alice, sign_manifest=sign)
        assert cluster.news().admits_staged(forged["stage"])
        assert not cluster.news().admits_staged(forged["manifest"])
        assert not cluster.news().admits(forged["settled"])


def test_what_was_published_under_a_former_authority_counts_where_it_is_known(
    tmp_path: Path,
) -> None:
    keys = tmp_path / "keys"
    found_cluster(keys, "demo")
    old = Credentials(issue(keys, "old", ("client",)))
    id, admin_key = old.identity.id, load_key(keys / AUTHORITY_KEY)
    revoked = seal_void(voiding(id, NOW + 10), admin_key)
    rotate(keys)
    finish_rotation(keys)
    new = Credentials(issue(keys, "new"))
    assert Admissions(new)("news").admits(made(old))
    assert judge(new.authority, new.former)(revoked) is not None
    assert not Admissions(new)("news").admits(made(old, old.sealer(PUBLISHED, "other")))
    (new.directory / FORMER).unlink()
    strict = Credentials(new.directory)
    assert not Admissions(strict)("news").admits(made(old))
    assert judge(strict.authority, strict.former)(revoked) is None
    assert Admissions(strict)("news").admits(made(new))


def laid(topic: str, *who: str, before: Charter | None = None, at: int = NOW) -> Charter:
    return with_publishers(next_charter(topic, before, at), who)


def test_a_right_is_judged_at_the_time_of_the_publication(cluster: Cluster) -> None:
    news, edition = cluster.news(), cluster.news().edition
    for at, who in ((NOW, ("bob",)), (NOW + 100, ("alice",)), (NOW + 200, ("*",))):
        cluster.laid["news"] = laid("news", *who, before=cluster.laid.get("news"), at=at)
    assert news.edition != edition
    ends, starts = [NOW + at + GRACE_SECONDS for at in (0, 100, 200)], NOW + 100 - SLACK_SECONDS
    for second, alice, bob in (
        (NOW - 60, True, True),  # nothing was laid down yet
        (ends[0] - 1, True, True),  # and some may not have heard
        (ends[0], False, True),
        (starts - 1, False, True),
        (starts, True, True),
        (ends[1] - 1, True, True),
        (ends[1], True, False),
        (NOW + 200 - SLACK_SECONDS - 1, True, False),
        (NOW + 200 - SLACK_SECONDS, True, True),
        (NOW + 300, True, True),
    ):
        assert news.admits(made(cluster.alice, time=second)) is alice, second - NOW
        assert news.admits(made(cluster.bob, time=second)) is bob, second - NOW
    times = news.times(made(cluster.alice))
    assert times[-1][1] > NOW + 300 > times[0][0]
    cluster.laid.clear()


def test_the_charter_of_a_topic_above_counts_unless_the_own_one_speaks(cluster: Cluster) -> None:
    below, later = cluster.admissions("pay/salary"), NOW + 60
    record = made(cluster.alice, time=later, topic="pay/salary")
    cluster.laid["pay"] = laid("pay", "bob")
    assert not below.admits(record)
    cluster.laid["pay/salary"] = next_charter("pay/salary", None, NOW)  # of retention alone
    assert not below.admits(record)
    cluster.laid["pay/salary"] = laid("pay/salary", "alice")
    assert below.admits(record)
    cluster.laid.clear()


def test_a_term_outlives_no_certificate_and_no_revocation(cluster: Cluster) -> None:
    news, year = cluster.news(), NOW + 366 * DAY
    cluster.laid["news"] = laid("news", "alice")
    assert news.admits(made(cluster.alice, time=NOW + 60))
    assert not news.admits(made(cluster.alice, time=year))
    cluster.revoked[cluster.alice.identity.id] = NOW + 30
    assert not news.admits(made(cluster.alice, time=NOW + 60))
    assert news.admits(made(cluster.alice))
    cluster.revoked.clear()
    cluster.laid.clear()


def test_nodes_can_be_allowed_together(cluster: Cluster) -> None:
    later = NOW + 60
    cluster.laid["news"] = laid("news", "@nodes")
    assert cluster.news().admits(made(cluster.bob, time=later))
    assert not cluster.news().admits(made(cluster.alice, time=later))
    cluster.laid.clear()


def test_a_node_without_the_right_is_told_when_it_publishes(cluster: Cluster) -> None:
    assert abs(cluster.news().stamp(0) - time.time()) < 60
    cluster.laid["news"] = laid("news", "alice", at=int(time.time()) - 100)
    with pytest.raises(UsageError, match="this node may not publish on 'news'"):
        cluster.news().stamp(0)
    cluster.laid.clear()


def test_terms_go_on_end_and_begin_with_charters() -> None:
    one = laid("news", "alice", "bob", at=1000)
    assert one.terms == (("*", 0, 1010), ("alice", 940, OPEN), ("bob", 940, OPEN))
    two = laid("news", "bob", "carol", before=one, at=2000)
    assert two.terms == (
        ("*", 0, 1010), ("alice", 940, 2010), ("bob", 940, OPEN), ("carol", 1940, OPEN),
    )  # fmt: skip
    assert next_charter("news", two, 3000).terms == two.terms
    aged = structs.replace(next_charter("news", two, 3000), retention=Retention(age=600))
    assert with_publishers(aged, ["bob"]).terms == (
        ("alice", 940, 2010), ("bob", 940, OPEN), ("carol", 1940, 3010),
    )  # fmt: skip
