"""Check digits that python-stdnum has not. Each takes the matched text and returns (0, its length) where they hold, or
None."""

from __future__ import annotations


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


def icao(text: str) -> tuple[int, int] | None:
    """Last digit: weights 7, 3, 1 modulo 10 (ICAO Doc 9303, part 3), as on German identity cards and passports.

    >>> icao("L22N97NYG1") is None, icao("T220001293")
    (True, (0, 10))
    """
    values = [int(c, 36) for c in text.upper()]
    total = sum(v * (7, 3, 1)[i % 3] for i, v in enumerate(values[:-1]))
    return (0, len(text)) if total % 10 == values[-1] else None


def de_pension(text: str) -> tuple[int, int] | None:
    """Versicherungsnummer, 12 characters; the letter counts as two digits, weights and sums of digits (SGB VI VKVV § 4).

    >>> de_pension("65170839J003"), de_pension("65170839J008")
    ((0, 12), None)
    """
    plain = text.replace(" ", "").upper()
    numbers = digits(plain[:8] + f"{ord(plain[8]) - 64:02d}" + plain[9:11])
    total = sum(sum(digits(str(n * w))) for n, w in zip(numbers, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return (0, len(text)) if total % 10 == int(plain[11]) else None


def de_health(text: str) -> tuple[int, int] | None:
    """Krankenversichertennummer, a letter and nine digits: Luhn's sum with weights 1, 2 over the letter as two digits.

    >>> de_health("A123456780"), de_health("A123456787")
    ((0, 10), None)
    """
    numbers = digits(f"{ord(text[0].upper()) - 64:02d}" + text[1:])
    total = sum(sum(divmod(n * (1 + i % 2), 10)) for i, n in enumerate(numbers[:-1]))
    return (0, len(text)) if total % 10 == numbers[-1] else None


def es_pension(text: str) -> tuple[int, int] | None:
    """Número de la Seguridad Social: province, serial, and their value modulo 97.

    >>> es_pension("28/12345678/40"), es_pension("28/12345678/41")
    ((0, 14), None)
    """
    numbers = "".join(map(str, digits(text)))
    province, serial, rest = numbers[:2], int(numbers[2:-2]), int(numbers[-2:])
    base = int(province) * 10**7 + serial if serial < 10**7 else int(province + str(serial))
    return (0, len(text)) if base % 97 == rest else None


def us_dea(text: str) -> tuple[int, int] | None:
    """DEA registration: d1 + d3 + d5 + 2 (d2 + d4 + d6) ends in d7.

    >>> us_dea("BB1388568"), us_dea("BB1388569")
    ((0, 9), None)
    """
    d = digits(text[2:])
    return (0, len(text)) if (sum(d[0:6:2]) + 2 * sum(d[1:6:2])) % 10 == d[6] else None


def us_npi(text: str) -> tuple[int, int] | None:
    """National provider identifier: Luhn over the number behind 80840.

    >>> us_npi("1234567893"), us_npi("1234567890")
    ((0, 10), None)
    """
    return (0, len(text)) if luhn("80840" + text) else None


def pl_id_card(text: str) -> tuple[int, int] | None:
    """Number of a Polish identity card, three letters and six digits: weights 7, 3, 1 over all but the first digit, which
    is the check digit (Dz.U. 2015 poz. 212, annex).

    >>> pl_id_card("ABA 300000"), pl_id_card("ABA400000")
    ((0, 10), None)
    """
    values = [int(c, 36) for c in text.upper() if c.isalnum()]
    total = sum(v * w for v, w in zip(values[:3] + values[4:], (7, 3, 1, 7, 3, 1, 7, 3), strict=True))
    return (0, len(text)) if total % 10 == values[3] else None


def pt_social(text: str) -> tuple[int, int] | None:
    """NISS, eleven digits: 9 less the sum of the first ten weighted by primes from 29 down to 2, modulo 10.

    >>> pt_social("11234567892"), pt_social("11234567890")
    ((0, 11), None)
    """
    numbers = digits(text)
    total = sum(n * w for n, w in zip(numbers[:10], (29, 23, 19, 17, 13, 11, 7, 5, 3, 2), strict=True))
    return (0, len(text)) if 9 - total % 10 == numbers[10] else None


def se_personal(text: str) -> tuple[int, int] | None:
    """Personnummer or samordningsnummer: a day of birth (60 more in the latter), and Luhn's sum of the last ten digits.
    python-stdnum's verdict depends on today's date, and a policy must not.

    >>> se_personal("880320-0016"), se_personal("19880320-0016"), se_personal("701063-2391"), se_personal("880320-0018")
    ((0, 11), (0, 13), (0, 11), None)
    """
    numbers = digits(text)[-10:]
    month, day = 10 * numbers[2] + numbers[3], (10 * numbers[4] + numbers[5]) % 60
    fine = 1 <= month <= 12 and 1 <= day <= 31 and luhn("".join(map(str, numbers)))
    return (0, len(text)) if fine else None
