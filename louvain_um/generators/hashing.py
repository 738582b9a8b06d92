"""Compiled counter-based random numbers and keyed permutations, in 64-bit integers.

Everything is a few multiplications and shifts of unsigned 64-bit words, so that a device gets the
same results.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel

GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
FIRST = np.uint64(0xBF58_476D_1CE4_E5B9)
SECOND = np.uint64(0x94D0_49BB_1331_11EB)
ONE = np.uint64(1)
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFF_FFFF)

ROUNDS = 4
PERMUTATION_WORDS = 3 + 3 * ROUNDS
"""Size, mask, shift; then, per round, an odd multiplier, an addend and the inverse multiplier."""


@kernel()
def mix64(x):
    """Return the splitmix64 finalizer of x (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@kernel()
def draw(key, i):
    """Return 64 random bits, the i-th of stream `key`."""
    return mix64(key + (np.uint64(i) + ONE) * GOLDEN)


@kernel()
def below(x, n):
    """Return a number 0 … n − 1, n ≤ 2³², from the upper half of 64 random bits."""
    return ((x >> HALF) * np.uint64(n)) >> HALF


@kernel()
def set_permutation(p, key, n):
    """Fill p, uint64[PERMUTATION_WORDS], with the permutation of 0 … n − 1 of `key`."""
    bits = np.uint64(0)
    while bits < np.uint64(63) and (np.uint64(n) - ONE) >> bits != np.uint64(0) and n > 0:
        bits += ONE
    p[0] = np.uint64(n)
    p[1] = (ONE << bits) - ONE
    # At least half the bits, so that x ^ x >> shift is its own inverse; 1 for a single bit.
    p[2] = max((bits + ONE) >> ONE, ONE)
    for r in range(ROUNDS):
        odd = draw(key, 2 * r) | ONE
        p[3 + 3 * r] = odd
        p[4 + 3 * r] = draw(key, 2 * r + 1)
        # Newton's iteration doubles the correct bits: 3, 6, 12, 24, 48, 96.
        inverse = odd
        for _ in range(5):
            inverse *= np.uint64(2) - odd * inverse
        p[5 + 3 * r] = inverse


@kernel()
def permute(p, x):
    """Return the image of x < p[0]: rounds of multiply, add, xor-shift on the next power of 2."""
    n, mask, shift = p[0], p[1], p[2]
    x = np.uint64(x)
    while True:
        for r in range(ROUNDS):
            x = (x * p[3 + 3 * r] + p[4 + 3 * r]) & mask
            x ^= x >> shift
        if x < n:
            return x


@kernel()
def unpermute(p, x):
    """Return the number whose image is x; the inverse of `permute`."""
    n, mask, shift = p[0], p[1], p[2]
    x = np.uint64(x)
    while True:
        for back in range(ROUNDS):
            r = ROUNDS - 1 - back
            x ^= x >> shift
            x = ((x - p[4 + 3 * r]) * p[5 + 3 * r]) & mask
        if x < n:
            return x


def permutation(key: np.uint64, n: int, wanted: bool = True) -> NDArray[np.uint64]:
    """Return the permutation of 0 … n − 1 of `key`, or the identity."""
    p = np.zeros(PERMUTATION_WORDS, np.uint64)
    if wanted:
        set_permutation(p, key, n)
    else:
        p[:3] = n, 2**63 - 1, 63
        p[3::3] = 1
        p[5::3] = 1
    return p


@kernel()
def permute_all(p, n):
    """Return the images of 0 … n − 1, uint32[n]."""
    images = np.empty(n, np.uint32)
    for x in range(n):
        images[x] = permute(p, np.uint64(x))
    return images


@kernel()
def draws(key, first, count):
    """Return entries first … first + count − 1 of a stream, uint64[count]."""
    out = np.empty(count, np.uint64)
    for i in range(count):
        out[i] = draw(key, first + i)
    return out
