"""Rules that lemmas of docs/proofs stand on, each left out once: the lemma's own test must fail.

Only what no other list has: a lemma whose test catches a mutant elsewhere needs none here.
"""

from collections.abc import Sequence

from planaria.verify.mutation import Mutant

INQUIRY = "protocols/test_ring_inquiry.py::"
SUPERVISOR = "protocols/test_ring_supervisor.py::"
LEMMAS = "paper/test_ring_lemmas.py::"
EXCHANGES = "protocols/test_antientropy.py::"
FAULTS = "protocols/test_antientropy_faults.py::"
INSPECTION = "protocols/test_inspection.py::"
LINKS = "protocols/test_gossip_links.py::"
TOPIC = "skipring.topic_supervisor:TopicSupervisor"
EXCHANGES_BOOK = "publications.exchanges:Exchanges"
ANTI_ENTROPY = "publications.antientropy:AntiEntropy"

SKIP_RING: Sequence[Mutant] = (
    Mutant(
        "L1, sums",
        "all sums are counted anew after a while",
        f"{TOPIC}.on_timeout",
        "self.database.recount()",
        "pass",
        f"{SUPERVISOR}test_corrupt_sum_does_not_last",
    ),
    Mutant(
        "L2, rate",
        "a timeout sends no more configurations than the rate",
        f"{TOPIC}.flush",
        "while self.sent < rate and",
        "while",
        f"{SUPERVISOR}test_rate_of_configurations_is_bounded_and_nobody_is_forgotten",
    ),
    Mutant(
        "L2, shares",
        "each lane has its share of the rate",
        f"{TOPIC}._next",
        "kept = self.answers if turn == 0 else self.outbox if turn < 3 else self.probes",
        "kept = self.probes",
        f"{SUPERVISOR}test_those_who_are_wrong_are_answered_first",
    ),
    Mutant(
        "L3, counters",
        "counters come back into their range with one input",
        "skipring.inquiry:Inquiry.repair",
        "self.waiting = min(max(self.waiting, 0), self.waiting_max)",
        "pass",
        f"{INQUIRY}test_corrupt_counters_are_put_back_into_their_range",
    ),
    Mutant(
        "L3, versions",
        "an older configuration is refused for a while only",
        "skipring.inquiry:Inquiry.heed",
        "and self.version_age < VERSION_AGE_MAX ",
        "",
        f"{INQUIRY}test_absurd_version_does_not_shut_it_for_good",
    ),
    Mutant(
        "L4, hops",
        "hops that no reference can have made are garbage",
        "ring.sorted_ring:SortedRing._introduce",
        "not 0 <= hops < HOPS_MAX",
        "hops >= HOPS_MAX",
        "protocols/test_sorted_ring.py::test_hops_that_no_reference_can_have_made_are_garbage",
    ),
    Mutant(
        "L4, wakes",
        "a Wake that is passed on has one hop less",
        "skipring.subscriber:Subscriber.on_wake",
        "message.hops - 1",
        "message.hops",
        "protocols/test_ring_subscriber.py::"
        "test_wake_of_all_is_passed_on_before_the_own_answer_once_per_window",
    ),
    Mutant(
        "L5, in turn",
        "who is hopeless asks all supervisors in turn",
        "skipring.inquiry:Inquiry.on_timeout",
        "if self.hopeless:",
        "if False:",
        f"{INQUIRY}test_hopeless_one_asks_all_supervisors_in_turn",
    ),
    Mutant(
        "L5, no orphan",
        "who is answered is no orphan any more",
        "skipring.orphan:Orphan.repair",
        "if not self.member or not self.inquiry.hopeless:",
        "if not self.member:",
        "protocols/test_ring_subscriber.py::test_orphan_that_is_none_any_more_forgets_it",
    ),
    Mutant(
        "L6",
        "no gap is wider than the level of its label",
        "skipring.neighbourhood:plausible",
        "if before > widest or after > widest:",
        "if False:",
        "protocols/test_labels.py::test_plausible_places_are_exactly_those_of_some_skip_ring",
    ),
    Mutant(
        "L7, A1",
        "a CHECK that disagrees lets both ends ask",
        "skipring.subscriber:Subscriber.on_greeting",
        "window = self.window\n    self.inquiry.alarm(window)",
        "return []",
        f"{LEMMAS}test_lemma_10_two_that_hear_each_other_and_agree_on_nothing_are_recorded",
    ),
    Mutant(
        "L7, A3",
        "whose gaps are those of no skip ring asks",
        "skipring.subscriber:Subscriber._notice_trouble",
        "if not self.around.plausible:",
        "if False:",
        f"{LEMMAS}test_lemma_10_closed_ring_without_label_0_is_recorded",
    ),
    Mutant(
        "L7, E14",
        "label 0 asks every other time",
        "skipring.place:Place.probability",
        "return 0.5",
        "return 0.0",
        f"{LEMMAS}test_lemma_10_all_subscribers_become_recorded",
    ),
    Mutant(
        "L10, round robin",
        "each timeout configures the next in turn",
        f"{TOPIC}.on_timeout",
        "self._configure_owner(self.next)",
        "pass",
        f"{SUPERVISOR}test_timeout_configures_one_member_in_turn",
    ),
    Mutant(
        "L10, SETDATA",
        "the supervisor's word replaces what was believed",
        "skipring.subscriber:Subscriber.on_set_data",
        "self.label, self.pred, self.succ = message.label, message.pred, message.succ",
        "self.label = message.label",
        f"{LEMMAS}test_lemma_11_ring_is_right_when_everybody_has_its_configuration",
    ),
    Mutant(
        "L12",
        "a leaver is always answered",
        f"{TOPIC}.on_unsubscribe",
        "return [Send(leaver, self._bottom()), *self.flush()]",
        "return self.flush()",
        f"{LEMMAS}test_lemma_6_unsubscribed_node_is_left_by_everybody",
    ),
    Mutant(
        "L10, repair",
        "the database is repaired within an interval, though nobody asks",
        f"{TOPIC}.on_timeout",
        "if self.database.repair():",
        "if False:",
        f"{SUPERVISOR}test_damage_that_nobody_looks_at_is_repaired_at_the_next_timeout",
    ),
    Mutant(
        "T1",
        "a level neighbour is the end of the chain",
        "skipring.place:Place._end",
        "if not chain:",
        "if True:",
        f"{LEMMAS}test_theorem_8_arbitrary_state_becomes_the_skip_ring",
    ),
    Mutant(
        "T2",
        "a suspect that asks is no suspect",
        f"{TOPIC}.on_get_configuration",
        "self.suspects.pop(asker, None)",
        "pass",
        "properties/test_ring_closure.py::test_whatever_the_judge_calls_legitimate_stays_so",
    ),
    Mutant(
        "T2, in time",
        "who waits asks again with half of its patience left",
        "skipring.inquiry:Inquiry.on_timeout",
        "min(window, DUE_MAX - self.waiting)",
        "window",
        f"{INQUIRY}test_request_without_answer_is_repeated_with_half_of_the_patience_left",
    ),
    Mutant(
        "S1",
        "without an answer the next supervisor is asked",
        "skipring.inquiry:Inquiry._try_next",
        "(self.contact + 1)",
        "self.contact",
        "properties/test_ring_supervisor_loss.py::"
        "test_newcomers_and_old_members_meet_at_the_successor_of_a_dead_supervisor",
    ),
    Mutant(
        "S3",
        "a supervisor sends nobody on but to a closer one",
        "skipring.inquiry:Inquiry.move",
        "to not in self.supervisors[: self.contact]",
        "to not in self.supervisors",
        f"{INQUIRY}test_only_the_supervisor_it_asks_may_send_it_on_and_only_to_a_closer_one",
    ),
    Mutant(
        "S4",
        "who has no supervisor takes part in the sorted ring",
        "skipring.orphan:Orphan.help_ourselves",
        "self.succ = as_ref(self.orphan.successor)",
        "pass",
        "properties/test_ring_without_supervisor.py::"
        "test_peers_close_the_ring_over_the_dead_while_no_supervisor_is_left",
    ),
    Mutant(
        "former",
        "former neighbours are flooded for a while only",
        "skipring.former:Former._sound",
        "0 < left <= FORMER_TIMEOUTS",
        "0 < left",
        "properties/test_ring_rebuilt.py::"
        "test_any_former_neighbours_leave_a_legitimate_ring_so_and_are_gone_soon",
    ),
)

