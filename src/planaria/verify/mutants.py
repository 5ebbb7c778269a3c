"""Every rule that must be there, left out once: what searches and tests are measured by."""

from collections.abc import Sequence

from planaria.verify import errata_mutants as errata
from planaria.verify import lemma_mutants as lemmas
from planaria.verify.cases import Case
from planaria.verify.mutation import Mutant
from planaria.verify.ring_mutants import BUILD_RING, SKIP_RING

PUBLICATIONS: Sequence[Mutant] = (
    Mutant(
        "patience",
        "an exchange whose peer is silent is given up",
        "publications.exchanges:Exchanges.on_timeout",
        "if not (fresh and exchange.sound):",
        "if not exchange.sound:",
        Case("anti-entropy", 1, "memory", delay=1),
    ),
    Mutant(
        "rivals",
        "of two that begin at once the lower id goes on",
        "publications.antientropy:AntiEntropy._on_estimate",
        "if rival is not None and rival.started and self.id < sender:",
        "if rival is not None:",
        Case("anti-entropy", 1, "stores", channel=2, delay=1),
    ),
    Mutant(
        "T8",
        "received records are stored under keys computed here",
        "publications.antientropy:AntiEntropy.on_message",
        "(take or self.holdings.append)(records)",
        "pass",
        Case("anti-entropy", 2, "stores", delay=1),
    ),
    Mutant(
        "strikes",
        "strikes beyond the bound are still strikes",
        "publications.exchanges:Exchanges._strike",
        "self.peers[peer] = (self.holdings.version, 0)\n    return True",
        "return False",
        "protocols/test_antientropy_faults.py::"
        "test_exchanges_that_change_nothing_lead_to_descent_without_any_audit",
    ),
)

HEIGHTS = Case("mobile", 2, "heights", delay=1)
ORIENTATION = "protocols/test_mobile_orientation.py::"

MOBILE: Sequence[Mutant] = (
    Mutant(
        "1",
        "the order is total: (height, lid, id)",
        "mobile.heights:Heights.sink",
        "me < (height, lid, peer)",
        "me[0] < height",
        HEIGHTS,
    ),
    Mutant(
        "2",
        "a sink climbs by at least one",
        "mobile.heights:Heights.reverse",
        "max(self.height + 1, *plausible, 0)",
        "max(self.height, *plausible, 0)",
        f"{ORIENTATION}test_turns_of_neighbours_differ_by_at_most_one",
    ),
    Mutant(
        "absurd heights",
        "one far above a neighbour that knows it comes down",
        "mobile.heights:Heights.hear",
        "if informed and self.height - word[1] > GAP_MAX:",
        "if False:",
        f"{ORIENTATION}test_one_absurd_height_comes_down_and_drags_nobody_up",
    ),
    Mutant(
        "informed",
        "nobody comes down for one that may not know how high it is",
        "mobile.heights:Heights.hear",
        "if informed and self.height",
        "if self.height",
        "properties/test_mobile_any_state.py::"
        "test_two_heights_far_apart_do_not_change_places_for_ever",
    ),
    Mutant(
        "stale",
        "a serial that is believed to be ahead is given up after a while",
        "mobile.link:Link.in_order",
        " and self.stale <= STALE_MAX",
        "",
        "properties/test_mobile_convergence.py::"
        "test_heights_heal_from_any_state_under_every_scheduler",
    ),
    Mutant(
        "audit",
        "now and then the whole height is said",
        "mobile.heights:Heights.word",
        "elif not audited and not whole and abs(height - self.height) <= 1:",
        "elif abs(height - self.height) <= 1:",
        HEIGHTS,
    ),
    Mutant(
        "order",
        "a beat that is older than the last is ignored",
        "mobile.link:Link.in_order",
        "if self.heard is not None and",
        "if False and",
        "protocols/test_mobile_layer.py::"
        "test_old_residue_is_ignored_because_it_would_be_taken_for_a_new_height",
    ),
    Mutant(
        "one-sided",
        "a beat of one who has a link that I lack is answered",
        "mobile.layer:Layer._one_sided",
        "return [Send(peer, RequestLinkUp(self.topic, self.id, self.orientation.greet()))]",
        "return []",
        "protocols/test_mobile_layer.py::test_link_that_only_one_end_has_is_made_anew",
    ),
    Mutant(
        "silence",
        "a neighbour that falls silent is dropped",
        "mobile.layer:Layer._forget",
        "if link.quiet > limit:",
        "if False:",
        "protocols/test_mobile_layer.py::test_neighbour_that_falls_silent_is_dropped",
    ),
)

