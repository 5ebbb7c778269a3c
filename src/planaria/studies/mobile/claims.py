"""What the link reversal paper claims and what Planaria promises, each with the fact for it."""

from planaria.studies.verdicts import Check, Claim

STATED = (
    Claim("Figure 2.1: neighbours of processor 5 in layer 1", 3, "=", "first"),
    Claim("Figure 2.1: neighbours of processor 5 in layer 2", 1, "=", "second"),
    Claim(
        "Theorem 1: share of runs in which one layer moves another",
        0,
        "=",
        "layer_moved",
        "printed_layer_moved",
    ),
    Claim("Corollary 1: share of runs in which all layers do what one must", 1, "=", "specified"),
    Claim("Section 3.1, f = 2 links each: share of failures that disconnect", 0, "=", "cutting_2"),
    Claim("Section 3.1, f = 3 links each: share of pairs that disconnect", 0, "=", "cutting_3"),
    Claim("Lemma 1: share of all states with a directed cycle", 0, "=", "cyclic", "printed_cyclic"),
    Claim(
        "Figure 3.2 (a): share of a newcomer's links that point to it",
        0,
        "=",
        "outward",
        "printed_outward",
    ),
    Claim(
        "Lemma 2, Figure 3.2 (b): share of joins that close a cycle at once",
        0,
        "=",
        "join_cyclic",
        "printed_join_cyclic",
    ),
    Claim(
        "Lemmas 2 and 4: share of joins after which somebody starves",
        0,
        "=",
        "join_starving",
        "printed_join_starving",
    ),
    Claim(
        "Table 1, R3: share of newcomers with a neighbour's identifier",
        0,
        "=",
        "same_lid",
        "printed_same_lid",
    ),
    Claim(
        "Table 1: share of two newcomers side by side with one identifier",
        0,
        "=",
        "two_joiners",
        "printed_two_joiners",
    ),
    Claim("Note 1: share of departures that close a cycle", 0, "=", "leave", "printed_leave"),
    Claim(
        "Note 2: share of runs, newcomers wait for sinks, with starvation",
        0,
        "=",
        "waiting",
        "printed_waiting",
    ),
    Claim(
        "Section 3.3.1: share of all states without a sink", 0, "=", "sinkless", "printed_sinkless"
    ),
    Claim(
        "Lemma 3: share of steps that close a cycle", 0, "=", "step_cyclic", "printed_step_cyclic"
    ),
    Claim(
        "Lemma 3: share of steps from equal values that turn not all links",
        0,
        "=",
        "step_idle",
        "printed_step_idle",
    ),
    Claim(
        "Lemma 3: share of steps from any state that turn not all links",
        0,
        "=",
        "step_again",
        "printed_step_again",
    ),
    Claim(
        "Lemma 4: share of graphs and orders in which somebody starves",
        0,
        "=",
        "starving",
        "printed_starving",
    ),
    Claim(
        "Section 3.3: share of the same with neighbours two turns apart",
        0,
        "=",
        "unfair",
        "printed_unfair",
    ),
    Claim(
        "Lemma 4: share of merges by two links after which somebody starves",
        0,
        "=",
        "merge",
        "printed_merge",
    ),
    Claim(
        "Note 4: share of nodes without a turn while the network is in two parts", 0, "=", "parted"
    ),
    Claim(
        "Lemma 5: a scheme without starvation needs at least so many states",
        3,
        ">=",
        "states",
        "printed_states",
    ),
    Claim(
        "Lemma 6: share of nodes that starve because of another layer",
        0,
        "=",
        "layer_starving",
        "printed_layer_starving",
    ),
    Claim("Lemma 7: share of publications that leave their publisher", 1, "=", "spoken"),
    Claim("Lemma 8: share of subscribers reached on standing graphs", 1, "=", "delivered"),
    Claim("Lemma 8: publications missed by subscribers that move", 0, "=", "moving"),
    Claim(
        "Lemma 8: share of runs in which the news of a relay that left is lost",
        0,
        "=",
        "relay",
        "printed_relay",
    ),
    Claim("Lemma 9: share of nodes without a turn in 200 rounds", 0, "=", "silent"),
    Claim(
        "Section 4.1: copies on a 3x3 grid, as a share of flooding's",
        1,
        "<",
        "copies",
        "printed_copies",
    ),
    Claim("Section 4.1: the same, sent back too, as Table 4 does", 1, "<", "echo"),
    Claim(
        "Section 4.1: copies on a path, as a share of flooding's", 1, "<", "path", "printed_path"
    ),
    Claim("Note 5: share of publishers that speak first to a watcher in a grid", 1, "<", "named"),
    Claim("Note 5: the same, when publications walk before they are flooded", 1, "<", "walked"),
    Claim("Note 5: share of publishers that speak first to a star's centre", 1, "<", "centre"),
)

PROMISES = (
    Check("cases on small graphs that fail with heights", "small", "<=", 0.0),
    Check("intervals or runs with a directed cycle", "cycles", "<=", 0.0),
    Check("runs that did not become legitimate, or did not stay so", "unhealed", "<=", 0.0),
    Check("publications missed: standing, joining, moving, merging", "missed", "<=", 0.0),
    Check("publications handed to an application twice", "duplicated", "<=", 0.0),
    Check("layers moved by another", "layer_moved", "<=", 0.0),
    Check("news of a relay that left, lost", "relay", "<=", 0.0),
    Check("turns between neighbours", "apart", "<=", 1.0),
    # On the longest directed path, of at most n nodes, each acts within two intervals of becoming
    # a sink: a word takes up to half an interval and waits up to one for a timeout.
    Check("longest wait, as a share of 2 n intervals", "waited", "<=", 1.0),
    Check("copies per link and publication", "per_link", "<=", 1.0),
    Check("copies sent when all have it", "later", "<=", 0.0),
    Check("observers' best guess, as a share of its bound", "guessed", "<=", 1.0),
)
