"""Why a dial failed, in the same words wherever one does."""

import os
import ssl

HUNG_UP = "it hung up"
_OVER = (9, 10)  # OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


def why(error: BaseException) -> str:
    """The reason, for the user."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OVER:
            return f"its {error.verify_message}: issue it a new one, or set the clocks right"
        said = error.verify_message
        return f"its certificate is not of our authority ({said}): give keys of the same one"
    if isinstance(error, ssl.SSLError):
        return f"no TLS there ({error.reason}): perhaps that node is --insecure"
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno) if error.errno > 0 else error.strerror or str(error)
    return str(error) or type(error).__name__


def hung_up(reason: str, *, tls: bool) -> str:
    """Why a connection is over that never was greeted; a guess where only its end was seen."""
    if reason != HUNG_UP:
        return reason
    wants = "other credentials" if tls else "TLS: give credentials"
    return f"{reason} before it said hello; perhaps it wants {wants}"


def cannot(address: str, error: BaseException) -> str:
    """That an address could not be dialled, and the reason."""
    verb = "trust" if isinstance(error, ssl.SSLError) else "reach"
    return f"cannot {verb} {address}: {why(error)}"
