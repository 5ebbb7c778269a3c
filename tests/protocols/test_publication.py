"""Publications, their keys and their frames."""

from msgspec import structs

from planaria.core.chance import stream
from planaria.core.codec import FRAME_BYTES_MAX, Codec
from planaria.protocols.publications.antientropy_messages import Push
from planaria.protocols.publications.publication import (
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    TIME_MAX,
    Publication,
    key,
)
from planaria.protocols.publications.push import PUSH_BYTES_MAX, PUSH_FRAMES_MAX, frames
from planaria.protocols.skipring.overlay import RingOverlay

BIG = 2**63 - 1


def test_every_field_of_a_publication_changes_its_key() -> None:
    first = Publication(1, 2, 3, 4, 5, b"six")
    others = [
        structs.replace(first, **{name: getattr(first, name) + 1})
        for name in ("publisher", "incarnation", "sequence", "low", "time")
    ]
    others.append(structs.replace(first, payload=b"sixx"))
    keys = {key(p) for p in [first, *others]}
    assert len(keys) == 7
    assert {len(k) for k in keys} == {16}


def test_fields_cannot_run_into_each_other() -> None:
    assert key(Publication(1, 23, 0, 0, 0, b"")) != key(Publication(12, 3, 0, 0, 0, b""))
    assert key(Publication(1, 1, 0, 0, 0, b"\x00")) != key(Publication(1, 1, 0, 0, 0, b"\x00\x00"))


def test_key_is_the_same_on_every_machine() -> None:
    assert key(Publication(1, 2, 3, 0, 4, b"x")).hex() == "8379d06eb99aedc3a423cda8e434e00c"


def test_largest_publication_fits_a_frame_with_the_longest_topic() -> None:
    largest = Publication(BIG, 2**64 - 1, BIG, BIG, TIME_MAX, bytes(PAYLOAD_BYTES_MAX))
    data = Codec(RingOverlay.messages).encode(Push("t" * 1024, BIG, BIG, [largest], []))
    assert len(data) <= FRAME_BYTES_MAX
    assert Codec(RingOverlay.messages).decode(data) == Push("t" * 1024, BIG, BIG, [largest], [])


def test_header_never_exceeds_its_stated_size() -> None:
    empty = Codec(RingOverlay.messages).encode(Push("t", 1, 1, [], []))
    one = Codec(RingOverlay.messages).encode(
        Push("t", 1, 1, [Publication(BIG, 2**64 - 1, BIG, BIG, TIME_MAX, b"")], [])
    )
    assert len(one) - len(empty) <= HEADER_BYTES_MAX


def test_frames_hold_all_publications_once_within_their_bounds() -> None:
    chance = stream(5, "frames")
    sizes = [chance.choice([0, 10, 10_000, PUSH_BYTES_MAX]) for _ in range(60)]
    publications = [Publication(1, 1, n, 0, 1, bytes(size)) for n, size in enumerate(sizes[:20])]
    cut = frames(publications)
    assert len(cut) <= PUSH_FRAMES_MAX
    assert sorted(p.sequence for frame in cut for p in frame) == list(range(20))
    for frame in cut:
        total = sum(len(p.payload) + HEADER_BYTES_MAX for p in frame)
        assert len(frame) == 1 or total <= PUSH_BYTES_MAX


def test_frames_of_an_endless_backlog_are_bounded() -> None:
    endless = (Publication(1, 1, n, 0, 1, bytes(1000)) for n in range(10**9))
    cut = frames(endless)
    assert len(cut) == PUSH_FRAMES_MAX
    assert sum(len(p.payload) for frame in cut for p in frame) <= PUSH_FRAMES_MAX * PUSH_BYTES_MAX
