"""Contacts are soft state: the newest sound one is kept, whatever others say."""

import pytest
from msgspec import msgpack

from planaria.core.errors import UsageError
from planaria.network.contacts import SERIAL_MAX, Contact, Contacts, format_address, parse_address
from planaria.network.identity import handle_of

ID = bytes(range(16))


def test_a_newer_contact_takes_the_place_of_an_older_one_and_no_other_does() -> None:
    contacts = Contacts()
    for serial, address in ((3, "c:1"), (2, "b:1"), (5, "e:1")):
        contacts.learn(Contact(ID, (address,), serial))
    assert contacts.get(handle_of(ID)) == Contact(ID, ("e:1",), 5)


@pytest.mark.parametrize(
    "contact",
    [
        Contact(b"short", ("a:1",), 0),
        Contact(ID, (), 0),
        Contact(ID, ("a:1",) * 9, 0),
        Contact(ID, ("a" * 301,), 0),
        Contact(ID, ("a:1",), SERIAL_MAX + 1),
        Contact(ID, ("a:1",), -1),
    ],
)
def test_what_is_no_contact_is_not_learned(contact: Contact) -> None:
    contacts = Contacts()
    assert not contacts.learn(contact)
    assert contacts.learn_all(msgpack.encode([contact])) == []
    assert contacts.get(handle_of(ID)) is None


def test_garbage_is_no_question_and_no_answer() -> None:
    contacts = Contacts()
    assert contacts.answer(b"\xc1") is None
    assert contacts.learn_all(b"\xc1") == []
    contacts.learn(Contact(ID, ("a:1",), 1))
    answer = contacts.answer(contacts.question([handle_of(ID), 7]))
    assert answer is not None
    assert Contacts().learn_all(answer) == [handle_of(ID)]


@pytest.mark.parametrize("text", ["", ":1", "a:b", "a:70000", "::1", "[::1", "[::1]x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:1", "[::1]:7400", "host:65535"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert format_address(*parse_address(text)) == text
