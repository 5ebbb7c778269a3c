"""The skip ring's page: what the paper says, what its text gives, what we get, by section."""

from collections.abc import Mapping, Sequence
from math import ceil, log2
from typing import Any

from planaria.studies.charts import Point, lines
from planaria.studies.skipring.graph import picture
from planaria.studies.study import Block, Figure, Prose, Shown, Table

Row = Mapping[str, Any]
Read = Mapping[str, Table]


def page(tables: Read) -> Sequence[Block]:
    """The whole page."""
    return [
        *_summary(tables),
        *_topology(tables),
        *_load(tables),
        *_healing(tables),
        *_errata(tables),
        *_tries(tables),
        *_spreading(tables),
        *_not_measured(),
    ]


def _summary(tables: Read) -> list[Block]:
    claims, states = tables["claims"], tables["states"]
    false = [row for row in claims if not row["holds"]]
    printed = _total(states, "printed")
    ours = _total(states, "ours")
    amended = _total(states, "amended")
    return [
        Prose(
            "<p>The paper proves and does not measure, so there are no settings to repeat. Every "
            f"lemma, theorem and number of it is a row of the claims above: {len(claims)} rows, of "
            f"which {len(false)} are false of the ring that Planaria runs. <em>Ours</em> is that "
            "ring. <em>Literal</em> is the pseudocode as printed, read as charitably as possible; "
            "where that does not run long enough to be measured, it is the pseudocode with every "
            "erratum amended but the one in question, or with all of them amended.</p>"
            f"<p>From arbitrary states of 1 to 12 subscribers the printed text heals {printed[0]} "
            f"of {printed[1]}; with all errata amended {amended[0]} of {amended[1]}; ours "
            f"{ours[0]} of {ours[1]}. In rings this small the amended text is quicker than ours: "
            "ours waits for evidence and paces its requests, which pays in large rings only.</p>"
        ),
        Shown("states", "Arbitrary states, n = 1..12: how many become legitimate, and when"),
    ]


def _topology(tables: Read) -> list[Block]:
    return [
        Prose(
            "<h3>Section 2: the skip ring</h3><p>Figure 1 is a ring of 16 subscribers that joined "
            "our supervisor at once: 16 ring edges, and 8, 4 and 1 shortcuts. The paper counts "
            "4n − 4 directed edges and a degree of 2 log n for label 0, because it counts the one "
            "edge between the labels 0 and 1 twice: there are 4n − 6, and the degree is "
            "2 log n − 1. The conclusions of Lemma 3 stand.</p>"
        ),
        Figure(
            "figure1",
            "Figure 1: SR(16), grown by itself; numbers are ids, outside are labels",
            picture(16, 1),
        ),
        *_congestion(tables["congestion"]),
    ]


def _congestion(rows: Table) -> list[Block]:
    far = rows[-1]
    return [
        Prose(
            "<p>Section 1.3 says that the skip ring has a better congestion than Chord, because "
            "its labels are evenly spread. They are; the congestion is not better. No edge joins "
            "the insides of the two semicircles (section 3.2.2 says so itself), so half of all "
            "traffic passes label 0 or label 1, whatever the routing. If everybody sends one "
            "packet to a random other along a shortest path, the busiest of "
            f"{far['n']:,} subscribers passes on {far['skip_ring']:.0f}, in a Chord ring of random "
            f"ids {far['chord']:.0f}; no routing over the skip ring gets below "
            f"{far['least']:.0f}. This does no harm to what the ring is used for: a broadcast "
            "sends everybody one message.</p>"
        ),
        Figure(
            "congestion",
            "Section 1.3: packets through the busiest subscriber",
            lines(
                {
                    "skip ring": _points(rows, "n", "skip_ring"),
                    "Chord": _points(rows, "n", "chord"),
                    "least possible over SR(n)": _points(rows, "n", "least"),
                },
                x="subscribers",
                y="packets",
                log="xy",
                dashed=["least possible over SR(n)"],
            ),
        ),
    ]


