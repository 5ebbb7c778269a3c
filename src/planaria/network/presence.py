"""How a node makes itself known, and learns of all supervisors from whichever node it has met.

Each node tells its own contact to its links, again and again. What is new about a supervisor is
passed on over all links, so it reaches every node that is connected with it in any way.
"""

from collections.abc import Callable, Iterable

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.network.connection import Connection
from planaria.network.contacts import (
    SERIAL_MAX,
    Contact,
    Contacts,
    from_wire,
    parse_address,
    to_wire,
)
from planaria.network.frames import Kind
from planaria.network.identity import Refused
from planaria.network.tls import Credentials

RENEW_SECONDS = 30.0  # by the wall clock: two of each minute's answers may be lost

Links = Callable[[], Iterable[Connection]]
Changed = Callable[[tuple[NodeId, ...]], None]


class Presence:
    """One node's own contact and those it knows; `changed` is told of the set of supervisors.

    Raises UsageError if the node may not supervise and wants to.
    """

    def __init__(
        self,
        id: bytes,
        credentials: Credentials | None,
        links: Links,
        changed: Changed,
        wall: Callable[[], float],
        *,
        supervises: bool,
    ) -> None:
        identity = credentials and credentials.identity
        if supervises and identity and "supervise" not in identity.roles:
            raise UsageError(
                f"the certificate of {identity.name!r} has not the role 'supervise': "
                "issue one with `planaria keys issue NAME --role node --role supervise`"
            )
        if credentials is None:
            self.contacts = Contacts()
        else:
            self.contacts = Contacts(credentials.authority, revoked=credentials.is_revoked)
        self.own: Contact | None = None
        self._id, self._credentials, self._supervises = id, credentials, supervises
        self._links, self._changed, self._wall = links, changed, wall
        self._reported: tuple[NodeId, ...] = ()
        self._due = 0.0

    def appear(self, addresses: tuple[str, ...]) -> None:
        """This node is at these addresses from now on; tells all links."""
        for address in addresses:
            parse_address(address)
        self._announce(addresses)

    def resign(self) -> None:
        """Supervise no more, and say so: nobody need wait for this node's contact to expire."""
        self._supervises = False
        if self.own is not None:
            self._announce(self.own.addresses)

    def greet(self, connection: Connection) -> None:
        """A link is new: tell who I am and who supervises."""
        known = self.contacts.supervisors()
        mine = [] if self.own is None else [self.own]
        others = [one for one in known if one.id != self._id]
        if mine or others:
            connection.say(Kind.CONTACTS, to_wire([*mine, *others]))

    def hear(self, connection: Connection, body: bytes) -> list[NodeId]:
        """Learn what the other end tells; returns the nodes of which it is news.

        Whoever is behind is told what is newer; so a node whose clock was set back finds out which
        serial it has to exceed.
        """
        news = []
        for contact in from_wire(body):
            before = self.contacts.get(contact.handle)
            if contact.id == self._id:
                self._exceed(contact)
            elif self.contacts.learn(contact):
                news.append(contact.handle)
                if contact.supervises or (before is not None and before.supervises):
                    self._pass_on(contact, connection)
            elif (newer := self.contacts.newer(contact)) is not None:
                connection.say(Kind.CONTACTS, to_wire([newer]))
        self._tell()
        return news

    def on_time(self, now: float) -> None:
        """Time passed: renew my contact when that is due, forget those that nobody renews.

        Who was revoked meanwhile is no supervisor any more, whether it had a link or not.
        """
        if self._credentials is not None:
            self._tell()
        if now < self._due:
            return
        self._due = now + RENEW_SECONDS
        self.contacts.expire()
        if self.own is not None:
            self._announce(self.own.addresses)
        self._tell(again=True)

    def _announce(self, addresses: tuple[str, ...], above: int = 0) -> None:
        serial = max(above, 0 if self.own is None else self.own.serial) + 1
        contact = Contact(
            self._id, addresses, max(serial, int(self._wall() * 1000)), self._supervises
        )
        self.own = contact.sign(self._credentials) if self._credentials else contact
        self.contacts.learn(self.own)
        body = to_wire([self.own])
        for link in self._links():
            link.say(Kind.CONTACTS, body)
        self._tell()

    def _exceed(self, contact: Contact) -> None:
        """Somebody tells a contact of mine: one that I do not remember must not outlast me.

        Where contacts are not signed, a false one may have the highest serial: it is outlived.
        """
        if self.own is None or not self.own.serial < contact.serial < SERIAL_MAX:
            return
        try:
            self.contacts.check(contact)
        except Refused:
            self.contacts.forged += 1
            return
        self._announce(self.own.addresses, contact.serial)

    def _pass_on(self, contact: Contact, origin: Connection) -> None:
        body = to_wire([self.contacts.get(contact.handle) or contact])
        for link in self._links():
            if link is not origin:
                link.say(Kind.CONTACTS, body)

    def _tell(self, *, again: bool = False) -> None:
        """Tell the node when others supervise than before; `again`: its memory may be wrong."""
        now = tuple(one.handle for one in self.contacts.supervisors())
        if now != self._reported or (again and now):
            self._reported = now
            self._changed(now)
