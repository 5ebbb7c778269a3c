"""The base of all messages: frozen, tagged structs that are their own wire format."""

from collections.abc import Mapping

from msgspec import Struct


class Message(Struct, frozen=True, array_like=True, gc=False):
    """What one node says to another. It may be lost, late, repeated, reordered or false.

    A subclass names its tag on the wire:
    `class Check(Message, frozen=True, tag="ring.check")`. Tags are stable: renaming a class does
    not change what peers of another version understand. A message that needs an answer carries
    the sender's id as a field, and that id may be false.
    """


def defined_in(module: Mapping[str, object]) -> tuple[type[Message], ...]:
    """The messages that a module defines, in the order of their tags; `module` is its `globals()`.

    Every module of messages ends with `MESSAGES = defined_in(globals())`, and each overlay names
    the `messages` of the modules it is made of: those, and no others, are accepted on its wire.
    """
    own = [
        it
        for it in module.values()
        if isinstance(it, type) and issubclass(it, Message) and it.__module__ == module["__name__"]
    ]
    return tuple(sorted((it for it in own if _tag(it)), key=_tag))


def _tag(cls: type[Message]) -> str:
    """The tag of a class; empty for an abstract base."""
    return str(cls.__struct_config__.tag or "")


def topic_of(message: Message) -> str | None:
    """The topic that a message is about: the one it names, or that of the group it is for."""
    topic = getattr(message, "topic", None) or getattr(message, "group", None)
    return topic if isinstance(topic, str) else None


def tag_of(message: Message) -> str:
    """The name of a message's class on the wire and in traces."""
    return str(type(message).__struct_config__.tag)
