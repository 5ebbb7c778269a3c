"""A signed record proves who published it, on which topic, down to the last bit."""

from hashlib import blake2b
from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.records import manifest as manifests
from planaria.records.arrow import to_arrow
from planaria.records.batches import Slice
from planaria.records.evidence import (
    EVIDENCE_BYTES_MAX,
    MANIFEST,
    PUBLISHED,
    SIGNATURE_BYTES,
    STAGED,
    evidence_of,
    sealer,
)
from planaria.records.manifest import (
    Manifest,
    Origin,
    Part,
    Portion,
    origin_of,
    row_incarnation,
    seal_manifest,
    settled,
    settled_by,
    stage_incarnation,
)
from planaria.records.packing import Packer
from planaria.records.record import (
    RECORD_BYTES_MAX,
    SIGNED_BYTES_MAX,
    Draft,
    MalformedRecord,
    Record,
    decode,
    seal,
)

STREAM = (77, bytes(12))
CERTIFICATE = b"a certificate of somebody" * 15
DRAFTS = [
    Draft(b"plain"),
    Draft(b"", b"key", (("unit", b"mm"), ("site", b""))),
    Draft(b"last", None, (), 5),
]


def sign(message: bytes) -> bytes:
    return blake2b(message, digest_size=SIGNATURE_BYTES, key=b"secret").digest()


def holds(record: Record, purpose: bytes = PUBLISHED, topic: str = "news") -> bool:
    found = evidence_of(record.data)
    return found.signature == sign(found.message(purpose, topic))


def signed(drafts: list[Draft], first: int = 7) -> Record:
    how = sealer(CERTIFICATE, sign, PUBLISHED, "news")
    return seal(STREAM, first, drafts, time=900, low=3, sign=how)


@pytest.mark.parametrize("drafts", [DRAFTS[:1], DRAFTS, [Draft(b"%d" % at) for at in range(300)]])
def test_a_signed_record_says_what_the_plain_one_says(drafts: list[Draft]) -> None:
    one, plain = signed(drafts), seal(STREAM, 7, drafts, time=900, low=3)
    assert one.signed
    assert not plain.signed
    assert one.publications(7, one.end) == plain.publications(7, plain.end)
    assert (one.stream, one.first, one.count, one.low) == (STREAM, 7, len(drafts), 3)
    assert decode(one.data) == one == signed(drafts), "a retry is the same bytes"
    parts = [Slice(one, 7, one.end)], [Slice(plain, 7, plain.end)]
    assert to_arrow(parts[0]).equals(to_arrow(parts[1]))
    assert evidence_of(one.data).certificate == CERTIFICATE
    assert len(one.data) == len(plain.data) + len(CERTIFICATE) + 2 + SIGNATURE_BYTES


def test_a_signature_is_for_one_topic_and_one_purpose() -> None:
    one = signed(DRAFTS)
    assert holds(one)
    assert not holds(one, topic="other")
    assert not holds(one, STAGED)
    assert not holds(one, MANIFEST, "")


def test_no_bit_can_be_changed() -> None:
    data = signed(DRAFTS).data
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at >> 3] ^= 1 << (at & 7)
        try:
            found = decode(bytes(flipped))
        except MalformedRecord:
            continue
        assert not found.signed or not holds(found)


def test_bytes_of_any_length_are_a_record_or_refused() -> None:
    data, rng = signed(DRAFTS).data, Random(3)
    for size in range(len(data)):
        with pytest.raises(MalformedRecord):
            decode(data[:size])
    for _ in range(2000):
        head = data[: rng.randrange(len(data))]
        try:
            decode(head + rng.randbytes(rng.randrange(300)))
        except MalformedRecord:
            continue


