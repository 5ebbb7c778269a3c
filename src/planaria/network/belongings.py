"""What is in a node's directory beside its records: a lock, and who it is."""

import secrets
from pathlib import Path

from planaria.core.errors import UsageError
from planaria.network.config import Config
from planaria.network.files import write_atomically
from planaria.network.identity import ID_BYTES
from planaria.network.store.directory import IN_USE, Directory
from planaria.network.tls import Credentials

ID = "id"


def take_directory(path: Path) -> Directory:
    """Lock a node's directory; raises UsageError if another process has it."""
    directory = Directory(path)
    if not directory.writable:
        directory.release()
        raise UsageError(f"{path}: a node must be able to write into its directory")
    directory.mark(IN_USE)
    return directory


def load_credentials(config: Config) -> Credentials | None:
    """Key and certificate of a node, None without TLS; raises UsageError if they do not fit."""
    if config.credentials is None:
        return None
    found = Credentials(config.credentials)
    if config.cluster not in (None, found.cluster):
        raise UsageError(
            f"{config.credentials} is of cluster {found.cluster!r}, not of {config.cluster!r}"
        )
    if "node" not in found.identity.roles:
        raise UsageError(
            f"the certificate of {found.identity.name!r} has not the role 'node': "
            f"issue one with `planaria keys issue NAME --role node`"
        )
    return found


def local_id(directory: Path) -> bytes:
    """The id of a node without a certificate: drawn once, kept in its directory."""
    path = directory / ID
    if not path.exists():
        write_atomically(path, secrets.token_bytes(ID_BYTES).hex() + "\n")
    try:
        id = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError):
        id = b""
    if len(id) != ID_BYTES:
        raise UsageError(f"{path} is no id: remove it to be another node from now on")
    return id
