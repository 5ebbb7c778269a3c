"""What can go wrong between a client and its nodes, beside its own mistakes."""

from collections.abc import Mapping

from planaria.core.errors import PlanariaError


class Unreachable(PlanariaError):
    """No node lets this client in; says of each that was tried why not."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        tried = "; ".join(
            reason if address in reason else f"{address}: {reason}"
            for address, reason in self.reasons.items()
        )
        super().__init__(f"no node to talk to: {tried}. {_advice(tried)}")


class Untrusted(PlanariaError):
    """No node gives what its publisher signed; says of each what it gave."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        tried = "; ".join(f"{address}: {reason}" for address, reason in self.reasons.items())
        super().__init__(
            f"no node gives what its publisher signed: {tried}. If the authority was changed, copy "
            "its authority.pem and former.pem into this client's directory"
        )


# Whoever reads it sits at a command line, or has a program or a query of Spark.
_NAMED = "-s HOST:PORT; in Python and Spark `servers` or `context`"


def _advice(tried: str) -> str:
    if "issue it" in tried:  # says what to do itself
        return f"Until then name others: {_NAMED}"
    if "no TLS" in tried:
        return f"Say --insecure (`insecure`), or name nodes with TLS: {_NAMED}"
    if "certificate" in tried or "TLS" in tried:
        return "Check the credentials: `planaria keys issue NAME --role client` makes them"
    if "cluster" in tried:
        return "A context names the cluster to talk to: `planaria context add --cluster`"
    return f"Start one with `planaria up`, or name others: {_NAMED}"
