"""Contacts are soft state: the newest that its node signed is kept, whatever others say."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from planaria.core.errors import UsageError
from planaria.network.contacts import (
    AGE_MAX,
    SERIAL_MAX,
    SUPERVISORS_MAX,
    Contact,
    Contacts,
    format_address,
    from_wire,
    parse_address,
    to_wire,
)
from planaria.network.identity import found_cluster, handle_of, issue
from planaria.network.tls import Credentials

ID = bytes(range(16))


def test_a_newer_contact_takes_the_place_of_an_older_one_and_no_other_does() -> None:
    contacts = Contacts()
    for serial, address in ((3, "c:1"), (2, "b:1"), (5, "e:1"), (5, "f:1")):
        contacts.learn(Contact(ID, (address,), serial))
    assert contacts.get(handle_of(ID)) == Contact(ID, ("e:1",), 5)
    assert contacts.newer(Contact(ID, ("b:1",), 4)) == Contact(ID, ("e:1",), 5)
    assert contacts.newer(Contact(ID, ("b:1",), 5)) is None


@pytest.mark.parametrize(
    "contact",
    [
        Contact(b"short", ("a:1",), 0),
        Contact(ID, (), 0),
        Contact(ID, ("a:1",) * 9, 0),
        Contact(ID, ("a" * 301,), 0),
        Contact(ID, ("a:b",), 0),
        Contact(ID, ("a..b:1",), 0),
        Contact(ID, ("a" * 64 + ":1",), 0),
        Contact(ID, ("a\0b:1",), 0),
        Contact(ID, ("a:" + "1" * 5000,), 0),
        Contact(ID, ("a:1",), SERIAL_MAX + 1),
        Contact(ID, ("a:1",), -1),
        Contact(ID, ("a:1",), 1, age=AGE_MAX + 1),
        Contact(ID, ("a:1",), 1, age=-1),
        Contact(ID, ("a:1",), 1, certificate=bytes(4097)),
        Contact(ID, ("a:1",), 1, signature=bytes(65)),
    ],
)
def test_what_is_no_contact_is_not_learned(contact: Contact) -> None:
    contacts = Contacts()
    assert not contacts.learn(contact)
    assert contacts.forged == 1
    assert len(contacts) == 0


def test_garbage_is_no_question_and_no_answer() -> None:
    contacts = Contacts()
    assert contacts.answer(b"\xc1") is None
    assert from_wire(b"\xc1") == []
    contacts.learn(Contact(ID, ("a:1", "[::1]:2"), 1, supervises=True))
    answer = contacts.answer(contacts.question([handle_of(ID), 7]))
    assert answer is not None
    assert from_wire(answer) == list(contacts)


class Times:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_contact_that_is_passed_round_grows_old_all_the_same() -> None:
    """Two nodes that tell each other of a dead one must not keep its contact alive."""
    clock = Times()
    one, two = Contacts(clock=clock), Contacts(clock=clock)
    one.learn(Contact(ID, ("a:1",), 1, supervises=True))
    for _ in range(4):
        clock.now += AGE_MAX / 5
        two = Contacts(clock=clock)
        for contact in from_wire(to_wire(one)):
            assert two.learn(contact)
        one, two = two, one
    assert [contact.handle for contact in one.supervisors()] == [handle_of(ID)]
    clock.now += AGE_MAX / 5 + 1
    one.expire()
    assert one.supervisors() == list(one) == []
    assert one.learn(Contact(ID, ("a:1",), 2, supervises=True))


def test_of_too_many_supervisors_all_nodes_take_the_same() -> None:
    ids = [bytes([number]) + bytes(15) for number in range(SUPERVISORS_MAX + 9)]
    one, two = Contacts(), Contacts()
    for id in ids:
        one.learn(Contact(id, ("a:1",), 1, supervises=True))
    for id in reversed(ids):
        two.learn(Contact(id, ("a:1",), 1, supervises=True))
    assert len(one.supervisors()) == SUPERVISORS_MAX
    assert one.supervisors() == two.supervisors()


@pytest.fixture
def issued(tmp_path: Path) -> Callable[..., Credentials]:
    found_cluster(tmp_path / "keys", "demo")
    found_cluster(tmp_path / "foreign", "foreign")

    def make(name: str, *roles: str, cluster: str = "keys") -> Credentials:
        return Credentials(issue(tmp_path / cluster, name, roles))

    return make


Issued = Callable[..., Credentials]


def signed(by: Credentials, *, supervises: bool = False, serial: int = 5) -> Contact:
    return Contact(by.identity.id, ("a:1",), serial, supervises).sign(by)


def test_what_its_node_signed_is_believed(issued: Issued) -> None:
    node, chief = issued("node", "node"), issued("chief", "node", "supervise")
    contacts = Contacts(node.authority)
    assert contacts.learn(signed(node))
    assert contacts.learn(signed(chief, supervises=True))
    assert [it.handle for it in contacts.supervisors()] == [chief.identity.handle]
    assert contacts.learn(structs.replace(signed(node, serial=6), age=9))


def test_a_forged_contact_is_refused(issued: Issued) -> None:
    node, other = issued("node", "node"), issued("other", "node", "supervise")
    client = issued("client", "client")
    stranger = issued("node", "node", "supervise", cluster="foreign")
    true = signed(node)
    forged = [
        structs.replace(true, addresses=("evil:1",)),
        structs.replace(true, serial=6),
        structs.replace(true, supervises=True),
        structs.replace(true, signature=bytes(64)),
        structs.replace(true, signature=b""),
        structs.replace(true, certificate=b""),
        structs.replace(true, certificate=b"\x30\x03\x02\x01\x01"),
        structs.replace(true, certificate=other.der),
        Contact(node.identity.id, ("a:1",), 5).sign(other),
        signed(node, supervises=True),  # its certificate does not say so
        signed(client),
        signed(stranger, supervises=True),
        Contact(ID, ("a:1",), 5),
    ]
    contacts = Contacts(node.authority)
    for contact in forged:
        assert not contacts.learn(contact), contact
    assert contacts.forged == len(forged)
    assert contacts.learn(true)


@pytest.mark.parametrize("text", ["", ":1", "a:b", "a:70000", "::1", "[::1", "[::1]x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:1", "[::1]:7400", "host:65535"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert format_address(*parse_address(text)) == text


def test_who_was_revoked_since_is_named_to_nobody_and_forgotten_in_time() -> None:
    revoked: set[bytes] = set()
    contacts = Contacts(revoked=revoked.__contains__)
    other = bytes(16)
    for id in (ID, other):
        contacts.learn(Contact(id, ("a:1",), 1, supervises=True))
    revoked.add(ID)
    assert [it.id for it in contacts.supervisors()] == [it.id for it in contacts] == [other]
    assert contacts.get(handle_of(ID)) is None
    assert contacts.newer(Contact(ID, ("a:1",), 0)) is None
    assert contacts.answer(contacts.question([handle_of(ID)])) is None
    contacts.expire()
    assert len(contacts) == 1
