"""All that is said in rings, for codecs: a node loads it without what judges and breaks them."""

from planaria.core.message import Message
from planaria.protocols.publications.antientropy_messages import MESSAGES as ANTIENTROPY_MESSAGES
from planaria.protocols.publications.retention import Rejected
from planaria.protocols.ring.messages import MESSAGES as RING_MESSAGES
from planaria.protocols.skipring.batch_messages import MESSAGES as BATCH_MESSAGES
from planaria.protocols.skipring.broadcast_messages import MESSAGES as BROADCAST_MESSAGES
from planaria.protocols.skipring.charter_messages import MESSAGES as CHARTER_MESSAGES
from planaria.protocols.skipring.deposit_messages import MESSAGES as DEPOSIT_MESSAGES
from planaria.protocols.skipring.directory_messages import MESSAGES as DIRECTORY_MESSAGES
from planaria.protocols.skipring.messages import MESSAGES as SKIPRING_MESSAGES

ALL_MESSAGES: tuple[type[Message], ...] = (
    *RING_MESSAGES,
    *SKIPRING_MESSAGES,
    *BROADCAST_MESSAGES,
    *ANTIENTROPY_MESSAGES,
    *DEPOSIT_MESSAGES,
    *BATCH_MESSAGES,
    *DIRECTORY_MESSAGES,
    *CHARTER_MESSAGES,
    Rejected,
)