LEASES = Case("leases", 2, "entries", delay=1)
LINKS = "protocols/test_gossip_links.py::"
PLACE = "protocols/test_tree_place.py::"

HOSTS: Sequence[Mutant] = (
    Mutant(
        "labels",
        "a host's label is computed, never believed",
        "dht.member:DhtMember.repair",
        "ring.left = ref(ring.left[1]) if is_node_id(ring.left[1]) else None",
        "pass",
        "protocols/test_dht_lookup.py::test_labels_are_computed_and_never_believed",
    ),
    Mutant(
        "calls",
        "a contact is called now and then",
        "dht.member:DhtMember.on_timeout",
        "if self.contacts and (alone or self.time % CALL_PERIOD == 0):",
        "if False:",
        Case("dht", 2, "living", delay=1),
    ),
    Mutant(
        "levels",
        "a finger that is no farther than that of the level below is dropped on any input",
        "dht.fingers:Fingers.repair",
        "if there > far:",
        "if True:",
        "protocols/test_dht_lookup.py::test_absurd_levels_of_fingers_are_dropped_on_any_input",
    ),
    Mutant(
        "tree 3",
        "a host searches when its keyset changed",
        "tree.place:TreePlace.review",
        "if not self.dirty and mine == self.searched:",
        "if not self.dirty:",
        f"{PLACE}test_change_of_the_own_keyset_is_a_reason_to_search_at_once",
    ),
    Mutant(
        "tree, refresh",
        "a host searches for no reason now and then",
        "tree.place:TreePlace.on_timeout",
        "if not 0 <= self.age < REFRESH_PERIOD:",
        "if False:",
        f"{PLACE}test_host_searches_for_no_reason_now_and_then",
    ),
    Mutant(
        "tree, agreed",
        "a host searches although all its neighbours agree with it",
        "tree.place:TreePlace.on_timeout",
        "if not 0 <= self.age < REFRESH_PERIOD:\n        self.dirty = True",
        "pass",
        f"{PLACE}test_hosts_that_all_confirm_a_false_tree_to_each_other_let_go_of_it",
    ),
    Mutant(
        "tree, keyset",
        "answers of a search for an older keyset are not adopted",
        "tree.place:TreePlace._finish",
        "mine != self.dht.keyset or ",
        "",
        f"{PLACE}test_answers_of_a_search_for_an_older_keyset_are_not_adopted",
    ),
    Mutant(
        "tree, suspects",
        "a lost neighbour is not taken back before it speaks",
        "tree.place:TreePlace._finish",
        "or any(id in self.suspects for id in (above, *below))",
        "",
        f"{PLACE}test_search_that_finds_a_suspect_is_not_adopted_but_repeated",
    ),
)

ROUTING: Sequence[Mutant] = (
    Mutant(
        "1",
        "a broker renews what it told, once in rho",
        "routing.node:Broker.on_timeout",
        "everything=self.round == 0",
        "everything=False",
        LEASES,
    ),
    Mutant(
        "second chance",
        "an entry that is not renewed is gone at the second overrun",
        "routing.leases:LeaseTable._overrun",
        "if lease.flag == 1}",
        "}",
        LEASES,
    ),
    Mutant(
        "7",
        "a renewal replaces the filter",
        "routing.leases:LeaseTable.insert",
        "leases[id] = Lease(filter, 1, stamp)",
        "leases[id] = Lease(filter if old is None else old.filter, 1, stamp)",
        LEASES,
    ),
    Mutant(
        "14",
        "a clock out of range overruns at once",
        "routing.leases:_advanced",
        "(clock + 1) % pi if 0 <= clock < pi else 0",
        "(clock + 1) % pi",
        "paper/test_errata_leases.py::test_erratum_14_a_clock_counts_whole_steps",
    ),
    Mutant(
        "cancels",
        "a lease that its cancel overtook does not come back",
        "routing.leases:LeaseTable.insert",
        "if cancel is not None and not newer(stamp, cancel[0]) and id not in (leases or {}):",
        "if False:",
        "properties/test_routing_convergence.py::"
        "test_a_lease_that_its_cancel_overtook_does_not_come_back",
    ),
    Mutant(
        "late",
        "a cancel is remembered for as long as what it overtook may take",
        "routing.overlay:bearing",
        "1 + ceil(delay)",
        "found.late",
        "properties/test_leases_delays.py::"
        "test_no_cancel_is_forgotten_before_what_it_overtook_has_come",
    ),
)

