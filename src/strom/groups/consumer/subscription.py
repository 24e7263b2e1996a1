"""What a group subscribes to: whether it has changed, and what follows from that.

The topics that a pattern stands for are looked up when a member brings the pattern, and again when
there are other topics, but then not more often than every ten seconds: with thousands of groups,
and topics that come and go, looking is the work.
"""

from strom.groups.consumer.draft import Draft
from strom.groups.consumer.patterns import REFRESH_MS_MIN, check_pattern, resolve
from strom.groups.consumer.rows import group_row, old_metadata_gone, pattern_gone, pattern_row
from strom.groups.consumer.topics import metadata_hash


def follow_topics(draft: Draft, *, resubscribed: bool) -> None:
    """Raise the group's epoch if a member subscribes to something else, or its topics changed."""
    topics = draft.moment.image.topics_by_name
    is_settled = not resubscribed and draft.watch.topics is topics
    if is_settled and not draft.group.patterns:
        return
    matched = _match_patterns(draft, resubscribed=resubscribed)
    if is_settled and not matched:
        return
    group = draft.group
    found = metadata_hash(group.topic_names, draft.moment.image)
    # One that was a classic group, in its first round, may have none yet; members begin with 1.
    if resubscribed or found != group.metadata_hash or group.epoch == 0:
        draft.write(group_row(group.id, group.epoch + 1, found))
    if group.has_old_metadata:
        draft.write(old_metadata_gone(group.id))
    if draft.watch.topics is not topics:
        draft.watch = draft.watch._replace(topics=topics)


def _match_patterns(draft: Draft, *, resubscribed: bool) -> bool:
    """Have all patterns that members want, and no other, stand for topics; say if some changed."""
    before = draft.group.patterns
    wanted = known = frozenset(before)
    if resubscribed or draft.watch.topics is None:
        # A group that was just loaded may have been left before all were looked up.
        wanted = draft.group.wanted_patterns
    for pattern in sorted(known - wanted):
        draft.write(pattern_gone(draft.group.id, pattern))
    if not wanted:
        return False
    for pattern in sorted(wanted - known):
        check_pattern(pattern)
    is_due = _is_due(draft)
    for pattern in sorted(wanted if is_due else wanted - known):
        _match(draft, pattern)
    if is_due:
        draft.watch = draft.watch._replace(
            matched=draft.moment.image.topics_by_name, matched_at_ms=draft.moment.now_ms
        )
    return draft.group.patterns is not before


def _is_due(draft: Draft) -> bool:
    watch = draft.watch
    passed_ms = draft.moment.now_ms - watch.matched_at_ms
    # Where the time of day was set back, nobody knows how long it was.
    if 0 <= passed_ms <= REFRESH_MS_MIN:
        return False
    if watch.matched is not draft.moment.image.topics_by_name:
        return True
    return not 0 <= passed_ms <= draft.moment.limits.pattern_refresh_ms


def _match(draft: Draft, pattern: str) -> None:
    before = draft.group.patterns.get(pattern)
    after = resolve(pattern, draft.moment.image, draft.moment.now_ms)
    if before is None or before.topics != after.topics:
        draft.write(pattern_row(draft.group.id, pattern, after))