def _load(tables: Read) -> list[Block]:
    return [
        *_requests(tables),
        Prose(
            "<h3>Abstract: what checking costs</h3><p>A quiet ring needs four messages per process "
            "and interval. Algorithm 4, line 26 as printed linearizes every shortcut again in "
            "every interval (erratum E5), and the load grows with log n.</p>"
        ),
        Figure("quiet", "Messages per process and interval of a legitimate ring", _quiet(tables)),
        *_operations(tables),
    ]


def _requests(tables: Read) -> list[Block]:
    requests = {
        name: _points(_where(tables["requests"], rule=rule), "n", "expected")
        for rule, name in (
            ("ours", "ours: 1/(2^(k+1) k²)"),
            ("printed", "Algorithm 4"),
            ("prose", "section 3.2.1: actions (ii) and (iv)"),
            ("proof", "the sum in the proof"),
        )
    }
    last = {rule: _where(tables["requests"], rule=rule)[-1] for rule in ("ours", "printed")}
    return [
        Prose(
            "<h3>Section 3.2.1: requests</h3><p>Theorem 5 promises less than one configuration "
            "request per interval. Its proof has one label of length 1, there are two; and label 0 "
            "runs action (iv) in every state. As printed "
            f"{last['printed']['expected']:.3f} are expected at n = {last['printed']['n']:,}, and "
            "one or more from n = 2 on. Ours halves the probability: "
            f"{last['ours']['expected']:.3f}, and below 0.9113 for every n.</p>"
        ),
        Figure(
            "requests",
            "Theorem 5: configuration requests expected per interval of a legitimate ring",
            lines(
                {**requests, "Theorem 5": [Point(2, 1), Point(last["ours"]["n"], 1)]},
                x="subscribers",
                y="requests per interval",
                log="x",
                dashed=["the sum in the proof", "Theorem 5"],
            ),
        ),
    ]


def _quiet(tables: Read) -> str:
    names = {"ours": "ours", "amended": "text, amended", "E5 printed": "text, E5 as printed"}
    series = {
        name: _points(_where(tables["quiet"], rules=rules), "n", "messages")
        for rules, name in names.items()
    }
    most = max(point.x for points in series.values() for point in points)
    series["paper"] = [Point(2, 4), Point(most, 4)]
    return lines(series, x="subscribers", y="messages", log="x", dashed=["paper"])


def _operations(tables: Read) -> list[Block]:
    zero = _where(tables["operations"], operation="unsubscribe '0'")
    return [
        Prose(
            "<h3>Theorem 7: subscribe and unsubscribe</h3><p>The paper's supervisor sends one "
            "message for a subscribe and two for an unsubscribe. Ours also configures the ring "
            "neighbours that a change touches, and hears from whoever notices it: more, and "
            "independent of n as well. For the subscribers the theorem is true on average, not "
            "always: whoever holds label 0 has 2 log n − 1 neighbours, and all of them must learn "
            f"who holds it next. In ours that unsubscribe costs {zero[0]['peers']:.0f} messages at "
            f"n = {zero[0]['n']:,} and {zero[-1]['peers']:.0f} at n = {zero[-1]['n']:,}.</p>"
        ),
        Shown("operations", "Messages beyond the everyday: at the supervisor, among subscribers"),
    ]


