"""What `/metrics` says: the status of a node in Prometheus' text format, version 0.0.4."""

from collections.abc import Iterator, Mapping

from planaria.network.monitor import Histogram, Monitor
from planaria.network.status import ProcessStatus, Status, StoreStatus, TopicStatus, Totals

TOPICS_MAX = 100  # with series of their own; above, one series stands for all: topic="#"
ALL = "#"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Every metric: its type, and what it means.
METRICS: dict[str, tuple[str, str]] = {
    "planaria_info": ("gauge", "Always 1; the labels say what runs here."),
    "planaria_legitimate": ("gauge", "1 if the node knows of nothing wrong, else 0."),
    "planaria_evidence_age_seconds": ("gauge", "Age of the oldest sign of a ring neighbour."),
    "planaria_rounds_since_fault": ("gauge", "Intervals since the node last had a doubt."),
    "planaria_doubts_total": ("counter", "Times that the node began to have doubts."),
    "planaria_recovery_seconds": ("histogram", "From the first doubt to legitimate again."),
    "planaria_uptime_seconds": ("gauge", "Seconds since the node started."),
    "planaria_interval_seconds": ("gauge", "Seconds between two timeouts of the node."),
    "planaria_late_timeouts_total": ("counter", "Timeouts that came half an interval late."),
    "planaria_deliveries_total": ("counter", "Publications handed to applications here."),
    "planaria_notices_total": ("counter", "Notices to applications, by kind: gap, full, ..."),
    "planaria_sent_messages_total": ("counter", "Messages sent to other nodes."),
    "planaria_sent_bytes_total": ("counter", "Bytes of the messages sent to other nodes."),
    "planaria_dropped_messages_total": ("counter", "Messages dropped at full links or queues."),
    "planaria_malformed_messages_total": ("counter", "Messages that could not be decoded."),
    "planaria_queued_messages": ("gauge", "Messages that wait for a node that is dialled."),
    "planaria_links": ("gauge", "Links to other nodes."),
    "planaria_busy_links": ("gauge", "Links that are full: their other end is behind."),
    "planaria_unacknowledged_bytes": ("gauge", "Bytes sent over links, not yet acknowledged."),
    "planaria_clients": ("gauge", "Clients that are connected."),
    "planaria_contacts": ("gauge", "Nodes of which an address is known."),
    "planaria_topics": ("gauge", "Topics that the node is a member of or serves."),
    "planaria_doubtful_topics": ("gauge", "Topics of which something is known to be wrong."),
    "planaria_topic_legitimate": ("gauge", "1 if nothing wrong is known of the topic, else 0."),
    "planaria_topic_publications": ("gauge", "Publications held."),
    "planaria_topic_records": ("gauge", "Records held: each holds many publications."),
    "planaria_topic_bytes": ("gauge", "Bytes of the records held."),
    "planaria_topic_members": ("gauge", "Members recorded, where the topic is served."),
    "planaria_overlay_legitimate": ("gauge", "1 if nothing wrong is known of the overlay here."),
    "planaria_overlay_topics": ("gauge", "Topics, groups or conditions there."),
    "planaria_overlay_links": ("gauge", "Nodes that this one talks to there."),
    "planaria_overlay_clients": ("gauge", "Subscriptions of clients there."),
    "planaria_overlay_published_total": ("counter", "Publications of clients there."),
    "planaria_overlay_received_total": ("counter", "Copies of publications from other nodes."),
    "planaria_overlay_forwarded_total": ("counter", "Copies of publications to other nodes."),
    "planaria_overlay_deliveries_total": ("counter", "Publications handed to the node's gate."),
    "planaria_overlay_lost_total": ("counter", "Publications for which clients were too slow."),
    "planaria_supervises": ("gauge", "1 if the node is a supervisor, else 0."),
    "planaria_supervisors": ("gauge", "Supervisors that the node knows."),
    "planaria_supervisor_requests_total": ("counter", "Requests of members for their place."),
    "planaria_supervisor_messages_total": ("counter", "Messages sent as a supervisor."),
    "planaria_store_bytes": ("gauge", "Size of the store on disk."),
    "planaria_store_pending_bytes": ("gauge", "Bytes that are not on disk yet."),
    "planaria_store_stalled": ("gauge", "1 if the store cannot write, else 0."),
    "planaria_store_damaged": ("gauge", "1 if the store must be mended by a restart, else 0."),
    "process_cpu_seconds_total": ("counter", "CPU time of the process."),
    "process_resident_memory_bytes": ("gauge", "Memory of the process."),
    "process_open_fds": ("gauge", "Open file descriptors of the process."),
}

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]  # the name's suffix, labels, value
Samples = dict[str, list[Sample]]


def exposition(monitor: Monitor) -> str:
    """The metrics of a node, as Prometheus reads them."""
    status = monitor.status()
    samples = {
        **of_monitor(monitor, status),
        **of_status(status),
        **of_topics(status),
        **of_overlays(status),
        **(of_store(status.store) if status.store else {}),
        **of_process(status.process),
    }
    return render(samples)


