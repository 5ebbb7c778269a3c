"""Names of the overlay errata, and of the second readings that some of them have.

A protocol object takes one set of these names. `frozenset()` is the printed pseudocode, undefined
things read as charitably as possible; `ALL` is everything amended; `ALL - {"E5"}` shows E5 alone.
"""

ALL: frozenset[str] = frozenset(f"E{number}" for number in range(1, 22))

# Found here: with E1-E21 amended, some schedules still keep a false label going for ever.
E22 = "E22"

# Where the prose and the pseudocode differ, or a kind reading of an undefined thing is not the only
# one: the other reading of an erratum that is not amended. Named in the same set.
E6_TEXT = "E6 text"  # section 3.2.1: whoever is asked about and unrecorded is inserted
E11_EMPTY = "E11 empty"  # bottom encoded as the empty string
E13_TEXT = "E13 text"  # action (iii): `<=`, and only if the proposed neighbour is another node
E14_TEXT = "E14 text"  # section 3.2.1: actions (ii) and (iv) are both run

READINGS: frozenset[str] = frozenset({E6_TEXT, E11_EMPTY, E13_TEXT, E14_TEXT})