def _healing(tables: Read) -> list[Block]:
    ours, text = (_healed(tables[name]) for name in ("recovery", "literal_recovery"))
    sizes = sorted({row["n"] for row in ours})
    permuted = _where(text, start="permuted")[-1]
    same = next(row for row in _where(ours, start="permuted") if row["n"] >= permuted["n"])
    worst = max(row["max"] / log2(row["n"]) for row in ours)
    series = {start: _intervals(_where(ours, start=start)) for start in _each(ours, "start")}
    series["6 log₂ n"] = [Point(n, 6 * log2(n)) for n in sizes]
    literal = {start: _intervals(_where(text, start=start)) for start in _each(text, "start")}
    return [
        Prose(
            "<h3>Section 5: convergence</h3><p>The paper says <em>eventually</em>. Measured are "
            "intervals, in which everybody runs TIMEOUT once, until the last end of one at which "
            "anything was wrong, in a variable or in flight. The worst of all recoveries here took "
            f"{worst:.1f} log₂ n. The starts: all join at once; the database is lost; half of the "
            "subscribers crash; the database is permuted against the labels; everything is "
            "arbitrary; two subscribers are exchanged. With the text's own rules, amended, a "
            f"permuted database of {permuted['n']:,} takes {permuted['intervals']:.0f} intervals "
            f"(ours at {same['n']:,}: {same['intervals']:.0f}), because the supervisor configures "
            "one subscriber per timeout.</p>"
        ),
        Figure(
            "recovery",
            "Intervals until legitimate, ours",
            lines(series, x="subscribers", y="intervals", log="x", dashed=["6 log₂ n"]),
        ),
        Figure(
            "literal_recovery",
            "The same of the paper's text with all errata amended",
            lines(literal, x="subscribers", y="intervals", log="x"),
        ),
        Shown(
            "recovery", "Recovery, ours: mean, interval at 95 %, worst, of the seeds that healed"
        ),
        Shown(
            "load",
            "What Planaria's recovery costs: requests, configurations and messages per subscriber; "
            "peaks of one interval, in units of the supervisor's rate max(64, n / log₂ n)",
        ),
    ]


def _errata(tables: Read) -> list[Block]:
    bad = sorted({row["left_out"] for row in tables["errata"] if row["not_healed"]}, key=_number)
    named = ", ".join(bad) or "none"
    return [
        Prose(
            "<h3>Which errata matter</h3><p>All errata of docs/errata.md are amended but one at a "
            "time; arbitrary states of 1 to 12 subscribers, a third with crashes, a third with "
            "leavers; <em>newest</em> is a scheduler under which, within an interval, the message "
            f"sent last comes first. States that do not heal in 60 intervals show for: {named}. "
            "The others need the states that their tests name, or cost time or messages only.</p>"
        ),
        Shown("errata", "Arbitrary states that do not heal if one erratum is not amended"),
    ]


def _tries(tables: Read) -> list[Block]:
    printed, kind = (_case(tables, "equal", rules) for rules in ("printed", "amended"))
    closer = _case(tables, "closer", "amended")
    by_u, by_v = (_case(tables, f"started by {who}", "amended") for who in "uv")
    mine = [_case(tables, f"started by {who}", "ours") for who in "uv"]
    return [
        Prose(
            "<h3>Section 4.2: Patricia tries</h3><p>Read to the letter (hashes of the children's "
            "labels, the <code>else</code> of Algorithm 5 under its inner <code>if</code>) "
            f"{printed['good']} of {printed['pairs']} pairs of small tries become equal; with the "
            f"readings that the sentences around them suggest, {kind['good']} of {kind['pairs']}. "
            "Figure 2 behaves as described: started by u nothing is found "
            f"({by_u['messages']:.0f} messages), started by v P4 arrives with "
            f"{by_v['messages']:.0f}. Our descent covers regions, so either start brings it "
            f"({mine[0]['messages']:.0f} and {mine[1]['messages']:.0f} messages). Lemma 20 is "
            "false: its Claim 21 overlooks that paths of both parities can be blocked, and in "
            f"{closer['pairs'] - closer['good']} of {closer['pairs']} random pairs no start of "
            "either brings v anything of u. Theorem 17 does not need it, as the pairs above "
            "show.</p>"
        ),
        Shown("tries", "Pairs of tries: of how many it is true, and messages of a start"),
        Prose(
            "<p>Two subscribers that store the same but for a few: bytes on the wire. The bound is "
            "the differing publications themselves and 8 bytes to name each.</p>"
        ),
        Figure("antientropy", "Anti-entropy: bytes until two are equal", _bytes(tables)),
        Shown("antientropy", "Anti-entropy: bytes and one-way messages"),
    ]


