"""Amendments of the papers that no other list has, left out; and for every erratum who answers it.

An erratum is answered by mutants, or there is no rule to leave out: then the reason stands here.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from planaria.verify.cases import Case
from planaria.verify.mutation import Mutant

GOSSIP_EVENTS = "protocols/test_gossip_dissemination.py::"

RING: Sequence[Mutant] = (
    Mutant(
        "E5",
        "a shortcut that was right is not acted on again",
        "skipring.subscriber:Subscriber.on_introduce_shortcut",
        "if known is None or known == claimant:",
        "if known is None:",
        "protocols/test_ring_subscriber.py::test_shortcut_fills_its_slot_and_two_claimants_both_ask",
    ),
    Mutant(
        "E15",
        "a single member is configured without neighbours",
        "skipring.database:Database.neighbours",
        "while 0 <= label < len(self.entries) >= 2:",
        "while 0 <= label < len(self.entries) >= 1:",
        "protocols/test_ring_database.py::test_neighbours_are_those_of_the_definition",
    ),
    Mutant(
        "E16",
        "nobody is configured in turn where nobody is recorded",
        "skipring.topic_supervisor:TopicSupervisor.on_timeout",
        "if self.pace.on_timeout(doubt=self._doubtful) and n:",
        "if self.pace.on_timeout(doubt=self._doubtful):",
        Case("ring", 1, "leavers", delay=1),
    ),
)

HISTORY: Sequence[Mutant] = (
    Mutant(
        "T1",
        "the hash of an inner node is over its children's hashes",
        "publications.trie:Trie._inner_hash",
        "_INNER + left + right",
        "_INNER",
        "protocols/test_trie.py::test_root_hashes_of_all_sets_of_three_bit_keys_differ",
    ),
    Mutant(
        "T2",
        "what the other lists and I lack is asked for",
        "publications.descent:answer",
        "and key not in trie",
        "and False",
        "protocols/test_antientropy.py::"
        "test_descent_alone_finds_the_losses_of_both_sides_in_one_start",
    ),
    Mutant(
        "T3, T6",
        "a listing covers a region: what it leaves out the other lacks",
        "publications.descent:lacking",
        "return trie.keys(theirs.label, listed)",
        "return iter(())",
        "protocols/test_antientropy.py::"
        "test_descent_alone_finds_the_losses_of_both_sides_in_one_start",
    ),
    Mutant(
        "T5",
        "the empty trie has a hash",
        "publications.trie:Trie._hash",
        "if node is None:",
        "if False:",
        "protocols/test_trie.py::test_root_hashes_of_all_sets_of_three_bit_keys_differ",
    ),
)

EVENTS: Sequence[Mutant] = (
    Mutant(
        "2",
        "an event goes to ln S + c members, rounded up",
        "gossip.parameters:Parameters.fanout",
        "ceil(log(max(1.0, size)) + self.c - 1e-9)",
        "int(log(max(1.0, size)) + self.c) + 1",
        f"{GOSSIP_EVENTS}test_whole_number_of_targets_is_not_rounded_up_once_more",
    ),
    Mutant(
        "3",
        "at most as many are chosen as are known",
        "gossip.dissemination:disseminate",
        "fanout = min(parameters.fanout(max(size, len(known) + 1)), len(known))",
        "fanout = parameters.fanout(max(size, len(known) + 1)) + 1",
        f"{GOSSIP_EVENTS}test_small_group_is_sent_to_whole_however_large_c_is",
    ),
    Mutant(
        "4",
        "a relay sends to exactly a of z superprocesses",
        "gossip.dissemination:disseminate",
        "min(parameters.a, len(ids))",
        "len(ids)",
        f"{GOSSIP_EVENTS}test_relays_elect_themselves_with_probability_g_over_s_and_send_to_a_of_z",
    ),
    Mutant(
        "18",
        "an event is passed on in the forwarder's own group",
        "gossip.dissemination:disseminate",
        "_sends(event, membership.group, _some",
        "_sends(event, event.topic, _some",
        f"{GOSSIP_EVENTS}test_event_is_passed_on_in_the_group_of_the_forwarder",
    ),
    Mutant(
        "19",
        "the publisher marks its event as received",
        "gossip.node:GossipNode._accept",
        "self.memory.put(event.msg_id, None)",
        "publisher or self.memory.put(event.msg_id, None)",
        f"{GOSSIP_EVENTS}test_publisher_takes_no_copy_of_its_own_event",
    ),
    Mutant(
        "20",
        "the publisher always relays",
        "gossip.dissemination:disseminate",
        "if publisher or rng.random()",
        "if rng.random()",
        f"{GOSSIP_EVENTS}test_publisher_always_relays",
    ),
)

TREE: Sequence[Mutant] = (
    Mutant(
        "tree 2",
        "whoever is a neighbour no more is told so",
        "tree.place:TreePlace._adopt",
        "effects += [TreeLink(id, up=False), Send(id, Unlink(self.dht.id))]",
        "effects += [TreeLink(id, up=False)]",
        "protocols/test_tree_place.py::test_whoever_is_a_neighbour_no_more_is_told_so",
    ),
    Mutant(
        "tree 7",
        "of two topmost keys of equal depth the smaller counts, for everybody",
        "tree.reference_tree:ReferenceTree.topmost",
        "min((self.depth(key), key) for key in tops)[1]",
        "min((self.depth(key), -key) for key in tops)[1] * -1",
        "protocols/test_tree_search.py::test_search_equals_the_definitions_on_every_host_set_of",
    ),
)

LEASES: Sequence[Mutant] = (
    Mutant(
        "3, 4, 5",
        "what a neighbour must know is computed anew from all entries when one changes",
        "routing.announcer:Announcer.changed",
        "self.wanted.pop(link, None)",
        "pass",
        "paper/test_errata_leases.py::"
        "test_erratum_4_a_bogus_cover_hides_a_filter_until_its_next_refresh",
    ),
)

LAYERS: Sequence[Mutant] = (
    Mutant(
        "13",
        "a publication is delivered and passed on once",
        "mobile.dissemination:Dissemination.receive",
        "known = item.id in self.seen",
        "known = False",
        "protocols/test_mobile_dissemination.py::test_one_publication_on_a_grid_then_silence",
    ),
    Mutant(
        "14",
        "recent publications are replayed over a link that comes up",
        "mobile.layer:Layer._replay",
        "link.outbox = self.news.replay()",
        "pass",
        "protocols/test_mobile_dissemination.py::"
        "test_agreement_holds_when_a_relay_leaves_with_the_message",
    ),
)

Answer = tuple[str, ...] | str  # mutants by name, or why there is no rule to leave out
FORMULA = "a formula or a figure of the paper, no rule of a protocol"
EVALUATION = "a statement of the paper's evaluation, no rule of a protocol"


class Paper(Struct, frozen=True):
    """The errata of one table of docs/errata.md: who answers each, among which mutants."""

    parts: tuple[str, ...]
    answers: Mapping[str, Answer]


PAPERS: Mapping[str, Paper] = {
    "Paper 1: supervised skip ring, overlay": Paper(
        ("Sorted ring", "Supervised skip ring"),
        {
            **{f"E{it}": (f"E{it}",) for it in (1, 2, 3, 4, 5, 6, 7, 11, 14, 15, 16, 21, 22, 23)},
            "E8": ("E8, E9",),
            "E9": ("E8, E9",),
            "E10": ("E10, S1",),
            "E12": ("R2 (H2)",),
            "E13": "the erratum found no failure",
            "E17": ("A4 (E17)",),
            "E18": ("A2 (E18)",),
            "E19": ("A3 (E19)",),
            "E20": "costs a message where E2 is amended: a reference to oneself is dropped",
        },
    ),
    "Paper 1: publications": Paper(
        ("Publications",),
        {
            **{it: (it,) for it in ("T1", "T2", "T5", "T8")},
            "T3": ("T3, T6",),
            "T6": ("T3, T6",),
            "T4": "a record's key is of its bytes, and publisher and number are among them",
            "T7": "broadcasts have a table of their own and cannot read the store",
        },
    ),
    "Paper 2: daMulticast, hierarchical topics by gossip": Paper(
        ("Gossip",),
        {
            **{f"{it}": (f"{it}",) for it in (1, 2, 3, 4, 17, 18, 19, 20)},
            **{f"{it}": FORMULA for it in (*range(5, 15), 21)},
            "15": ("15, 16",),
            "16": ("15, 16",),
        },
    ),
    "Paper 3: publish-subscribe tree maintenance over a DHT": Paper(
        ("DHT and tree",),
        {
            "1": "the values of an example",
            **{f"{it}": (f"tree {it}",) for it in (2, 3, 7)},
            **{f"{it}": "the definition of the tree, no rule" for it in (4, 6, 11)},
            "5": "a probability, of which nothing is promised",
            "8": "another search in place of the printed one",
            "9": "what an answer to a lookup holds",
            "10": "ids are hashed before the tree sees them",
        },
    ),
    "Paper 4: self-stabilizing content-based routing": Paper(
        ("Leases",),
        {
            "1": ("1",),
            "2": ("1",),
            **{f"{it}": ("3, 4, 5",) for it in (3, 4, 5)},
            "6": "an id is computed from its filter, so equal filters have one",
            "7": ("7",),
            "8": FORMULA,
            **{f"{it}": EVALUATION for it in range(9, 14)},
            "14": ("14",),
        },
    ),
    "Paper 5: anonymous topics among moving nodes": Paper(
        ("Mobile",),
        {
            **{f"{it}": ("1",) for it in (1, 3, 5, 7, 8)},
            "2": ("2",),
            "4": ("2",),
            "6": "Planaria has no such rule",
            **{f"{it}": "an order stays one whatever links come" for it in (9, 10)},
            "11": "the lemma is false, and nothing follows from it",
            "12": "layers share nothing",
            "13": ("13",),
            "14": ("14",),
            "15": "said, not amended",
        },
    ),
}
