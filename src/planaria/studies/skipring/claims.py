"""What the paper claims, in its order: each claim with where it is measured and what would do.

A claim is judged alike for all rules, ours and the paper's own; `paper` and `value` are SQL. A
claim that something is constant is read as: at most half as much again as at the smallest n, which
is `SMALLEST` at every scale. What grows like log n has doubled at n = 256.
"""

from msgspec import Struct

SMALLEST = 16
CONSTANT = "1.5 * smallest"  # `smallest` is what was measured at `SMALLEST`
LOG = "log2(n)"


class Claim(Struct, frozen=True):
    """One sentence of the paper that has a figure."""

    text: str
    source: str  # the experiment
    value: str
    paper: str
    relation: str = "equals"  # how `measured` is to `paper`: equals, at most, below, at least
    kind: str = "exact"  # what `measured` is of the runs: exact (they agree), mean, max, share
    where: str = "true"
    rules: str = "rules"
    literal: str = "printed"  # the rules that stand for the paper's text


class Check(Struct, frozen=True):
    """Planaria's promise: no run has a value above the bound. Runs of other rules do not count."""

    text: str
    source: str
    value: str
    bound: float = 0.0
    where: str = "true"
    rules: str = "'ours'"


def _share(text: str, source: str, value: str, where: str = "true", **more: str) -> Claim:
    return Claim(text, source, value, "1", "equals", "share", where, **more)


SHAPE = (
    Claim("Sec. 2.1: labels among the first nine that are as printed", "shape", "order", "9",
          where="n = 16"),
    Claim("Sec. 2.1: labels are spread evenly: widest gap in units of the narrowest", "shape",
          "gap_ratio", "1"),
    Claim("Sec. 2.1, Fig. 1: ring edges of SR(16)", "shape", "level_4", "16", where="n = 16"),
    Claim("Fig. 1: shortcuts for k = 3, green", "shape", "level_3", "8", where="n = 16"),
    Claim("Fig. 1: shortcuts for k = 2, red", "shape", "level_2", "4", where="n = 16"),
    Claim("Fig. 1: shortcuts for k = 1, 'the blue edge'", "shape", "level_1", "1", where="n = 16"),
    Claim("Lemma 3: degree at most 2 log n", "shape", "degree_max", f"2 * {LOG}", "at most"),
    Claim("Lemma 3, proof: label 0 has degree 2 log n", "shape", "degree_zero", f"2 * {LOG}"),
    Claim("Lemma 3, proof: lengths k that 2^(k-1) labels have (two for k = 1)", "shape", "levels",
          LOG),
    Claim("Lemma 3, proof: 4n - 4 edges, both directions counted", "shape", "directed",
          "4 * n - 4"),
    Claim("Lemma 3: average degree at most 4", "shape", "degree_mean", "4", "at most"),
    Claim("Sec. 1.3, 4.3: the diameter is log n", "shape", "diameter", LOG, "at most"),
    Claim("Sec. 1.3: congestion is better than Chord's: packets through the busiest node, in "
          "units of Chord's", "shape", "congestion / chord", "1", "below"),
    Claim("Sec. 3.2.2: share of subscribers with two neighbours on every level from their own",
          "shape", "two_each", "1"),
    Claim("Sec. 3.2.2: share of subscribers whose shortcuts follow from their ring neighbours",
          "shape", "computed", "1"),
    Claim("Sec. 3.2.2: shortcuts of 1/4 in SR(16) that are as in the example", "shape", "example",
          "4", where="n = 16"),
    Claim("Sec. 3.2.2: edges between the insides of the two semicircles", "shape", "crossing", "0"),
    Claim("Sec. 4.1: newcomers to SR(n) that get 1/2n, 3/2n, 5/2n, ...", "shape", "spread", "n"),
    Claim("Sec. 4.1: while n doubles a subscriber's neighbours change twice", "shape", "touched",
          "2"),
    Claim("Sec. 4.1: share of subscribers whose two changes come with consecutive joins", "shape",
          "consecutive", "1"),
)  # fmt: skip

