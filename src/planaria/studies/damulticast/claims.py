"""What the paper on daMulticast says, claim by claim, and what Planaria promises of it.

A claim compares two quantities by name: what is measured with what the paper states, which may be
a number, a formula as printed or another measurement. `literal` is what the text alone gives.
"""

from math import exp, log

from msgspec import Struct

from planaria.lab.gossip.baselines import APPROACHES, CLUSTERS
from planaria.protocols.gossip.overlay import parse_sizes
from planaria.studies.damulticast.formulas import DIALS
from planaria.studies.damulticast.runs import LOSS, groups_of

OURS, BROADCAST, INTERESTED, SUBSCRIBERS, HIERARCHICAL = APPROACHES
SINGLE = "1000"  # one topic alone
TARGET = 0.99  # of everybody being reached, for which dials are chosen
HALF = 0.5


class Claim(Struct, frozen=True):
    """`measured` stands in `relation` to `paper`."""

    claim: str
    relation: str
    paper: float | str
    measured: str
    literal: str = ""


def event(
    measure: str,
    group: str,
    failed: float = 0.0,
    *,
    reading: str = "planaria",
    failures: str = "stillborn",
) -> str:
    """The name of a quantity measured by arrays."""
    return f"{reading} {failures} {failed} {group} {measure}"


def letter(measure: str, group: str, topic: str = "own") -> str:
    """The name of a quantity of Figures 5 and 7 to the letter."""
    return f"letter {topic} {group} {measure}"


def on_nodes(measure: str, group: str, event_group: str) -> str:
    """The name of a quantity measured on real nodes, nobody having failed."""
    return f"nodes on {event_group} stillborn 0.0 {group} {measure}"


def by(algorithm: str, measure: str, group: str, sizes: str, loss: float = LOSS) -> str:
    """The name of a quantity of one of the approaches."""
    return f"{algorithm} {group} of {sizes} losing {loss} {measure}"


def claims(sizes: str) -> list[Claim]:
    """All of them, in the order of the paper."""
    return [
        *_introduction(sizes),
        *_algorithm(sizes),
        *_messages(sizes),
        *_alternatives(sizes),
        *_memory(sizes),
        *_reliability(sizes),
        *_tuning(),
        *_figures(sizes),
        *_last(),
    ]


def _introduction(sizes: str) -> list[Claim]:
    groups = groups_of(sizes)
    single = {
        name: [by(it, name, "T0", SINGLE) for it in (BROADCAST, OURS)]
        for name in ("sent", "everybody")
    }
    bottom = groups[-1]
    return [
        Claim(
            "I (3), VI-B: messages are at most t S ln S (1 + c + z), S > 1; their share of it",
            "at most", 1.0, "scaling share of the bound", "printed bound",
        ),
        Claim(
            "I (3): messages / (S ln S) do not grow with S (largest S over smallest)",
            "at most", 1.0, "scaling growth",
        ),
        *[
            Claim(
                f"I (4): no parasite is received; of an event on {group}, per event",
                "at most", 0.0, on_nodes("parasites", "all", group),
            )
            for group in reversed(groups)
        ],
        Claim(
            "I: one topic alone costs the messages of gossip broadcast",
            "equal", single["sent"][0], single["sent"][1],
        ),
        Claim(
            "I: one topic alone reaches everybody as often as gossip broadcast",
            "equal", single["everybody"][0], single["everybody"][1],
        ),
        Claim(
            "III-A: a process is in the group of its own topic only; groups of a process",
            "at most", 1.0, on_nodes("joined", bottom, bottom), "letter event all joined",
        ),
    ]  # fmt: skip


