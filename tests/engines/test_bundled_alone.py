"""The bundled policy by itself is taken as it is; here is what makes that right."""

import pytest

from toolgate.engines import smoke
from toolgate.engines.analysis import analyse, bad_calls, bad_negations, per_call
from toolgate.engines.brackets import refusal
from toolgate.engines.interpreter import Interpreter
from toolgate.engines.modules import MAIN, build, ours

pytestmark = pytest.mark.req("G3")


def test_the_bundled_policy_reads_nothing_of_a_single_call() -> None:
    """Else a decision would be kept that rests on what the next call does not have."""
    interpreter = Interpreter()
    interpreter.add_module(MAIN, ours(MAIN))
    (tree,) = interpreter.syntax()
    module = analyse(tree)
    assert per_call([module]) == build({}, {}).reads == frozenset()
    assert not refusal(ours(MAIN))
    assert not [*bad_calls([module], [module]), *bad_negations([module], [module])]


def test_nothing_goes_wrong_when_the_bundled_policy_is_asked() -> None:
    assert smoke.problems(build({}, {})) == []


def test_with_anything_beside_it_everything_is_looked_at() -> None:
    """The control: the same policy, and data that nobody asks for."""
    alone, beside = build({}, {}), build({}, {"nobody_asks": [1]})
    assert (beside.reads, beside.listing) == (alone.reads, alone.listing)
    assert dict(beside.modules) == dict(alone.modules)
    assert beside.revision != alone.revision