LOAD = (
    Claim("Abstract: messages per process and interval are constant, 4 by Alg. 1 and 4", "quiet",
          "messages", "4", "at most", "mean", "n >= 16", literal="E5 printed"),
    Claim("Abstract: the supervisor sends a constant number of messages per interval, below 2",
          "quiet", "answers", "2", "below", "mean", "n >= 16", literal="E14 printed"),
    Claim("Sec. 1.3: the supervisor's load is linear in the topics: messages per topic and "
          "interval, below 2", "topics", "sent / topics", "2", "below", "mean", rules="'ours'"),
    Claim("Theorem 5: less than one configuration request is expected per interval", "requests",
          "expected", "1", "below", where="n in (2, 4, 16, 1024)", rules="rule"),
    Claim("Theorem 5: less than one configuration request per interval, measured", "quiet",
          "requests", "1", "below", "mean", "n >= 16", literal="E14 printed"),
    Claim("Theorem 7: a subscribe costs the supervisor a constant", "operations", "supervisor",
          CONSTANT, "at most", "mean", "operation = 'subscribe'", rules="'ours'"),
    Claim("Theorem 7: an unsubscribe costs the supervisor a constant", "operations", "supervisor",
          CONSTANT, "at most", "mean", "operation = 'unsubscribe'", rules="'ours'"),
    Claim("Theorem 7: a subscribe costs the subscribers a constant", "operations", "peers",
          CONSTANT, "at most", "mean", "operation = 'subscribe'", rules="'ours'"),
    Claim("Theorem 7: an unsubscribe costs the subscribers a constant", "operations", "peers",
          CONSTANT, "at most", "mean", "operation = 'unsubscribe'", rules="'ours'"),
    Claim("Theorem 7: so does the unsubscribe of label 0", "operations", "peers", CONSTANT,
          "at most", "mean", "operation = \"unsubscribe '0'\"", rules="'ours'"),
    Claim("Theorem 7: whoever leaves, a constant number of others must be told (label 0)",
          "shape", "told", CONSTANT, "at most"),
)  # fmt: skip

HEALING = (
    _share("Lemma 4: share of arbitrary states from which BuildRing alone heals, n = 1..12",
           "buildring", "healed", rules="'ours'"),
    _share("Theorem 8: share of arbitrary states that become SR(n), n = 1..12", "states", "healed",
           "fault = 'none'"),
    _share("Theorem 8: share of large arbitrary states that become SR(n)", "recovery", "healed",
           "start = 'corrupt'", rules="'ours'"),
    _share("Sec. 3.3: the same with crashes among them", "states", "healed", "fault = 'crash'"),
    _share("Lemma 6: the same with leavers among them", "states", "healed", "fault = 'leave'"),
    _share("Lemma 6: share of legitimate rings that a subscriber left for good", "lemmas",
           "healed", "lemma = '6'", literal="E7 printed"),
    _share("Lemma 9: share of arbitrary databases that get right", "lemmas", "healed",
           "lemma = '9'", literal="E8 printed"),
    _share("Lemma 10: share of arbitrary states in which all become recorded", "states",
           "recorded", "fault = 'none'"),
    Claim("Lemma 11: with a right database the ring is right after 2n timeouts of the supervisor",
          "lemmas", "intervals", "2 * n", "at most", "max", "lemma = '11'", literal="amended"),
    _share("Lemma 12: share of rings whose erased shortcuts come back", "lemmas", "healed",
           "lemma = '12'", literal="E4 printed"),
    Claim("Theorem 13, Lemma 14: looks of 400 at which the database of a quiet ring had changed",
          "quiet", "database", "0", kind="max"),
    Claim("Theorem 13, Lemma 15: looks of 400 at which ring edges had changed", "quiet", "ring",
          "0", kind="max"),
    Claim("Theorem 13, Lemma 16: looks of 400 at which shortcuts had changed", "quiet",
          "shortcuts", "0", kind="max"),
)  # fmt: skip

