"""The topics: looked at when the house opens, and made where they are missing."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidReplicationFactorError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from toolgate.brokers.cluster import started
from toolgate.brokers.knock import knock
from toolgate.errors import SettingsInvalid
from toolgate.settings.fleet import Fleet

_MISSING = 3


class UnreachableError(Exception):
    """No broker answers: that can pass by itself."""


async def check(
    connection: Mapping[str, Any], fleet: Fleet, *, looks_only: bool = False
) -> Sequence[str]:
    """What an operator should know. What cannot work is `SettingsInvalid`, with what to do.

    `looks_only`: what is missing is told, and not made.
    """
    admin = AIOKafkaAdminClient(**connection)
    try:
        await started(admin)
        return await _looked_at(admin, fleet, looks_only=looks_only)
    except (KafkaError, OSError, TimeoutError) as error:
        where = ", ".join(await knock(connection, fleet) or fleet.brokers)
        raise UnreachableError(
            f"no broker answers at {where} ({type(error).__name__}): queued calls wait in the "
            "store until one does; start it, or correct queue.url"
        ) from None
    finally:
        await admin.close()


async def _looked_at(
    admin: AIOKafkaAdminClient, fleet: Fleet, *, looks_only: bool
) -> Sequence[str]:
    names = (fleet.topics.requests, fleet.topics.results, fleet.topics.dead)
    if len(set(names)) < len(names):
        raise SettingsInvalid(["queue.topics: requests, results and dead are three topics"])
    # Who asks for one that is missing may have it made by the broker, as it sees fit.
    there = [name for name in await admin.list_topics() if name in names]
    found: dict[str, Any] = {one["topic"]: one for one in await admin.describe_topics(there)}
    missing: list[str] = []
    for name in names:
        code = found[name]["error_code"] if name in found else _MISSING
        if code == _MISSING:
            missing.append(name)
        elif code and cast("Any", for_code(code)) is TopicAuthorizationFailedError:
            raise SettingsInvalid([_not_ours(name, "see")])
    listed = ", ".join(map(repr, missing))
    if missing and not fleet.topics.create:
        told = (
            f"queue.topics: the brokers have no topic {listed}, and queue.topics.create is off, so "
            f"nobody makes it: make it with {fleet.topics.partitions} partitions, or switch "
            "queue.topics.create on"
        )
        raise SettingsInvalid([told])
    if missing and looks_only:
        return [f"no topic {listed} yet: the next node or worker that starts makes it"]
    if missing:
        await _make(admin, missing, fleet)
    many = {name: len(found[name]["partitions"]) for name in names if name not in missing}
    return [
        f"the topic {name!r} has {count} partitions and queue.topics.partitions is "
        f"{fleet.topics.partitions}: so few workers share it that more would be idle; add "
        "partitions to it, or lower the setting"
        for name, count in many.items()
        if name == fleet.topics.requests and count < fleet.topics.partitions
    ]


async def _make(admin: AIOKafkaAdminClient, missing: Sequence[str], fleet: Fleet) -> None:
    topics = fleet.topics
    wanted = [
        NewTopic(
            name,
            num_partitions=topics.partitions,
            replication_factor=topics.replication,
            topic_configs={"retention.ms": str(round(topics.retention * 1_000))},
        )
        for name in missing
    ]
    answer: Any = await admin.create_topics(wanted)
    for name, code, *said in answer.topic_errors:
        error = cast("Any", for_code(code))
        # Another node has been quicker.
        if code and error is not TopicAlreadyExistsError:
            raise SettingsInvalid([_unmade(name, error, said, fleet)])


def _unmade(name: str, error: type[KafkaError], said: Sequence[object], fleet: Fleet) -> str:
    if error is InvalidReplicationFactorError:
        return (
            f"queue.topics.replication: {name!r} cannot be on {fleet.topics.replication} brokers, "
            "the cluster has fewer; lower it, or add brokers"
        )
    if error in {TopicAuthorizationFailedError, ClusterAuthorizationFailedError}:
        return _not_ours(name, "make")
    told = f": {said[0]}" if said and said[0] else ""
    return f"queue.topics: {name!r} cannot be made ({error.__name__}{told})"


def _not_ours(name: str, verb: str) -> str:
    return (
        f"queue.topics: we may not {verb} the topic {name!r}; grant READ, WRITE and DESCRIBE on it "
        "to our user, and CREATE or a topic that is there"
    )