def _bytes(tables: Read) -> str:
    rows = tables["antientropy"]
    stored = max(row["stored"] for row in rows)
    series = {
        method: _points(_where(rows, stored=stored, method=method), "differing", "bytes")
        for method in ("Algorithm 5", "descent", "sketch")
    }
    series["bound"] = _points(_where(rows, stored=stored, method="sketch"), "differing", "bound")
    axis = f"differing publications of {stored:,}"
    return lines(series, x=axis, y="bytes", log="xy", dashed=["bound"])


def _spreading(tables: Read) -> list[Block]:
    rows, arcs = tables["backlog"], _where(tables["broadcast"], rule="arc")
    names = {"ours": "ours", "amended": "Algorithm 5 on the ring"}
    series = {
        f"{name}, {start}": _intervals(_where(rows, rules=rules, start=start))
        for rules, name in names.items()
        for start in _each(rows, "start")
    }
    hops = {
        "arcs": _points(arcs, "n", "hops_max"),
        "arcs, mean": _points(arcs, "n", "hops_mean"),
        "log n": [Point(row["n"], ceil(log2(row["n"]))) for row in arcs],
    }
    rises = max(row["rises"] for row in _where(rows, rules="ours"))
    return [
        Prose(
            "<h3>Theorem 17: a whole ring</h3><p>One publication that one subscriber alone holds "
            "walks the ring if tries are compared along ring edges: a time linear in n. Ours sends "
            "digests along shortcuts too. For the same reason Lemma 19 does not hold for ours (the "
            f"potential rose at up to {rises} interval ends of a run): who gets a publication from "
            "afar differs from both its ring neighbours.</p>"
        ),
        Figure(
            "backlog",
            "Intervals until everybody holds everything",
            lines(series, x="subscribers", y="intervals", log="x"),
        ),
        Prose(
            "<h3>Section 4.3: flooding</h3><p>Within log n hops, as promised. Flooding costs "
            "4n − 6 messages as printed and 3n − 5 if nothing is sent back; handing on arcs of "
            "the ring costs n − 1.</p>"
        ),
        Figure(
            "hops",
            "Hops of a broadcast",
            lines(hops, x="subscribers", y="hops", log="x", dashed=["log n"]),
        ),
        Shown("broadcast", "One publication: the worst over all origins tried"),
    ]


def _not_measured() -> list[Block]:
    return [
        Prose(
            "<p>Not measured: Definitions 1 and 2 and Corollary 18, which are definitions or "
            "follow from them; Claims 21 and 22, which are steps of Lemma 20; collision resistance "
            "of the hash functions, which is assumed.</p>"
        )
    ]


# Reading tables


def _where(rows: Table, **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[name] == it for name, it in wanted.items())]


def _healed(rows: Table) -> list[Row]:
    return [row for row in rows if row["seeds"]]


def _each(rows: Table, name: str) -> list[str]:
    return list(dict.fromkeys(str(row[name]) for row in rows))


def _points(rows: Sequence[Row], x: str, y: str) -> list[Point]:
    points = [Point(row[x], row[y]) for row in rows if row[y] is not None]
    return sorted(points, key=lambda point: point.x)


def _intervals(rows: Sequence[Row]) -> list[Point]:
    return sorted(
        (
            Point(row["n"], row["intervals"], row["low"], row["high"])
            for row in rows
            if row["intervals"] is not None
        ),
        key=lambda it: it.x,
    )


def _case(tables: Read, tried: str, rules: str) -> Row:
    return _where(tables["tries"], tried=tried, rules=rules)[0]


def _total(states: Table, rules: str) -> tuple[int, int]:
    rows = _where(states, rules=rules)
    return sum(row["healed"] for row in rows), sum(row["states"] for row in rows)


def _number(erratum: str) -> int:
    return int(erratum[1:]) if erratum[1:].isdecimal() else 0