def _algorithm(sizes: str) -> list[Claim]:
    groups = groups_of(sizes)
    bottom, above = groups[-1], groups[-2]
    return [
        Claim(
            f"IV-C: an event is sent from {bottom} to {above} at least once; share of events",
            "at least", 1.0, event("up_any", bottom), event("up_any", bottom, reading="printed"),
        ),
        Claim(
            "IV-C: an event of the bottom topic reaches the root group; share of events",
            "at least", 1.0, event("got", "T0"), letter("got", "T0", "event"),
        ),
        Claim(
            "V-A, Fig. 4: a search fills the table with superprocesses; share of searches",
            "at least", 1.0, "links planaria nothing right", "links printed nothing right",
        ),
        Claim(
            "V-A, Fig. 4: a search that has found superprocesses stops; share of searches",
            "at least", 1.0, "links planaria nothing stopped", "links start nothing stopped",
        ),
        Claim(
            "V-A, Fig. 6: a table whose processes all failed is filled anew; share of tables",
            "at least", 1.0, "links planaria dead right", "links printed dead right",
        ),
        Claim(
            f"V-B, IV-C: g relays and the publisher send to a processes each, {bottom} to {above}",
            "equal", DIALS.g * DIALS.a + DIALS.a, event("up_sent", bottom),
            letter("up_sent", bottom),
        ),
        *_fanout(sizes, bottom),
    ]  # fmt: skip


def _fanout(sizes: str, bottom: str) -> list[Claim]:
    whole = "ln S + c processes, rounded up"
    return [
        Claim(
            f"V-B, Fig. 5, 7: a process of {bottom} sends an event once, to {whole}",
            "equal", float(DIALS.fanout(parse_sizes(sizes)[-1])), on_nodes("each", bottom, bottom),
            letter("each", bottom),
        ),
        Claim(
            "Fig. 7, l. 9: so it does where ln S + c is 6",
            "equal", 6.0, "corrected whole fanout", "printed whole fanout",
        ),
        Claim(
            "Fig. 7, l. 11: there is somebody left to select in every group; the smallest",
            "at most", 2.0, "corrected smallest group", "printed smallest group",
        ),
    ]  # fmt: skip


def _messages(sizes: str) -> list[Claim]:
    groups = groups_of(sizes)
    bottom, above = groups[-1], groups[-2]
    return [
        *[
            Claim(
                f"VI-B: at most S (ln S + c) events are sent within {group}",
                "at most", f"printed within {group}", event("sent", group), letter("sent", group),
            )
            for group in reversed(groups)
        ],
        Claim(
            f"VI-B: nbSuperMsg events are sent from {bottom} to {above}",
            "equal", "printed links", event("up_sent", bottom), letter("up_sent", bottom),
        ),
        Claim(
            f"VI-B: nbSuperMsg of them are received in {above}",
            "equal", "printed links", event("up_received", bottom),
            event("up_received", bottom, reading="printed"),
        ),
        Claim(
            "VI-B: events sent in all, the sum over groups and links",
            "equal", "printed messages", event("messages", "all"), letter("messages", "all"),
        ),
        Claim(
            "VI-B: 45 more relays at the bottom send 45 more events",
            "equal", 45.0, "corrected more relays", "printed more relays",
        ),
    ]  # fmt: skip


def _alternatives(sizes: str) -> list[Claim]:
    groups, largest = groups_of(sizes), max(parse_sizes(sizes))
    bottom, above, t = groups[-1], groups[-2], len(groups)

    def sent(name: str) -> str:
        return by(name, "sent", bottom, sizes)

    widest = CLUSTERS * largest * (log(CLUSTERS) + log(largest) + 2 * DIALS.c)
    wider = CLUSTERS * largest * (2 * log(largest) + 2 * DIALS.c)
    return [
        Claim("(3): multicast sends the sum of S (ln S + c), to a tenth",
              "within a tenth", "printed multicast sends", sent(SUBSCRIBERS), sent(INTERESTED)),
        Claim("(4): multicast sends at most t S (ln S + c)",
              "at most", t * largest * (log(largest) + DIALS.c), sent(SUBSCRIBERS)),
        Claim("(7): broadcast sends n (ln n + c), to a tenth",
              "within a tenth", "printed broadcast sends", sent(BROADCAST)),
        Claim("(10): hierarchical broadcast sends N m (ln N + ln m + c1 + c2), to a tenth",
              "within a tenth", "printed hierarchical sends", sent(HIERARCHICAL)),
        Claim("(11): hierarchical broadcast sends at most N S (ln N + ln S + c1 + c2)",
              "at most", widest, sent(HIERARCHICAL)),
        Claim("(12): hierarchical broadcast sends at most N S (2 ln S + c1 + c2)",
              "at most", wider, sent(HIERARCHICAL)),
        *[
            Claim(f"VI-E.1: daMulticast sends no more than {name}", "at most", sent(name),
                  sent(OURS))
            for name in (BROADCAST, SUBSCRIBERS, HIERARCHICAL)
        ],
        Claim(f"I: an event on {above} costs less than by broadcast", "less than",
              by(BROADCAST, "sent", above, sizes), by(OURS, "sent", above, sizes)),
    ]  # fmt: skip


