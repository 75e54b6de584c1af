"""What a pattern alone cannot say: check digits, digit counts. A check takes the matched text and returns the part of it
that holds, as (start, end), or None."""

from __future__ import annotations

from collections.abc import Callable

Check = Callable[[str], tuple[int, int] | None]


def digits(text: str) -> list[int]:
    return [int(c) for c in text if c.isdecimal()]


def luhn(text: str) -> tuple[int, int] | None:
    """ISO/IEC 7812-1 check digit.

    >>> luhn("4111 1111 1111 1111"), luhn("4111 1111 1111 1112")
    ((0, 19), None)
    """
    numbers = digits(text)[::-1]
    total = sum(numbers[::2]) + sum(sum(divmod(2 * n, 10)) for n in numbers[1::2])
    return (0, len(text)) if total % 10 == 0 and any(numbers) else None


def iban(text: str) -> tuple[int, int] | None:
    """ISO 13616 check digits (mod 97 = 1). A match may run on into the next words: groups are dropped until it holds.

    >>> iban("GB82 WEST 1234 5698 7654 32"), iban("GB82 WEST 1234 5698 7654 32 then"), iban("GB83WEST12345698765432")
    ((0, 27), (0, 27), None)
    """
    groups = text.split(" ")
    for count in range(len(groups), 0, -1):
        compact = "".join(groups[:count]).upper()
        if len(compact) < 15:
            return None
        if int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1:
            return 0, len(" ".join(groups[:count]))
    return None


def ssn(text: str) -> tuple[int, int] | None:
    """US social security numbers have no area 000 or 666, no group 00, no serial 0000 (9xx are taxpayer numbers: kept)."""
    area, group, serial = text[:3], text[4:6], text[7:]
    fine = area not in ("000", "666") and group != "00" and serial != "0000"
    return (0, len(text)) if fine else None


def phone(text: str) -> tuple[int, int] | None:
    """7 to 15 digits (ITU-T E.164), an extension aside."""
    number = text.lower().split("x")[0].split("ext")[0]
    return (0, len(text)) if 7 <= len(digits(number)) <= 15 else None


def ip(text: str) -> tuple[int, int] | None:
    """Four numbers up to 255."""
    return (0, len(text)) if all(int(part) <= 255 for part in text.split(".")) else None


def mixed(text: str) -> tuple[int, int] | None:
    """Letters and digits both, as codes have and words or plain numbers have not."""
    return (0, len(text)) if any(c.isdigit() for c in text) and any(c.isalpha() for c in text) else None


CHECKS: dict[str, Check] = {"luhn": luhn, "iban": iban, "ssn": ssn, "phone": phone, "ip": ip, "mixed": mixed}