PUBLICATIONS: Sequence[Mutant] = (
    Mutant(
        "L1",
        "what is stored stays stored: an exchange that contradicts makes derived things anew",
        "publications.holdings:Holdings.doubt",
        "self._forget_derived()",
        "self.store.refuse([*self.store.index.order])",
        f"{FAULTS}test_stores_with_arbitrarily_corrupted_caches_end_equal_and_lose_nothing",
    ),
    Mutant(
        "L2",
        "what is no record is left out, and the rest is taken",
        "publications.push:sound",
        "continue",
        "break",
        f"{FAULTS}test_what_is_no_record_is_left_out_and_the_rest_is_taken",
    ),
    Mutant(
        "L3, patience",
        "an exchange whose peer is silent is given up",
        f"{EXCHANGES_BOOK}.on_timeout",
        "0 < exchange.age <= PATIENCE and ",
        "",
        f"{EXCHANGES}test_exchange_with_a_silent_peer_is_given_up",
    ),
    Mutant(
        "L3, lifetime",
        "an exchange ends even if the peer goes on speaking",
        f"{EXCHANGES_BOOK}.on_timeout",
        " and 0 < exchange.life <= LIFETIME",
        "",
        f"{EXCHANGES}test_chattering_peer_cannot_keep_an_exchange_open_for_ever",
    ),
    Mutant(
        "L4",
        "of two that begin at once the lower id goes on",
        f"{ANTI_ENTROPY}._on_estimate",
        "and self.id < sender",
        "and False",
        f"{FAULTS}test_both_starting_at_once_exchange_each_publication_once",
    ),
    Mutant(
        "L5",
        "a sketch that names what nobody has is in doubt",
        f"{ANTI_ENTROPY}._name_difference",
        "if unknown or not (ours or theirs):",
        "if not (ours or theirs):",
        f"{FAULTS}test_sketch_with_an_id_that_nobody_has_leads_to_descent_at_once",
    ),
    Mutant(
        "T1",
        "what is pushed is stored",
        f"{ANTI_ENTROPY}.on_message",
        "(take or self.holdings.append)(records)",
        "pass",
        f"{EXCHANGES}test_any_two_stores_become_their_union",
    ),
    Mutant(
        "T1, both ways",
        "one exchange brings what either side lacks",
        f"{ANTI_ENTROPY}._exchange_named",
        "want = [begin_of(id) for id in theirs[:IDS_MAX]]",
        "want = []",
        f"{EXCHANGES}test_one_digest_brings_both_sides_everything",
    ),
    Mutant(
        "M6",
        "the rest of what was named is asked for",
        f"{ANTI_ENTROPY}._go_on",
        "if not want or peer in self.exchanges:",
        "if True:",
        "protocols/test_antientropy_rest.py::"
        "test_what_is_lacked_is_named_by_one_sketch_however_many_answers_bring_it",
    ),
    Mutant(
        "M8",
        "only one digest is let go",
        f"{EXCHANGES_BOOK}._crosses",
        "self.crossing[peer] = True",
        "self.crossing[peer] = False",
        "protocols/test_antientropy_rest.py::"
        "test_a_digest_is_let_go_while_an_answer_is_on_its_way_and_the_next_is_not",
    ),
    Mutant(
        "T2",
        "digests that differ begin an exchange",
        f"{ANTI_ENTROPY}.on_digest",
        "return self.begin(sender, digest.lo, digest.cut, digest.digest)",
        "return []",
        "properties/test_ring_publications.py::"
        "test_theorem_17_a_partition_with_publications_on_both_sides_heals",
    ),
    Mutant(
        "T3",
        "what is derived is audited",
        f"{EXCHANGES_BOOK}.on_timeout",
        "self.holdings.on_timeout()",
        "pass",
        "protocols/test_publications_total.py::"
        "test_arbitrary_memory_raises_nothing_and_ends_in_agreement",
    ),
    Mutant(
        "L8",
        "what is not admitted is not taken up",
        "publications.inspection:Inspection.sift",
        "return [it for it, good in judged if good], refused[:REFUSED_MAX]",
        "return records, refused[:REFUSED_MAX]",
        f"{INSPECTION}test_who_pushes_what_is_refused_is_told_where_it_is",
    ),
    Mutant(
        "L9, refusal",
        "whoever pushes what is not admitted is told",
        "skipring.history:History._on_antientropy",
        "answers.append(Send(message.sender, refusal))",
        "pass",
        f"{INSPECTION}test_what_neighbours_refuse_is_dropped_while_others_publish_on",
    ),
    Mutant(
        "L9, verified",
        "what was refused is verified next",
        "skipring.history:History._on_refused",
        "self.inspection.suspect(message.places)",
        "pass",
        f"{INSPECTION}test_what_neighbours_refuse_is_dropped_while_others_publish_on",
    ),
    Mutant(
        "L9, its word",
        "the word of a neighbour drops nothing",
        "publications.inspection:Inspection.on_timeout",
        "if not self._admission.admits(it)",
        "if True",
        f"{INSPECTION}test_the_word_of_a_neighbour_drops_nothing",
    ),
    Mutant(
        "L10",
        "a pass goes on where it was, from the youngest to the oldest",
        "publications.inspection:Inspection._next",
        "self._last = (above or below or [0])[0]",
        "self._last = 0",
        f"{INSPECTION}test_a_pass_ends_though_more_come_than_are_verified",
    ),
)