def _memory(sizes: str) -> list[Claim]:
    groups = groups_of(sizes)
    bottom = groups[-1]

    def held(name: str) -> str:
        return by(name, "memory", bottom, sizes)

    return [
        *[
            Claim(
                f"I (1), VI-C: a process of {group} holds at most ln S + c + z entries",
                "at most", f"printed memory {group}", on_nodes("table", group, bottom),
                f"printed specified {group}",
            )
            for group in reversed(groups)
        ],
        *[
            Claim(f"VI-E.2: fewer entries than {name}, counted as ln S + c", "less than",
                  held(name), held(OURS), f"printed memory {bottom}")
            for name in (BROADCAST, INTERESTED, SUBSCRIBERS, HIERARCHICAL)
        ],
        Claim(f"VI-E.2: a process of {bottom} has fewer entries than one view, as in multicast",
              "less than", "corrected memory multicast at the bottom",
              on_nodes("table", bottom, bottom)),
    ]  # fmt: skip


def _reliability(sizes: str) -> list[Claim]:
    groups = groups_of(sizes)
    bottom, above, t = groups[-1], groups[-2], len(groups)
    hierarchical = exp(-(CLUSTERS + 1) * exp(-DIALS.c))
    stated = {BROADCAST: exp(-exp(-DIALS.c)), SUBSCRIBERS: exp(-t * exp(-DIALS.c)),
              HIERARCHICAL: hierarchical}  # fmt: skip
    told = {BROADCAST: "e^-e^-c", SUBSCRIBERS: "the product of e^-e^-c",
            HIERARCHICAL: "e^(-N e^-c1 - e^-c2)"}  # fmt: skip

    def everybody(name: str, loss: float = LOSS) -> str:
        return by(name, "everybody", bottom, sizes, loss)

    found = [
        Claim(f"VI-D: everybody in {bottom} receives with probability e^-e^-c", "equal",
              "printed everybody", event("p_all", bottom),
              event("p_all", bottom, reading="printed")),
        Claim("VI-D: so it is if nothing is lost", "equal", "printed everybody",
              by(OURS, "everybody", "T0", SINGLE, 0.0)),
        Claim(f"VI-D: pit, an event gets from {bottom} to {above}", "equal", "printed pit",
              event("got", above), event("got", above, reading="printed")),
        Claim("(1): everybody in every group receives", "equal", "printed reliability",
              event("p_all", "all"), event("p_all", "all", reading="printed")),
    ]  # fmt: skip
    for name, value in stated.items():
        reach = f"VI-E.3: {name} reaches everybody with {told[name]}"
        found.append(Claim(reach, "equal", value, everybody(name)))
        found.append(Claim(f"{reach}, if nothing is lost", "equal", value, everybody(name, 0.0)))
    found += [
        Claim(f"VI-E.3: daMulticast reaches everybody no more often than {name}", "at most",
              everybody(name), everybody(OURS))
        for name in stated
    ]  # fmt: skip
    return found


