"""How many records may change at once before a guarantee is worth little (CRT Theorem 8.2 the other way round)."""

from __future__ import annotations

from taciturn.privacy.accounting.accountant import Profile


def largest_group(profile: Profile, delta: float, limit: float = 10.0, most: int = 100_000) -> int:
    """Largest k ≤ ``most`` whose tight ε stays within ``limit``; 0 if none does."""

    def within(k: int) -> bool:
        return profile.for_group(k).epsilon(delta) <= limit

    if not within(1):
        return 0
    low, high = 1, 2
    while high <= most and within(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low