def test_the_largest_record_can_be_signed() -> None:
    draft = Draft(bytes(1 << 20), None, tuple(("n" * 8, bytes(8192)) for _ in range(7)))
    one = signed([draft])
    assert RECORD_BYTES_MAX - 8192 < len(one.data) <= SIGNED_BYTES_MAX
    plain = seal(STREAM, 7, [draft], time=900)
    rest = RECORD_BYTES_MAX - len(plain.data)
    more = draft._replace(headers=(*draft.headers, ("n" * 8, bytes(rest - 24))))
    assert len(seal(STREAM, 7, [more], time=900).data) <= RECORD_BYTES_MAX
    how = sealer(bytes(EVIDENCE_BYTES_MAX - 66), sign, PUBLISHED, "news")
    assert len(seal(STREAM, 7, [more], time=900, sign=how).data) <= SIGNED_BYTES_MAX


def test_a_packer_signs_what_it_seals() -> None:
    packer = Packer(*STREAM, sealer(CERTIFICATE, sign, PUBLISHED, "news"))
    packer.offer(*DRAFTS)
    record = packer.take(0, time=900)
    assert record is not None
    assert holds(record)
    assert packer.bytes == len(record.data)


STAGE, ROWS = stage_incarnation(bytes(12)), row_incarnation("q", bytes(12))


def batch(first: int = 100) -> tuple[Record, Manifest, Record]:
    """What was staged, the manifest, and what both make."""
    how = sealer(CERTIFICATE, sign, STAGED, "news")
    stage = seal((77, STAGE), 7, DRAFTS, time=800, sign=how)
    portions = {"news": Portion(ROWS, [Part(STAGE, 20, first)])}
    how = sealer(CERTIFICATE, sign, MANIFEST, "")
    found = seal_manifest(77, "q", 4, portions, time=900, staged=800, sign=how)
    portion = found.portions["news"]
    return stage, found, settled(stage, found, portion, portion.parts[0])


def test_settled_rows_carry_what_they_were_made_of() -> None:
    stage, manifest, record = batch()
    assert decode(record.data) == record
    assert record.first == 107
    assert origin_of(record) == Origin(manifest.record.key, 4, 100)
    rows = [row[3:6] for row in record.publications(107, 110)]
    assert rows == [row[3:6] for row in stage.publications(7, 10)]
    found = settled_by(record, "news")
    assert found is not None
    assert found[0] == stage
    assert found[1].record == manifest.record
    assert holds(found[0], STAGED)
    assert holds(found[1].record, MANIFEST, "")
    assert settled_by(record, "other") is None
    assert settled_by(stage, "news") is None


def test_the_manifest_of_a_batch_is_read_once_for_all_its_records() -> None:
    """Each carries it, of all topics: read for each of 600, it took two thirds of a node's time."""
    topics = [f"dev/{number}" for number in range(20)]
    how = sealer(CERTIFICATE, sign, MANIFEST, "")
    portions = {topic: Portion(ROWS, [Part(STAGE, 20, 100)]) for topic in topics}
    manifest = seal_manifest(77, "q", 4, portions, time=900, staged=800, sign=how)
    before = manifests._carried.cache_info().misses
    for topic in topics:
        stage = seal(
            (77, STAGE), 7, DRAFTS, time=800, sign=sealer(CERTIFICATE, sign, STAGED, topic)
        )
        portion = manifest.portions[topic]
        record = settled(stage, manifest, portion, portion.parts[0])
        found = settled_by(decode(bytes(bytearray(record.data))), topic)
        assert found is not None
        assert found[1].record == manifest.record
    assert manifests._carried.cache_info().misses == before + 1


def test_no_bit_of_settled_rows_can_be_changed() -> None:
    data = batch()[2].data
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at >> 3] ^= 1 << (at & 7)
        try:
            found = settled_by(decode(bytes(flipped)), "news")
        except MalformedRecord:
            continue
        if found is not None:
            assert not (holds(found[0], STAGED) and holds(found[1].record, MANIFEST, ""))


def test_a_manifest_that_every_record_must_carry_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manifests, "SIGNED_MANIFEST_BYTES_MAX", EVIDENCE_BYTES_MAX + 30)
    with pytest.raises(UsageError, match="which each signed record of the batch carries"):
        batch()
