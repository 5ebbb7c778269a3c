"""What the paper on leased routing says, section by section, and what we promise."""

from planaria.studies.verdicts import Check, Claim

CLAIMED = (
    Claim("Def. 1(a): without faults, deliveries made twice", 0, "=", "duplicated"),
    Claim("Def. 1(b): without faults, deliveries of what nobody published", 0, "=", "unpublished"),
    Claim("Def. 1(c): without faults, deliveries to who is not subscribed", 0, "=", "unwanted"),
    Claim("Def. 1, liveness: without faults, deliveries missed", 0, "=", "missed"),
    Claim("Def. 2: from any state, after delta: breaches of safety", 0, "=", "unsafe_later"),
    Claim("Def. 2: from any state, after delta: deliveries missed", 0, "=", "missed_later"),
    Claim("3.1: life of an entry that is not renewed, in pi", 2, "<=", "unrenewed"),
    Claim("3.1: life of an entry renewed once in pi, of 20 pi watched", 20, "=", "renewed"),
    Claim(
        "3.1: same id removed, then inserted: corrupted filters left after a renewal",
        *(0, "=", "filter_ours", "filter_printed"),
    ),
    Claim(
        "3.1: one corrupted clock: outages later than delta",
        *(0, "=", "clock_ours", "clock_printed"),
    ),
    Claim("3.2: flooding: worst stabilization over max(2 pi, d dmax)", 1, "<=", "worst_flooding"),
    Claim(
        "Fig. 1: longest time between renewals, line of brokers, over rho + d(dmax - dmin)",
        1,
        "<=",
        "gap",
    ),
    Claim(
        "3.3: example: shortest lease for rho = 14.7 s, in milliseconds", 14_900, "<=", "example_pi"
    ),
    Claim(
        "3.3: example: stabilization time is 30 s ('a delay of d dmax must be assumed')",
        *(30, "=", "example_delta", "example_printed"),
    ),
    Claim("3.3: example: longest rho that stabilizes within 30 s", 14.7, "=", "ours_rho"),
    Claim("3.3: simple routing: worst stabilization over delta", 1, "<=", "worst_simple"),
    Claim(
        "3.4: identity, no fault: seconds without an entry that is renewed",
        *(0, "=", "phases_ours", "phases_printed"),
    ),
    Claim(
        "3.4: identity, one of two clients leaves: seconds without the other's entry",
        *(0, "=", "unsubscription_ours", "unsubscription_printed"),
    ),
    Claim(
        "3.4: identity, both clients leave: entries that stay",
        *(0, "=", "ids_ours", "ids_printed"),
    ),
    Claim(
        "3.4: covering, a false cover: filter restored after, over delta",
        *(1, "<=", "cover_ours", "cover_printed"),
    ),
    Claim(
        "3.4: merging: periods for which a merge outlives what it was made of",
        *(0, "=", "merge_ours", "merge_printed"),
    ),
    Claim("3.4: identity: worst stabilization over delta", 1, "<=", "worst_identity"),
    Claim("3.4: covering: worst stabilization over delta", 1, "<=", "worst_covering"),
    Claim("3.4: merging: worst stabilization over delta", 1, "<=", "worst_merging"),
    Claim("4.1: brokers of a full 3-ary tree with 5 levels", 121, "=", "brokers"),
    Claim("4.1: leaf brokers", 81, "=", "leaves"),
    Claim("4.1: communication links", 120, "=", "links"),
    Claim("4.1: links that a control message crosses at most", 4, "=", "depth"),
    Claim("4.1: links that a notification crosses at most", 8, "=", "path"),
    Claim("4.1: leasing period pi1 that follows from constant delays, s", 60.2, "=", "pi_1"),
    Claim("4.1: leasing period pi2 that follows from constant delays, s", 600.2, "=", "pi_2"),
    Claim(
        "4.1: a subscription of mu1 is refreshed 10 times with rho1",
        *(10, "=", "refreshed_1"),
        within=0.05,
    ),
    Claim(
        "4.1: a subscription of mu1 is refreshed 100 times with rho2",
        *(100, "=", "refreshed_2"),
        within=0.05,
    ),
    Claim("4.1: equilibrium: subscriptions over lambda/mu", 1, "=", "alive", within=0.02),
    Claim("4.2: b_s1 without subscriptions, per s", 116_000, "=", "saved_at_0_1", within=1e-6),
    Claim("4.2: b_s2 without subscriptions, per s", 11_600, "=", "saved_at_0_2", within=1e-6),
    Claim(
        "4.2: b_s1 without subscriptions is 4,000 less than what flooding sends ('publishes')",
        *(4_000, "=", "less_than_flooded", "less_than_published"),
        within=1e-6,
    ),
    Claim(
        "4.2: b_c1 converges to 2,000 per s",
        *(2_000, "=", "limit_1", "flag_limit_1"),
        within=0.001,
    ),
    Claim("4.2: b_c2 converges to 200 per s", 200, "=", "limit_2", "flag_limit_2", within=0.001),
    Claim(
        "4.2: b_c3 converges to 2,000 per s (by the caption its rho is rho2)",
        *(2_000, "=", "limit_1_fast", "limit_2_fast"),
        within=0.001,
    ),
    Claim(
        "4.2: b_c4 converges to 200 per s (by the caption its rho is rho1)",
        *(200, "=", "limit_2_fast", "limit_1_fast"),
        within=0.001,
    ),
    Claim("4.2: up to 200,000 mu decides: largest b_c of mu2 over b_c of mu1", 1, ">", "mu_early"),
    Claim("4.2: mu2 leads to a hump with rho1: highest over limit", 1, ">", "peak_1_fast"),
    Claim("4.2: mu2 leads to a hump with rho2: highest over limit", 1, ">", "peak_2_fast"),
    Claim("4.2: mu1 does not, with rho1", 1, "<=", "peak_1", within=0.01),
    Claim("4.2: mu1 does not, with rho2", 1, "<=", "peak_2", within=0.01),
    Claim("4.2: b_s1 and b_c1 cross at about 300,000", 300_000, "=", "crossing", within=0.03),
    Claim(
        "4.2: b_s1 and b_c1 cross at about 300,000, simulated",
        *(300_000, "=", "crossing_simulated"),
        within=0.03,
    ),
    Claim("4.2: intersection points", 8, "=", "crossings"),
    Claim("4.2: filtering wins just below them and loses just above: share", 1, "=", "sides"),
)
CHECKED = (
    Check("simulated b_c beside the closed form, largest difference", "control_off", "<=", 0.03),
    Check(
        "simulated b_s beside the closed form up to 500,000, largest difference",
        "saved_off",
        "<=",
        0.05,
    ),
    Check(
        "simulated links that a notification crosses, in parts of all", "crossed_off", "<=", 0.005
    ),
    Check("simulated crossings beside the closed form's", "crossing_off", "<=", 0.03),
    Check("share of trials that stabilize, and stay so", "healed", "=", 1),
    Check("worst stabilization over its bound", "worst", "<=", 1),
    Check("deliveries missed without faults", "missed", "=", 0),
    Check("deliveries missed after delta, from any state", "missed_later", "=", 0),
    Check("breaches of safety after delta, from any state", "unsafe_later", "=", 0),
    Check("deliveries of the least busy run", "delivered", ">", 0),
    Check("what goes wrong of our broker in the cases of the errata", "cases_ours", "=", 0),
    Check("stabilization time by our rule for 30 s", "ours_delta", "<=", 30),
)