def _tuning() -> list[Claim]:
    told = {"(16)": "multicast", "(23)": "broadcast", "(28)": "hierarchical broadcast"}
    found = [
        Claim(f"{number}: with this c_1 as reliable as {name} (t - 1 links); how far from it",
              "equal", 0.0, f"corrected {number}", f"printed {number}")
        for number, name in told.items()
    ]  # fmt: skip
    found += [
        Claim(f"{number}: section VII's c lies below the limit where c_1 exists; the limit",
              "more than", DIALS.c, f"corrected limit of {number}", f"printed limit of {number}")
        for number in told
    ]  # fmt: skip
    bounds = {"(19)": "multicast", "(25)": "broadcast", "(30)": "hierarchical broadcast"}
    found += [
        Claim(f"{number}: section VII's z leaves tables smaller than {name}'s; the bound on z",
              "at least", float(DIALS.z), f"corrected {number}", f"printed {number}")
        for number, name in bounds.items()
    ]  # fmt: skip
    return found


def _figures(sizes: str) -> list[Claim]:
    groups = groups_of(sizes)
    bottom, links = groups[-1], list(zip(groups[:0:-1], groups[-2::-1], strict=True))
    found = [
        Claim(f"Fig. 8: with half failed {group} sends half of S (ln S + c), to a tenth",
              "within a tenth", f"half of printed within {group}", event("sent", group, HALF),
              event("sent", group, HALF, reading="printed"))
        for group in reversed(groups)
    ]  # fmt: skip
    for lower, upper in links:
        half = "Fig. 9: with half failed"
        found += [
            Claim(f"{half} at least one event is sent from {lower} to {upper}", "at least", 1.0,
                  event("up_sent", lower, HALF), event("up_sent", lower, HALF, reading="printed")),
            Claim(f"{half} this is enough for {upper}; share of events that reach it", "at least",
                  1.0, event("got", upper, HALF), event("got", upper, HALF, reading="printed")),
        ]  # fmt: skip
    found += [
        Claim(f"Fig. 10: the share of {bottom} that receives falls as more fail; largest rise",
              "at most", 0.0, "figure10 rise"),
        Claim("Fig. 10: the share is smaller in groups further up; largest excess",
              "at most", 0.0, "figure10 excess"),
    ]  # fmt: skip
    told = {"of_all": "share of all", "of_alive": "share of the live", "p_all": "P(all the live)"}
    for group in (bottom, "T0"):
        for meaning, name in told.items():
            found.append(
                Claim(f"Fig. 11: far better than Fig. 10 with half failed, {group}, {name}",
                      "more than", event(meaning, group, HALF),
                      event(meaning, group, HALF, failures="observer"))
            )  # fmt: skip
    return found


def _last() -> list[Claim]:
    return [
        Claim(f"VII-B: dials can be set so that everybody receives with {TARGET}", "at least",
              TARGET, f"dials {TARGET} everybody"),
        Claim("VIII: a second supertopic costs no reliability; share reached of the worse one",
              "at least", "inheritance 1 lowest", "inheritance 2 lowest"),
    ]  # fmt: skip


class Check(Struct, frozen=True):
    """`measured` is at most `bound`."""

    check: str
    measured: str
    bound: float


def checks() -> list[Check]:
    """What Planaria promises of this study."""
    return [
        Check("arrays agree with real nodes (difference over its allowance)", "nodes off", 1.0),
        Check("arrays agree with the exact chain (the same)", "exact off", 1.0),
        Check("parasites on real nodes with legitimate tables", "nodes parasites", 0.0),
        Check("times that a process was handed an event again", "nodes repeated", 0.0),
        Check("networks not healed from arbitrary tables", "healing failed", 0.0),
        Check("searches by real nodes that end with a wrong table", "links wrong", 0.0),
        Check("messages beside the corrected formula (relative)", "messages off", 0.005),
        Check("dials chosen for a target miss it by", "dials short", 0.0),
        Check("corrected (16), (23), (28) miss what they solve by", "tuning off", 1e-9),
    ]
