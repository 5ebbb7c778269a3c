"""Every rule that must be there, left out once: what searches and tests are measured by."""

from collections.abc import Sequence

from planaria.verify.cases import Case
from planaria.verify.mutation import Mutant

RING = "ring.sorted_ring:SortedRing"
DEAD = Case("sorted-ring", 2, "dead", delay=1)
LABELS = Case("sorted-ring", 2, "labels")
SKIP = "skipring"
ONE = Case("ring", 1, "one", delay=1)
LEAVERS = Case("ring", 1, "leavers", delay=1)
FOUND = "properties/test_ring_counterexamples.py::"
SORTED = "protocols/test_sorted_ring.py::"
SUBSCRIBER = "protocols/test_ring_subscriber.py::"

BUILD_RING: Sequence[Mutant] = (
    Mutant(
        "E2",
        "no reference to oneself is kept",
        f"{RING}._ring_edge_fits",
        "if ref[1] == self.id:",
        "if False:",
        f"{SORTED}test_reference_to_oneself_is_dropped_on_any_input",
    ),
    Mutant(
        "E3",
        "the order is total: (label, id)",
        f"{RING}._key",
        "self._order(ref[0]), ref[1]",
        "self._order(ref[0]), 0",
        Case("sorted-ring", 2, "equal"),
    ),
    Mutant(
        "E21",
        "a neighbour that stays silent is dropped",
        f"{RING}._drop_silent",
        "if not 0 <= silent <= SILENCE_MAX",
        "if silent < 0",
        DEAD,
    ),
    Mutant(
        "E22",
        "what others say of a neighbour's label does not move it",
        f"{RING}._introduce",
        "if self._believes_otherwise(ref):",
        "if False:",
        f"{SORTED}test_hearsay_about_a_neighbour_does_not_move_it_and_the_neighbour_itself_does",
    ),
    Mutant(
        "E23",
        "an end hands its ring edge inward",
        f"{RING}.on_timeout",
        "if far.ref != inward:",
        "if far.ref != inward and self.ring is None:",
        Case("sorted-ring", 4, "wound"),
    ),
    Mutant(
        "0042",
        "whom silence took only its own word brings back",
        f"{RING}._introduce",
        "if ref[1] in self.lost and (known is None or self._between(ref, known)):",
        "if False:",
        f"{SORTED}test_hearsay_does_not_bring_back_whom_silence_took_but_its_own_word_does",
    ),
    Mutant(
        "answer",
        "a CHECK that believes a wrong label is answered with the right one",
        f"{RING}._check",
        "if message.believed != self.label:",
        "if False:",
        f"{SORTED}test_wrong_belief_is_answered_by_its_owner_once",
    ),
    Mutant(
        "older label",
        "a neighbour that speaks under another label is the same neighbour",
        f"{RING}._check",
        "if self._believes_otherwise(sender):",
        "if False:",
        LABELS,
    ),
    Mutant(
        "wrong side",
        "what is on the wrong side is handed on, never lost",
        f"{RING}.repair",
        "return [send for ref in loose for send in self.learn(ref, shortcuts)]",
        "return []",
        Case("sorted-ring", 2, "sides"),
    ),
    Mutant(
        "displaced",
        "whom a closer one displaces is told to it",
        f"{RING}.learn",
        "return [self._ask(ref, cyclic=False), Send(ref[1], told)]",
        "return [self._ask(ref, cyclic=False)]",
        Case("sorted-ring", 3, "right"),
    ),
    Mutant(
        "delegate",
        "whom one does not keep is handed on",
        f"{RING}._delegate",
        "return [Send(best[1], Introduce(self.group, ref, False, hops + 1))]",
        "return []",
        Case("sorted-ring", 4, "wound"),
    ),
    Mutant(
        "contest",
        "of two that claim the other end the farther wins",
        f"{RING}._contest",
        "if self._between(self.ring, ref)",
        "if self._between(ref, self.ring)",
        Case("sorted-ring", 3, "right"),
    ),
    Mutant(
        "hops",
        "a reference that wandered too far is garbage",
        f"{RING}._introduce",
        "or not 0 <= hops < HOPS_MAX",
        "",
        f"{SORTED}test_reference_that_wandered_too_far_is_garbage",
    ),
)

