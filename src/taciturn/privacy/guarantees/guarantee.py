"""A guarantee is a sentence with a number in it; this is the sentence and everything the number depends on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, get_args

from taciturn.errors import DataError, UsageError
from taciturn.privacy.accounting.events import RELATIONS, Relation
from taciturn.privacy.accounting.tradeoff import TradeOff

Notion = Literal["dp", "confidentiality", "group-confidentiality", "bayesian-confidentiality", "sdp", "user-dp", "uedp"]
Status = Literal["proved", "conditional", "estimate", "published-claim", "refuted", "none"]

NOTIONS: frozenset[str] = frozenset(get_args(Notion))
STATUSES: frozenset[str] = frozenset(get_args(Status))
EMPTY: frozenset[str] = frozenset({"refuted", "none"})
"""Statuses of a statement that promises nothing: evidence speaks against a condition of it, or nothing is known to hold."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something the number rests on: kept by the code (``enforced``), or left for the reader to judge."""

    text: str
    enforced: bool

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "enforced": self.enforced}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ε, δ) of one notion, for one unit and neighbouring relation, with what it rests on.

    unit: what changes between the two worlds, in words ("one secret in one record").
    theorem: where it is proved. accountant: what computed it. reason: why ``status`` is not better.
    detail: further numbers (ε of the other direction, miss-rate bounds, group size, …).
    trade_off: what any attack can do, from the whole curve; only where the claim is proved or conditional.
    """

    notion: Notion
    unit: str
    relation: Relation
    epsilon: float
    delta: float
    status: Status
    theorem: str
    accountant: str
    assumptions: tuple[Assumption, ...] = ()
    reason: str = ""
    detail: Mapping[str, float] = field(default_factory=dict)
    trade_off: TradeOff | None = None

    def __post_init__(self) -> None:
        if self.status not in ("proved", "conditional"):  # what is no bound bounds no attack
            object.__setattr__(self, "trade_off", None)
        if self.notion not in NOTIONS or self.relation not in RELATIONS or self.status not in STATUSES:
            raise UsageError(
                f"guarantee: unknown notion, relation or status in {self.notion, self.relation, self.status}"
            )
        if not self.epsilon >= 0 or not 0 <= self.delta <= 1:
            raise UsageError(f"guarantee: expected ε ≥ 0 and δ in [0, 1], found ({self.epsilon}, {self.delta})")
        if self.status in EMPTY and self.epsilon != math.inf:
            raise UsageError(f"guarantee: status '{self.status}' means ε = ∞")
        if self.status in EMPTY and not self.reason:
            raise UsageError(f"guarantee: status '{self.status}' needs a reason")
        if self.status == "proved" and not all(each.enforced for each in self.assumptions):
            raise UsageError("guarantee: status 'proved' with an assumption that nothing enforces")

    @property
    def finite(self) -> bool:
        return math.isfinite(self.epsilon)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; ∞ is the string "inf"."""
        return {
            "notion": self.notion,
            "unit": self.unit,
            "relation": self.relation,
            "epsilon": to_number(self.epsilon),
            "delta": self.delta,
            "status": self.status,
            "theorem": self.theorem,
            "accountant": self.accountant,
            "assumptions": [each.to_json() for each in self.assumptions],
            "reason": self.reason,
            "detail": {name: to_number(value) for name, value in sorted(self.detail.items())},
            "trade_off": None if self.trade_off is None else self.trade_off.to_json(),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Guarantee:
        """Inverse of :meth:`to_json`; DataError on anything else."""
        try:
            fields = dict(value)
            fields["epsilon"] = from_number(fields["epsilon"])
            fields["assumptions"] = tuple(Assumption(**each) for each in fields["assumptions"])
            fields["detail"] = {name: from_number(number) for name, number in fields["detail"].items()}
            fields["trade_off"] = TradeOff.from_json(fields["trade_off"]) if fields["trade_off"] is not None else None
            return Guarantee(**fields)
        except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
            raise DataError(f"this is not a guarantee as taciturn writes it: {error}") from error

    def label(self) -> str:
        """The number with all that belongs to it, in one line."""
        return (
            f"{self.notion} of {self.unit}, neighbours by {self.relation}: "
            f"ε = {round_up(self.epsilon)}, δ = {round_up(self.delta)}, {self.status}"
        )

    def words(self) -> str:
        """One sentence for a reader who decides whether the model may leave the house."""
        return self._said(self._terms())

    def in_short(self) -> str:
        """The same where the conditions stand beside it: more than two are told by their number."""
        number = sum(not each.enforced for each in self.assumptions)
        return (
            self.words()
            if number <= 2 or self.reason
            else self._said(f"; provided that its {number} open assumptions hold")
        )

    def _said(self, terms: str) -> str:
        mu = "" if self.trade_off is None else f"; {self.trade_off.label()}"
        return f"{self._claim()}{self._attacks()} ({self.label()}{mu}{terms})."

    def __str__(self) -> str:
        return self.words()

    def _claim(self) -> str:
        about = f"about {self.unit}"
        if self.status == "none":
            return f"Anyone who sees the model may be able to learn everything {about}: nothing is promised"
        if self.status == "refuted":
            return f"What was to be promised {about} does not hold: evidence refutes a condition of it"
        hedge = {
            "estimate": " by an estimate that is not a bound",
            "published-claim": " as published, which is not proved",
        }
        prefix = f"Anyone who sees the model can{hedge.get(self.status, '')} "
        if self.epsilon == 0 and self.delta == 0:
            return f"{prefix}learn nothing {about}"
        chance = f", apart from a chance of {_percent(self.delta)}" if self.delta else ""
        if not self.finite:
            return f"{prefix}learn everything {about}"
        if self.epsilon > 10:
            return f"{prefix}learn a great deal {about}: an ε this large excludes almost nothing{chance}"
        factor = round_up(math.exp(self.epsilon))
        return f"{prefix}raise the odds of any guess {about} by a factor of at most {factor}{chance}"

    def _attacks(self) -> str:
        """What the best attack finds, where that is less than everything; in the sentence whose conditions it shares."""
        told = self.trade_off
        if told is None or not told.limits or (self.epsilon == 0 and self.delta == 0):
            return ""
        what = "them" if self.unit.startswith(("all ", "the ")) else "it"
        decides = "this" if self.unit.startswith("whether") else f"whether training saw {what} or masked text instead"
        return (
            f"; at {told.alarms()} false alarms an attack that decides {decides} finds at most {told.share()} of cases"
        )

    def _terms(self) -> str:
        open_ones = [each.text for each in self.assumptions if not each.enforced]
        terms = f"; because {self.reason}" if self.reason else ""
        return terms + (f"; provided that {' and '.join(open_ones)}" if open_ones else "")

    def _comparable(self, other: object) -> Guarantee:
        if not isinstance(other, Guarantee):
            self._refuse(type(other).__name__)
        if (self.notion, self.unit, self.relation, self.delta) != (
            other.notion,
            other.unit,
            other.relation,
            other.delta,
        ):
            self._refuse(other.label())
        return other

    def _refuse(self, other: str) -> NoReturn:
        raise UsageError(
            f"these two do not compare, because notion, unit, neighbours or δ differ: [{self.label()}] and [{other}]"
        )

    def __lt__(self, other: object) -> bool:
        return self.epsilon < self._comparable(other).epsilon

    def __le__(self, other: object) -> bool:
        return self.epsilon <= self._comparable(other).epsilon

    def __gt__(self, other: object) -> bool:
        return self.epsilon > self._comparable(other).epsilon

    def __ge__(self, other: object) -> bool:
        return self.epsilon >= self._comparable(other).epsilon


def to_number(value: float) -> float | str:
    """JSON has no ∞: it is written "inf"."""
    return "inf" if value == math.inf else value


def from_number(value: float | str) -> float:
    if value == "inf":
        return math.inf
    if isinstance(value, bool | str):
        raise ValueError(f"expected a number or 'inf', found {value!r}")
    return float(value)


def round_up(value: float, digits: int = 3) -> str:
    """Three significant digits, never less than the value: a printed guarantee must not round in its own favour.

    >>> round_up(2.2201), round_up(8e-5), round_up(0.0), round_up(math.inf)
    ('2.23', '8e-05', '0', '∞')
    """
    if value == math.inf:
        return "∞"
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{math.ceil(value / unit - 1e-9) * unit:.{digits}g}"


def _percent(delta: float) -> str:
    return f"{round_up(100 * delta)} %"