PUBLICATIONS = (
    Claim("Sec. 1.2: a newcomer holds all publications after a constant number of intervals",
          "backlog", "intervals", CONSTANT, "at most", "mean", "start = 'newcomer'",
          literal="amended"),
    Claim("Sec. 4.2: publications that were sent to somebody who held them", "antientropy",
          "redundant", "0", kind="max", rules="if(method = 'sketch', 'ours', 'amended')",
          where="method in ('sketch', 'Algorithm 5')", literal="amended"),
    Claim("Fig. 2: messages until v has P4, started by v", "tries", "messages", "4", "at most",
          where="tried = 'started by v'", literal="amended"),
    Claim("Fig. 2: share of the two starts that bring P4 to v", "tries", "good", "0.5",
          "at least", where="tried like 'started%'", literal="amended"),
    Claim("Sec. 1.2, 4.3: hops until a publication has reached everybody, log n", "broadcast",
          "hops_max", f"ceil({LOG})", "at most", "max",
          rules="if(rule = 'arc', 'ours', if(rule = 'literal', 'printed', rule))"),
    Claim("Sec. 4.3: subscribers that a publication reaches", "broadcast", "reached", "n",
          rules="if(rule = 'arc', 'ours', if(rule = 'literal', 'printed', rule))"),
    Claim("Theorem 17: share of pairs of small tries that become equal", "tries", "good / pairs",
          "1", kind="mean", where="tried = 'equal'"),
    _share("Theorem 17: share of rings in which everybody ends up with everything", "backlog",
           "equal", literal="amended"),
    Claim("Lemma 19: interval ends at which the potential had risen", "backlog", "rises", "0",
          kind="max", literal="amended"),
    Claim("Lemma 20: share of pairs of tries in which a start of u or v brings v nearer to u",
          "tries", "good / pairs", "1", kind="mean", where="tried = 'closer'", literal="amended"),
    Claim("Theorem 23: tries that changed while all were equal", "silence", "changed", "0",
          kind="max", rules="'ours'"),
    Claim("Theorem 23, proof: messages beyond the periodic ones meanwhile", "silence", "exchanges",
          "0", kind="max", rules="'ours'"),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (*SHAPE, *LOAD, *HEALING, *PUBLICATIONS)

LIMITS = {  # intervals until legitimate, per log2 n
    "fresh": 4.0,
    "wiped": 8.0,
    "crash50": 8.0,
    "permuted": 8.0,
    "corrupt": 12.0,
    "swapped": 12.0,
}
EXCHANGE_MESSAGES_MAX = 9.0  # five, and two for each of two larger sketches
OURS = "rules = 'ours'"
ARCS = "rule = 'arc'"
SKETCH = "method = 'sketch'"

PROMISES: tuple[Check, ...] = (
    *(
        Check(f"intervals to heal, start {start}, in units of log2 n", "recovery",
              f"intervals / {LOG}", limit, f"start = '{start}'")
        for start, limit in LIMITS.items()
    ),
    Check("a recovery does not end", "recovery", "not healed"),
    Check("an arbitrary state does not heal", "states", "not healed", where=OURS),
    Check("a lemma's state does not heal", "lemmas", "not healed", where=OURS),
    Check("BuildRing does not heal an arbitrary state", "buildring", "not healed"),
    Check("a quiet ring changes", "quiet", "database + ring + shortcuts > 0", where=OURS),
    Check("messages per process and interval of a quiet ring", "quiet", "messages", 4.0, OURS),
    Check("requests expected per interval", "requests", "expected", 1.0, "rule = 'ours'"),
    Check("an operation is not done in time", "operations", "not done"),
    Check("somebody lacks a publication", "backlog", "not equal", where=OURS),
    Check("subscribers that hold the same talk or change", "silence", "changed + exchanges > 0"),
    Check("a broadcast misses somebody", "broadcast", "reached < n", where=ARCS),
    Check("messages of a broadcast per subscriber reached", "broadcast", "messages / (n - 1)",
          1.0, ARCS),
    Check("hops of a broadcast in units of log2 n, rounded up", "broadcast",
          f"hops_max / ceil({LOG})", 1.0, ARCS),
    Check("two differ after an exchange", "antientropy", "not equal", where=SKETCH),
    Check("messages of an exchange", "antientropy", "messages", EXCHANGE_MESSAGES_MAX, SKETCH),
)  # fmt: skip
