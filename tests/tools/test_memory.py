"""Memories: what is saved is found, what is forgotten is gone, and each owner has its own."""

import contextlib
import itertools
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.blank import put_blank
from tests.house import STORE
from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate
from toolgate.errors import ToolError
from toolgate.settings.settings import Settings
from toolgate.shelf import Place
from toolgate.tools.memory import shelved
from toolgate.tools.memory.condition import read_filter
from toolgate.tools.memory.remembered import Remembered, tags_of

pytest.importorskip("wordllama", reason="skipped: no tools")
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T3")]
_numbers = itertools.count()
_TEXTS = st.lists(
    st.text(min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=3, unique=True
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Toolgate]:
    async with opened(tmp_path_factory.mktemp("memory")) as found:
        yield found


def _somebody() -> Caller:
    return Caller(tenant=f"tenant-{next(_numbers)}", agent="clerk")


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=_TEXTS)
async def test_what_is_saved_is_found_until_it_is_forgotten(
    gate: Toolgate, texts: list[str]
) -> None:
    caller = _somebody()
    for text in texts:
        await told(gate, "memory_save", caller, text=text)
    for text in texts:
        asked = {"query": text, "threshold": 0.99}
        found = await told(gate, "memory_load", caller, limit=100, **asked)
        assert text in [one["text"] for one in found["memories"]]
        gone = await told(gate, "memory_forget", caller, **asked)
        assert text in [one["text"] for one in gone["forgotten"]]
        left = await told(gate, "memory_load", caller, query=text, threshold=0, limit=100)
        assert text not in [one["text"] for one in left["memories"]]
        for one in gone["forgotten"]:
            if one["text"] != text:
                await told(gate, "memory_save", caller, text=one["text"])


