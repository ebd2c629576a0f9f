"""Schedules: what is written is what is meant, and what cannot be read is refused."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate import clock
from toolgate.errors import ToolError
from toolgate.tools.agent.cron import read_cron
from toolgate.tools.agent.schedule import read_schedule

pytestmark = pytest.mark.req("T3")
NOW = datetime(2026, 11, 16, 12, 34, 56, tzinfo=UTC)
NOW_NS = clock.unix_of(NOW)
_MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2032, 1, 1))  # noqa: DTZ001  given below


def _next(text: str) -> str:
    following = read_schedule(text, NOW_NS).after(NOW_NS)
    assert following is not None
    return clock.moment_of(following).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 5 minutes", "2026-11-16 12:39:56"),
        ("In an Hour", "2026-11-16 13:34:56"),
        ("in 90s", "2026-11-16 12:36:26"),
        ("in 2 weeks", "2026-11-30 12:34:56"),
        ("every 10 minutes", "2026-11-16 12:44:56"),
        ("every hour", "2026-11-16 13:34:56"),
        ("every 2 days", "2026-11-18 12:34:56"),
        ("2026-12-24T18:00:00Z", "2026-12-24 18:00:00"),
        ("2026-12-24 18:00", "2026-12-24 18:00:00"),
        ("at 2026-12-24T18:00:00-05:00", "2026-12-24 23:00:00"),
        ("*/15 * * * *", "2026-11-16 12:45:00"),
        ("0 9 * * mon-fri", "2026-11-17 09:00:00"),
        ("30 12 16 11 *", "2027-11-16 12:30:00"),
        ("0 0 29 2 *", "2028-02-29 00:00:00"),
        # Either of the two days is enough where both are named.
        ("0 0 1 * fri", "2026-11-20 00:00:00"),
        ("0 0 1,15 jan-mar/2 *", "2027-01-01 00:00:00"),
        ("5 4 * * sun", "2026-11-22 04:05:00"),
        ("5 4 * * 7", "2026-11-22 04:05:00"),
        ("@daily", "2026-11-17 00:00:00"),
        ("@hourly", "2026-11-16 13:00:00"),
        ("0 22-23/1 * * *", "2026-11-16 22:00:00"),
    ],
)
def test_a_schedule_means_what_it_says(text: str, expected: str) -> None:
    assert _next(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "in", "in minutes", "every 5 seconds", "in -5 minutes", "* * * *", "* * * * * *"),
        *("60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *"),
        *("*/x * * * *", "1,,2 * * * *", "0 0 31 2 *", "@sometimes", "2020-01-01"),
        *("9999-01-01", "in 99999999 days", "1" * 300, "٣ * * * *"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        read_schedule(text, NOW_NS)


@given(text=st.text(max_size=40) | st.from_regex(r"[0-9*/,a-z -]{0,30}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ToolError):
        following = read_schedule(text, NOW_NS).after(NOW_NS)
        assert following is None or following > NOW_NS


@given(
    moment=_MOMENTS,
    minute=st.sampled_from(["*", "7", "*/20", "10-12"]),
    hour=st.sampled_from(["*", "3", "8-18/5"]),
    weekday=st.sampled_from(["*", "1", "mon,thu"]),
)
def test_nothing_that_fits_is_left_out(
    moment: datetime, minute: str, hour: str, weekday: str
) -> None:
    cron = read_cron(f"{minute} {hour} * * {weekday}")
    moment = moment.replace(tzinfo=UTC)
    found = cron.after(moment)
    assert found is not None
    at = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while at < found:
        fits = at.minute in cron.minutes and at.hour in cron.hours
        assert not (fits and at.isoweekday() % 7 in cron.weekdays)
        # Hours are skipped where they do not fit, so that a week is looked through quickly.
        at += timedelta(minutes=1) if at.hour in cron.hours else timedelta(minutes=60 - at.minute)
    assert found.minute in cron.minutes
    assert found.hour in cron.hours


@given(seconds=st.integers(0, 10**7), step=st.integers(1, 500))
def test_what_repeats_keeps_its_rhythm(seconds: int, step: int) -> None:
    schedule = read_schedule(f"every {step} minutes", NOW_NS)
    now_ns = NOW_NS + seconds * 10**9
    following = schedule.after(now_ns)
    assert following is not None
    assert following > now_ns
    assert (following - NOW_NS) % (step * 60 * 10**9) == 0
    assert following - now_ns <= 2 * step * 60 * 10**9