GROUP = Case("gossip", 2, "group", delay=1)
LEVELS = Case("gossip", 2, "levels", delay=1)

GOSSIP: Sequence[Mutant] = (
    Mutant(
        "ages of views",
        "news of others is one older than they say",
        "gossip.membership:Membership._take",
        "age = stated + 1",
        "age = stated",
        GROUP,
    ),
    Mutant(
        "silence",
        "whoever does not answer is given up",
        "gossip.membership:Membership.on_timeout",
        "self.forget(id)",
        "pass",
        GROUP,
    ),
    Mutant(
        "contacts",
        "configured contacts and the silent are called now and then",
        "gossip.membership:Membership.on_timeout",
        "if absent and",
        "if False and",
        GROUP,
    ),
    Mutant(
        "gone",
        "who says that it is no member is dropped",
        "gossip.membership:Membership.drop",
        "self.view.pop(id, None)",
        "pass",
        LEVELS,
    ),
    Mutant(
        "sketch",
        "hashes that nobody renews die out",
        "gossip.sketch:grow_old",
        "hashed: age + 1",
        "hashed: age",
        LEVELS,
    ),
    Mutant(
        "15, 16",
        "who lacks a superprocess searches for one",
        "gossip.links:Links.searches",
        "if not wanted or",
        "if True or",
        LEVELS,
    ),
    Mutant(
        "17",
        "a contact that is not heard of grows old",
        "gossip.links:Links.on_timeout",
        "(topic, age + 1) for id, (topic, age) in self.contacts",
        "(topic, age) for id, (topic, age) in self.contacts",
        LEVELS,
    ),
    Mutant(
        "checks",
        "contacts are asked whether they are still there",
        "gossip.links:Links.on_timeout",
        "if age >= CHECK_AGE or",
        "if False and",
        LEVELS,
    ),
    Mutant(
        "1",
        "relays are elected with probability below p_sel",
        "gossip.dissemination:disseminate",
        "rng.random() < parameters.p_sel(size)",
        "rng.random() >= parameters.p_sel(size)",
        "protocols/test_gossip_dissemination.py::"
        "test_relays_elect_themselves_with_probability_g_over_s_and_send_to_a_of_z",
    ),
    Mutant(
        "denials",
        "what a contact denied is believed again only by younger news",
        "gossip.links:Links.merge",
        "if self._is_denied(id, topic, age):",
        "if False:",
        f"{LINKS}test_what_a_contact_denied_is_believed_again_only_by_news_that_is_younger",
    ),
    Mutant(
        "ages",
        "news of others is one older on arrival, so that it ages on its way",
        "gossip.links:Links.merge",
        "age = stated + 1",
        "age = stated",
        f"{LINKS}test_news_handed_round_in_circles_grows_older",
    ),
    Mutant(
        "0022",
        "an event that came far enough goes no further",
        "gossip.dissemination:disseminate",
        "if event.hops >= EVENT_HOPS_MAX:",
        "if False:",
        "protocols/test_gossip_memory.py::"
        "test_event_that_came_far_enough_is_delivered_and_goes_no_further",
    ),
)

PARTS = {
    "Sorted ring": BUILD_RING,
    "Supervised skip ring": (*SKIP_RING, *errata.RING),
    "Publications": (*PUBLICATIONS, *errata.HISTORY),
    "Mobile": (*MOBILE, *errata.LAYERS),
    "DHT and tree": (*HOSTS, *errata.TREE),
    "Leases": (*ROUTING, *errata.LEASES),
    "Gossip": (*GOSSIP, *errata.EVENTS),
    "Lemmas of the skip ring": lemmas.SKIP_RING,
    "Lemmas of the publications": lemmas.PUBLICATIONS,
    "Lemmas of gossip": lemmas.GOSSIP,
}
MUTANTS: Sequence[Mutant] = tuple(mutant for part in PARTS.values() for mutant in part)
