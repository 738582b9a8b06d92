"""The rule as text and its compiled form are one."""

from hypothesis import given
from hypothesis import strategies as st

from louvain_um.core import rules
from louvain_um.cpu import rule

WORD = st.integers(0, 2**32 - 1)


@given(WORD)
def test_mix32_compiled_is_mix32(x):
    assert rule.mix32(x) == rules.mix32(x)


def test_mix32_keeps_its_values():
    # Fixed for ever: labels of saved results depend on them.
    assert [rules.mix32(x) for x in (0, 1, 2**32 - 1)] == [0, 0x688990C0, 0x6768824A]


@given(WORD, WORD, st.sampled_from([1, 2, 8, 64]))
def test_bucket_compiled_is_bucket(vertex, salt, sub_rounds):
    found = rule.bucket(vertex, salt, sub_rounds)
    assert found == rules.bucket(vertex, salt, sub_rounds)
    assert 0 <= found < sub_rounds


@given(WORD, WORD, WORD)
def test_of_two_communities_exactly_one_wins_a_tie(a, b, seed):
    order = sorted((a, b), key=lambda c: (rules.mix32(c ^ seed), c))
    if a == b:
        assert not rule.wins_tie(a, b, seed)
    else:
        assert rule.wins_tie(order[0], order[1], seed)
        assert not rule.wins_tie(order[1], order[0], seed)


def test_buckets_are_even_whatever_the_salt():
    for salt in (rules.salt(0, k, seed) for k in (0, 1, rules.REFINE_SWEEP) for seed in (0, 9)):
        counts = [0] * rules.SUB_ROUNDS
        for vertex in range(8000):
            counts[rules.bucket(vertex, salt)] += 1
        mean = 8000 / rules.SUB_ROUNDS
        assert max(abs(count - mean) for count in counts) < 6 * mean**0.5


def test_tolerances_fall_from_level_to_level():
    values = [rules.tolerance(level) for level in range(12)]
    assert values == sorted(values, reverse=True)
    assert values[0] < 2**rules.GAIN_BITS


def test_only_levels_that_begin_alone_have_restless_sweeps():
    assert [rules.prunes(True, k) for k in range(4)] == [False, False, True, True]
    assert all(rules.prunes(False, k) for k in range(4))


def test_a_level_ends_when_gains_dry_up_or_no_longer_fall():
    least = rules.tolerance(0)
    assert rules.is_last_sweep(0, 0, least - 1, 0)
    assert not rules.is_last_sweep(0, 0, least, 0)
    assert not rules.is_last_sweep(0, rules.MIN_SWEEPS - 1, 5 * least, 5 * least)
    assert rules.is_last_sweep(0, rules.MIN_SWEEPS, 5 * least, 5 * least)
    assert not rules.is_last_sweep(0, rules.MIN_SWEEPS, 5 * least, 6 * least)


def test_a_second_cycle_has_to_promise_more():
    assert rules.min_gain_factor(0, 0) == rules.min_gain_factor(1, 1) == 1
    assert rules.min_gain_factor(1, 0) == rules.min_gain_factor(2, 0) == rules.NEW_CYCLE_FACTOR
    assert rules.cycle_gain_factor(1, False) == rules.LATER_CYCLE_FACTOR
    assert rules.cycle_gain_factor(0, False) == rules.cycle_gain_factor(1, True) == 1
    assert rules.as_modularity(2**rules.GAIN_BITS) == 1.0