SKIP_RING: Sequence[Mutant] = (
    Mutant(
        "R1 (H1)",
        "counters come back into their range",
        f"{SKIP}.inquiry:Inquiry.repair",
        "self.waiting = min(max(self.waiting, 0), self.waiting_max)",
        "pass",
        ONE,
    ),
    Mutant(
        "R2 (H2)",
        "a neighbour whose label is none is dropped",
        f"{SKIP}.place:Place.sound",
        " or not 0 <= ref[0] <= LABEL_MAX",
        "",
        f"{FOUND}test_f2_neighbour_with_a_label_that_is_none_is_dropped",
    ),
    Mutant(
        "R3 (H3)",
        "a supervisor farther away is heeded only after all patience",
        f"{SKIP}.inquiry:Inquiry.heed",
        "if rank > self.contact and self.waiting < PATIENCE:",
        "if rank > self.contact and not self.waiting:",
        f"{FOUND}test_f7_configuration_overtaken_by_moved_is_not_heeded",
    ),
    Mutant(
        "R4 (H4)",
        "patience does not run while the question waits in the queue",
        f"{SKIP}.topic_supervisor:TopicSupervisor._judge_suspects",
        "if id in self.probes or self.outbox.get(id):",
        "if False:",
        "protocols/test_ring_supervisor.py::test_nobody_is_removed_before_it_was_asked",
    ),
    Mutant(
        "R5 (H5)",
        "the owner of label 0 is doubted when it is not heard",
        f"{SKIP}.topic_supervisor:TopicSupervisor._doubt_the_unheard",
        "if rounds >= 0 and not rest:",
        "if False:",
        f"{FOUND}test_f4_dead_alone_are_forgotten",
    ),
    Mutant(
        "R6 (H6)",
        "a slot is filled by the member between me and it alone",
        f"{SKIP}.subscriber:Subscriber.on_introduce_shortcut",
        "if label not in self.ways_to(slot):",
        "if not self.ways_to(slot):",
        f"{FOUND}test_f6_no_set_of_false_shortcuts_confirms_itself",
    ),
    Mutant(
        "E2",
        "a peer is not its own neighbour",
        f"{SKIP}.place:Place.may_be_neighbour",
        "id != self.id and ",
        "",
        "properties/test_ring_named_states.py::test_single_node_that_points_at_itself_is_recorded",
    ),
    Mutant(
        "E6",
        "whoever asks for itself is recorded",
        f"{SKIP}.topic_supervisor:TopicSupervisor.on_get_configuration",
        "self._changed(self.database.insert(asker))",
        "pass",
        ONE,
    ),
    Mutant(
        "E7",
        "a leaver is always answered",
        f"{SKIP}.topic_supervisor:TopicSupervisor.on_unsubscribe",
        "return [Send(leaver, self._bottom()), *self.flush()]",
        "return self.flush()",
        LEAVERS,
    ),
    Mutant(
        "E8, E9",
        "empty and double entries of the database are repaired",
        f"{SKIP}.topic_supervisor:TopicSupervisor.on_timeout",
        "if self.database.repair():",
        "if False:",
        "paper/test_ring_lemmas.py::test_lemma_9_database_is_not_corrupt_after_one_timeout",
    ),
    Mutant(
        "E14",
        "label 0 asks every other time",
        f"{SKIP}.place:Place.probability",
        "return 0.5",
        "return 0.0",
        f"{FOUND}test_living_owner_of_label_0_is_never_doubted",
    ),
    Mutant(
        "E21",
        "a ring neighbour that stays silent is missed by name",
        f"{SKIP}.subscriber:Subscriber._notice_trouble",
        "self._miss(ref[1])",
        "pass",
        "properties/test_ring_named_states.py::"
        "test_unrecorded_node_is_found_when_its_only_neighbour_crashed",
    ),
    Mutant(
        "3.3",
        "a suspect that does not answer is removed",
        f"{SKIP}.topic_supervisor:TopicSupervisor._judge_suspects",
        "if id not in self.database or patience < 0:",
        "if id not in self.database:",
        ONE,
    ),
    Mutant(
        "3.3, answer",
        "a suspect that asks is no suspect",
        f"{SKIP}.topic_supervisor:TopicSupervisor.on_get_configuration",
        "self.suspects.pop(asker, None)",
        "pass",
        ONE,
    ),
    Mutant(
        "versions",
        "an older configuration is refused for a while only",
        f"{SKIP}.inquiry:Inquiry.heed",
        "and self.version_age < VERSION_AGE_MAX ",
        "",
        ONE,
    ),
    Mutant(
        "failover",
        "without an answer the next supervisor is asked",
        f"{SKIP}.inquiry:Inquiry._try_next",
        "(self.contact + 1)",
        "self.contact",
        Case("ring", 1, "second", delay=1),
    ),
    Mutant(
        "hand over",
        "a database that a closer supervisor should have is given up",
        f"{SKIP}.supervisor:Supervisor._on_probe_reply",
        "self.moved[topic] = (message.sender, MOVED_AGE_MAX)",
        "pass",
        f"{FOUND}test_supervisors_that_know_each_other_leave_one_database",
    ),
    Mutant(
        "A1",
        "a CHECK that disagrees lets both ends ask",
        f"{SKIP}.subscriber:Subscriber.on_greeting",
        "self.inquiry.alarm(window)",
        "pass",
        f"{SUBSCRIBER}test_check_that_disagrees_lets_both_ask",
    ),
    Mutant(
        "A2 (E18)",
        "whom a configuration displaces is woken",
        f"{SKIP}.subscriber:Subscriber.on_set_data",
        "effects = spread or [Send(id, Wake(self.topic, message.window)) for id in woken]",
        "effects = spread",
        f"{SUBSCRIBER}test_configuration_replaces_everything_and_wakes_whom_it_displaces",
    ),
    Mutant(
        "A3 (E19)",
        "whose gaps are those of no skip ring asks",
        f"{SKIP}.subscriber:Subscriber._notice_trouble",
        "if not self.around.plausible:",
        "if False:",
        f"{SUBSCRIBER}test_implausible_gaps_raise_the_alarm",
    ),
    Mutant(
        "A4 (E17)",
        "two claimants of a shortcut both ask",
        f"{SKIP}.subscriber:Subscriber.on_introduce_shortcut",
        "if known is None or known == claimant:",
        "if True:",
        f"{SUBSCRIBER}test_shortcut_fills_its_slot_and_two_claimants_both_ask",
    ),
    Mutant(
        "E4",
        "a level neighbour is the end of the chain",
        f"{SKIP}.place:Place._end",
        "if not chain:",
        "if True:",
        "paper/test_ring_lemmas.py::test_lemma_12_shortcuts_grow_level_by_level",
    ),
    Mutant(
        "E10, S1",
        "whoever a removal touches is configured, looked up after the move",
        f"{SKIP}.database:Database.remove",
        "touched += [moved, *self._beside(gap)]",
        "pass",
        "protocols/test_ring_database.py::test_change_names_everybody_whose_configuration_it_changes",
    ),
    Mutant(
        "E11",
        "a joiner does not decline",
        f"{SKIP}.subscriber:Subscriber._decline",
        "return [] if joining else",
        "return",
        f"{SUBSCRIBER}test_stranger_declines_to_be_a_neighbour_but_a_joiner_waits",
    ),
)

PUBLICATIONS: Sequence[Mutant] = (
    Mutant(
        "patience",
        "an exchange whose peer is silent is given up",
        "publications.antientropy:AntiEntropy.on_timeout",
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
        "(take or self.holdings.append)(sound(message.records))",
        "pass",
        Case("anti-entropy", 2, "stores", delay=1),
    ),
    Mutant(
        "strikes",
        "strikes beyond the bound are still strikes",
        "publications.antientropy:AntiEntropy._strike",
        "self.peers[peer] = (self.holdings.version, 0)\n    return True",
        "return False",
        "protocols/test_antientropy_faults.py::"
        "test_stores_with_arbitrarily_corrupted_caches_end_equal_and_lose_nothing",
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

MUTANTS: Sequence[Mutant] = (*BUILD_RING, *SKIP_RING, *PUBLICATIONS, *MOBILE)