def render(samples: Samples) -> str:
    """The text of all metrics that have samples, in the order of `METRICS`."""
    lines = []
    for name, (kind, meaning) in METRICS.items():
        if name in samples:
            lines += [f"# HELP {name} {_escaped(meaning)}", f"# TYPE {name} {kind}"]
            lines += [_line(name, *sample) for sample in samples[name]]
    return "\n".join([*lines, ""])


def of_monitor(monitor: Monitor, status: Status) -> Samples:
    """What is counted over time."""
    labels = {
        "version": status.version,
        "wire": ",".join(map(str, status.wire)),
        "id": status.id,
        "name": status.name,
        "cluster": status.cluster,
    }
    notices = [("", {"kind": kind}, count) for kind, count in sorted(monitor.notices.items())]
    return {
        "planaria_info": [("", labels, 1)],
        "planaria_recovery_seconds": [*_histogram(monitor.recovery)],
        "planaria_notices_total": list[Sample](notices),
        **_plain(
            planaria_rounds_since_fault=monitor.calm,
            planaria_doubts_total=monitor.doubts,
            planaria_deliveries_total=monitor.deliveries,
            planaria_sent_messages_total=monitor.node.host.sent_messages,
            planaria_sent_bytes_total=monitor.node.host.sent_bytes,
        ),
    }


def of_status(status: Status) -> Samples:
    """What the node is like now."""
    return _plain(
        planaria_legitimate=status.legitimate,
        planaria_evidence_age_seconds=status.evidence_age,
        planaria_uptime_seconds=status.uptime,
        planaria_interval_seconds=status.interval,
        planaria_late_timeouts_total=status.late,
        planaria_dropped_messages_total=status.drops,
        planaria_malformed_messages_total=status.malformed,
        planaria_queued_messages=status.queues.messages,
        planaria_links=status.links_total,
        planaria_busy_links=status.links_busy,
        planaria_unacknowledged_bytes=status.queues.link_bytes,
        planaria_clients=status.clients,
        planaria_contacts=status.contacts_total,
        planaria_topics=status.totals.topics,
        planaria_doubtful_topics=status.totals.doubtful,
        planaria_supervises=status.supervises,
        planaria_supervisors=len(status.supervisors),
        planaria_supervisor_requests_total=status.requests,
        planaria_supervisor_messages_total=status.answers,
    )


def of_topics(status: Status) -> Samples:
    """Each topic, or all as one where there are many: a series each would be too many to keep."""
    shown: Mapping[str, TopicStatus | Totals] = status.topics
    if status.totals.topics > TOPICS_MAX:
        shown = {ALL: status.totals}
    samples: Samples = {}
    for topic, its in shown.items():
        for name, value in _figures(its).items():
            if value is not None:
                samples.setdefault(name, []).append(("", {"topic": topic}, value))
    return samples


def of_overlays(status: Status) -> Samples:
    """Each overlay beside `ring` in which the node is awake."""
    samples: Samples = {}
    for overlay, its in status.overlays.items():
        figures: dict[str, float] = {
            "legitimate": its.legitimate,
            "topics": len(its.topics),
            "links": len(its.neighbours),
            "clients": its.clients,
            "published_total": its.published,
            "received_total": its.received,
            "forwarded_total": its.forwarded,
            "deliveries_total": its.deliveries,
            "lost_total": its.lost,
        }
        for name, value in figures.items():
            sample = ("", {"overlay": overlay}, value)
            samples.setdefault(f"planaria_overlay_{name}", []).append(sample)
    return samples


def of_store(store: StoreStatus) -> Samples:
    """The store on disk."""
    return _plain(
        planaria_store_bytes=store.bytes,
        planaria_store_pending_bytes=store.pending_bytes,
        planaria_store_stalled=store.stalled is not None,
        planaria_store_damaged=store.damaged,
    )


def of_process(process: ProcessStatus) -> Samples:
    """The process, under the names that Prometheus' own libraries give."""
    return _plain(
        process_cpu_seconds_total=process.cpu_seconds,
        process_resident_memory_bytes=process.resident_bytes,
        process_open_fds=process.descriptors,
    )


def _figures(its: TopicStatus | Totals) -> dict[str, float | None]:
    return {
        "planaria_topic_legitimate": its.legitimate,
        "planaria_topic_publications": its.publications,
        "planaria_topic_records": its.records,
        "planaria_topic_bytes": its.bytes,
        "planaria_topic_members": its.members,
    }


def _plain(**values: float | None) -> Samples:
    """Metrics without labels; what is not known is left out."""
    return {name: [("", {}, value)] for name, value in values.items() if value is not None}


def _histogram(histogram: Histogram) -> Iterator[Sample]:
    below = 0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        below += count
        yield "_bucket", {"le": _number(bound)}, below
    yield "_bucket", {"le": "+Inf"}, histogram.count
    yield "_sum", {}, histogram.sum
    yield "_count", {}, histogram.count


def _line(name: str, suffix: str, labels: Labels, value: float) -> str:
    said = ",".join(f'{label}="{_quoted(text)}"' for label, text in labels.items())
    return (
        f"{name}{suffix}{{{said}}} {_number(value)}" if said else f"{name}{suffix} {_number(value)}"
    )


def _number(value: float) -> str:
    whole = int(value) == value
    return str(int(value)) if whole else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