async def test_the_best_comes_first_and_scores_are_from_0_to_1(gate: Toolgate) -> None:
    caller = _somebody()
    facts = ["Rex is a dog.", "Dogs eat meat.", "Taxes are due in May.", "A dog barks at night."]
    for fact in facts:
        await told(gate, "memory_save", caller, text=fact)
    found = await told(gate, "memory_load", caller, query="a dog barks", threshold=0, limit=100)
    scores = [one["score"] for one in found["memories"]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == len(facts)
    assert all(0 <= score <= 1 for score in scores)
    assert found["memories"][0]["text"] == "A dog barks at night."
    assert found["memories"][-1]["text"] == "Taxes are due in May."
    fewer = await told(gate, "memory_load", caller, query="a dog barks", threshold=0, limit=2)
    assert fewer["memories"] == found["memories"][:2]
    low = await told(gate, "memory_load", caller, query="a dog barks", threshold=scores[1])
    assert low["best_below"] == scores[2]


async def test_ids_delete_what_they_name_and_nothing_else(gate: Toolgate) -> None:
    caller = _somebody()
    one = await told(gate, "memory_save", caller, text="One.")
    two = await told(gate, "memory_save", caller, text="Two.")
    three = await told(gate, "memory_save", caller, text="Three.")
    gone = await told(gate, "memory_delete", caller, ids=f"{one['id']}, {three['id']},mem_none")
    assert gone == {"deleted": [one["id"], three["id"]], "missing": ["mem_none"]}
    left = await told(gate, "memory_load", caller, query="One.", threshold=0)
    assert [memory["id"] for memory in left["memories"]] == [two["id"]]


@pytest.mark.req("S3")
async def test_saving_is_taken_back(gate: Toolgate) -> None:
    caller = _somebody()
    output = await gate.call("memory_save", {"text": "A slip of the tongue."}, caller=caller)
    await gate.undo(caller=caller, call_id=output.call_id)
    found = await told(gate, "memory_load", caller, query="A slip of the tongue.", threshold=0)
    assert found["memories"] == []


@pytest.mark.req("S3")
async def test_taking_back_what_was_just_saved_asks_nobody(tmp_path: Path) -> None:
    caller = _somebody()
    put_blank(tmp_path / STORE)
    async with Toolgate.open(Settings(root=tmp_path)) as careful:
        slip = await careful.call("memory_save", {"text": "A slip."}, caller=caller)
        report = await careful.undo(caller=caller, call_id=slip.call_id)
        assert [one.result for one in report.items] == ["undone"]
        # The control: deleting as such does ask.
        asked = await careful.call("memory_delete", {"ids": "mem_1"}, caller=caller)
        assert asked.status == "pending_approval"


TEXT = "The code of the safe is in the blue book."
MINE = Caller(tenant="acme", agent="clerk", persona="anna")
OTHERS = {
    "another persona": Caller(tenant="acme", agent="clerk", persona="ben"),
    "no persona": Caller(tenant="acme", agent="clerk"),
    "an agent of that name": Caller(tenant="acme", agent="anna"),
    "another tenant": Caller(tenant="globex", agent="clerk", persona="anna"),
}


async def _seen(gate: Toolgate, caller: Caller) -> list[str]:
    found = await told(gate, "memory_load", caller, query=TEXT, threshold=0, limit=100)
    return [one["text"] for one in found["memories"]]


@pytest.mark.parametrize("who", OTHERS)
async def test_nobody_else_sees_or_deletes_a_memory(gate: Toolgate, who: str) -> None:
    saved = await told(gate, "memory_save", MINE, text=TEXT)
    other = OTHERS[who]
    assert TEXT not in await _seen(gate, other)
    assert (await told(gate, "memory_delete", other, ids=saved["id"]))["deleted"] == []
    assert (await told(gate, "memory_forget", other, query=TEXT, threshold=0))["count"] == 0
    # Who has the same persona does, whichever agent it is.
    same = Caller(tenant="acme", agent="another", persona="anna")
    assert TEXT in await _seen(gate, same)
    assert (await told(gate, "memory_delete", same, ids=saved["id"]))["missing"] == []


@pytest.mark.parametrize("who", OTHERS)
async def test_without_the_guard_they_would(
    gate: Toolgate, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everywhere(_tenant: str, kind: str, _owner: str) -> Place:
        return Place("acme", kind, "everybody")

    monkeypatch.setattr(shelved, "Place", everywhere)
    await told(gate, "memory_save", MINE, text=TEXT)
    assert TEXT in await _seen(gate, OTHERS[who])
    await told(gate, "memory_forget", MINE, query=TEXT, threshold=0)


async def test_there_is_an_end_to_what_is_kept(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelved, "MOST", 1)
    caller = _somebody()
    await told(gate, "memory_save", caller, text="The only one.")
    output = await gate.call("memory_save", {"text": "One more."}, caller=caller)
    assert output.error is not None
    assert "no room" in output.error.message


SOME = Remembered(
    id="m", text="The bill of Anna. #Billing", saved_ns=1_767_225_600 * 10**9, user="Anna B."
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("date=2026", True),
        ("date=2026-01-01", True),
        ("date!=2026-01", False),
        ("date<2026", False),
        ("date<=2026", True),
        ("date>2025-12-31", True),
        ("date>=2026-01-01T00:00:00Z", True),
        ("date>2026", False),
        ('user="Anna B."', True),
        ("user!=x and tag=billing", True),
        ("TAG = #Billing , text ~ BILL", True),
        ("tag=billing, session=s", False),
        ('text~"bill of"', True),
        ("agent!=clerk", True),
    ],
)
async def test_a_filter_means_what_it_says(text: str, *, holds: bool) -> None:
    assert read_filter(text)(SOME) is holds


@pytest.mark.parametrize(
    "text",
    [
        "text_ns=1",
        "id=m",
        "tenant=umbrella",
        "__class__=x",
        "user'--=x",
        "user;DROP TABLE memories=x",
        "user) OR (1=1",
        "1=1",
        "$where=1",
        "$.user=x",
        "@user:{x}=1",
        "user|agent=x",
        "tags[0]=x",
        "user.name=x",
        "user=x UNION SELECT 1",
        "*=x",
    ],
)
async def test_a_key_that_is_none_of_a_memory_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="Keys are tag, date, agent, user, session and text"):
        read_filter(text)


@given(text=st.text(max_size=120))
async def test_a_filter_is_read_or_refused_and_never_anything_else(text: str) -> None:
    with contextlib.suppress(ToolError):
        read_filter(text)(SOME)


async def test_tags_are_words_with_a_sign_in_front() -> None:
    told_of: dict[str, Any] = {
        "a #b c": ["b"],
        "#one#two": ["one"],
        "x#y": [],
        "(#z)": ["z"],
        "##h": [],
    }
    assert {text: tags_of(text) for text in told_of} == told_of


async def test_the_default_caller_has_memories_too(gate: Toolgate) -> None:
    await told(gate, "memory_save", ME, text="By default.")
    assert (await told(gate, "memory_load", ME, query="By default."))["searched"] == 1
