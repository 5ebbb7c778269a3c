"""Why a dial failed, in the same words wherever one does."""

import os
import ssl


def why(error: BaseException) -> str:
    """The reason, for the user."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not of our authority ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"no TLS there ({error.reason}): is that node --insecure?"
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def cannot(address: str, error: BaseException) -> str:
    """That an address could not be dialled, and the reason."""
    verb = "trust" if isinstance(error, ssl.SSLError) else "reach"
    return f"cannot {verb} {address}: {why(error)}"
