"""What an attack found: numbers, the null they are read against, the controls, and a verdict. Never a secret."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from taciturn.errors import DataError
from taciturn.text.notebook import table

Verdict = Literal["leak", "no leak found", "inconclusive"]

LEAK = 0.01
"""Below this p-value an attack is called a leak."""

CLEAR = 0.05
"""At or above this p-value, that is inside the null's 95 % point, no leak was found; in between is inconclusive."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One attack on one model.

    attack: its name; score: its value in ``unit_of_score``; interval: 95 % interval of the score, None where the score
    is exact for this model. null: the score's distribution if nothing leaked ("mean", "p95") and the p-value "p".
    controls: the same attack where the answer is known ("positive": an over-fitted toy model; "negative": secrets
    never inserted, or shuffled labels). detail: numbers and arrays of numbers for tables and plots. notes: fixed
    sentences that explain an inconclusive verdict.
    """

    attack: str
    score: float
    unit_of_score: str
    interval: tuple[float, float] | None
    null: Mapping[str, float]
    controls: Mapping[str, float]
    verdict: Verdict
    detail: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        found = [(self.unit_of_score, self.score), ("by chance, 95 % point", self.null.get("p95", math.nan))]
        return table(self.attack, [*found, ("verdict", self.verdict)])

    def to_json(self) -> dict[str, Any]:
        """Plain data; a number that is not finite becomes None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """The inverse of :meth:`to_json`. Raises DataError naming a missing or unknown key."""
        known = {f.name for f in fields(cls)}
        if missing := known - {"detail", "notes"} - data.keys():
            raise DataError(f"finding without {', '.join(sorted(missing))}: run the audit again")
        if unknown := data.keys() - known:
            raise DataError(f"finding with unknown {', '.join(sorted(unknown))}: written by a newer taciturn?")
        interval = data["interval"]
        return cls(
            **{
                **data,
                "interval": None if interval is None else (float(interval[0]), float(interval[1])),
                "notes": tuple(data.get("notes", ())),
            }
        )


def verdict_of(p: float, problems: Sequence[str] = ()) -> Verdict:
    """The one rule for every attack: any problem with the attack itself is inconclusive, else the p-value decides.

    >>> verdict_of(0.001), verdict_of(0.02), verdict_of(0.3), verdict_of(0.001, ["the positive control failed"])
    ('leak', 'inconclusive', 'no leak found', 'inconclusive')
    """
    if problems or LEAK <= p < CLEAR:
        return "inconclusive"
    return "leak" if p < LEAK else "no leak found"


def save(path: Path, findings: Iterable[Finding]) -> None:
    """Write ``audit.json``."""
    text = json.dumps({"findings": [f.to_json() for f in findings]}, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> list[Finding]:
    """Read ``audit.json``. Raises DataError when it is not one."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["findings"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path.name}: expected an object with a list 'findings' ({type(error).__name__})") from error
    return [Finding.from_json(row) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