GOSSIP: Sequence[Mutant] = (
    Mutant(
        "L3",
        "a member ages what it holds of its group's size",
        "gossip.membership:Membership.on_timeout",
        "self.sketch = sketches.grow_old(self.sketch, self.me)",
        "pass",
        "protocols/test_gossip_membership.py::test_a_group_whose_members_died_counts_them_no_more",
    ),
    Mutant(
        "L5, in turn",
        "one of many searches as often as g of them do in an interval",
        "gossip.links:Links.searches",
        " or rng.random() >= parameters.p_sel(size)",
        "",
        f"{LINKS}test_who_is_one_of_many_searches_as_often_as_g_of_them_and_now_and_then_for_ever",
    ),
    Mutant(
        "L6, many",
        "what one message cannot name is searched for with several",
        "gossip.links:Links.searches",
        "return parts if len(parts) >= WALKS else parts * WALKS",
        "return parts[:1] * WALKS",
        f"{LINKS}test_links_are_found_however_many_or_far_the_supertopics",
    ),
    Mutant(
        "L6, far",
        "who lacks links for long searches for every supertopic, however far",
        "gossip.links:Links.wanted",
        "(widest or distance <= scope)",
        "distance <= scope",
        f"{LINKS}test_links_are_found_however_many_or_far_the_supertopics",
    ),
)
