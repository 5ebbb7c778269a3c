"""The base of all messages: frozen, tagged structs that are their own wire format."""

from msgspec import Struct


class Message(Struct, frozen=True, array_like=True, gc=False):
    """What one node says to another. It may be lost, late, repeated, reordered or false.

    A subclass names its tag on the wire:
    `class Check(Message, frozen=True, tag="ring.check")`. Tags are stable: renaming a class does
    not change what peers of another version understand. A message that needs an answer carries
    the sender's id as a field, and that id may be false.
    """


def registry() -> dict[str, type[Message]]:
    """All message classes imported so far, by tag. Two classes with one tag are a bug."""
    found: dict[str, type[Message]] = {}
    pending = list(Message.__subclasses__())
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        tag = cls.__struct_config__.tag
        if not isinstance(tag, str):
            continue  # an abstract base between Message and its concrete classes
        if found.setdefault(tag, cls) is not cls:
            raise TypeError(f"message tag {tag!r} is used by {found[tag]} and by {cls}")
    return dict(sorted(found.items()))


def tag_of(message: Message) -> str:
    """The name of a message's class on the wire and in traces."""
    return str(type(message).__struct_config__.tag)
