"""What-if tables: the cost of DP-SGD at every combination of the parameters given, with all that belongs to each number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.errors import GuaranteeError, UsageError

if TYPE_CHECKING:
    from taciturn.privacy.accounting.accountant import Profile
    from taciturn.privacy.accounting.events import Relation
    from taciturn.privacy.accounting.tradeoff import TradeOff
    from taciturn.privacy.guarantees.private_selection import Runs

Values = Mapping[str, Sequence[Any]]
"""The values of each parameter: sigma or epsilon (a target), rate, steps, delta, group, gamma (may be left out), runs (the
mean number of runs that one is chosen from; may be left out)."""

SIGNS = {
    "sigma": "σ", "epsilon": "target ε", "rate": "q", "steps": "T", "delta": "δ", "group": "k", "gamma": "γ",
    "runs": "mean number of runs",
}  # fmt: skip

Law = Callable[[float], "Runs"]
"""The law of the number of runs, by its mean."""


def cell(at: Mapping[str, Any], relation: Relation, delta2: float, law: Law | None = None) -> dict[str, Any]:
    """The cost at one combination, as plain JSON; the whole of what `taciturn budget` says of one plan.

    A target is about what is released: with ``law`` the run that was chosen, else the only one.

    Raises UsageError for values that no plan has, GuaranteeError for a target that no noise reaches.
    """
    from taciturn.privacy.accounting.accountant import accountant_name, compose
    from taciturn.privacy.accounting.calibrate import noise_multiplier
    from taciturn.privacy.accounting.events import PoissonGaussian
    from taciturn.privacy.guarantees.theorems import group as group_bound

    rate, steps, delta, k = at["rate"], at["steps"], at["delta"], at.get("group", 1)
    runs = None if law is None else law(at["runs"])
    if "sigma" in at:
        sigma = at["sigma"]
    elif runs is None:
        sigma = noise_multiplier(at["epsilon"], delta, rate, steps, relation)
    else:
        sigma = _sigma_if_chosen(at["epsilon"], delta, rate, steps, relation, runs)
    profile = compose({PoissonGaussian(rate, sigma): steps}, relation)
    spent = profile.epsilon(delta) if k == 1 else group_bound(profile, k, delta).epsilon
    result: dict[str, Any] = {
        "sigma": sigma,
        "rate": rate,
        "steps": steps,
        "delta": delta,
        "relation": relation,
        "group": k,
        "epsilon": spent,
        "unit": "record" if k == 1 else f"{k} records",
        "status": "proved for the plan",
        "notion": "dp" if relation == "add-remove" else "confidentiality" if k == 1 else "group-confidentiality",
        "accountant": accountant_name(),
    }
    if "epsilon" in at:
        result["target"] = at["epsilon"]
    if "gamma" in at:
        result["bayesian"] = _bayesian(profile, at["gamma"], delta2, delta, relation)
    if runs is not None:
        result["selection"] = _chosen(profile.for_group(k), runs, result)
    return result


def attacks(one: Mapping[str, Any]) -> TradeOff:
    """What any attack can do at one such combination, of what its ε is about."""
    from taciturn.privacy.accounting.accountant import compose
    from taciturn.privacy.accounting.events import PoissonGaussian
    from taciturn.privacy.accounting.tradeoff import TradeOff

    profile = compose({PoissonGaussian(one["rate"], one["sigma"]): one["steps"]}, one["relation"], one["group"])
    return TradeOff.of(profile.curve(one["delta"]), one["epsilon"], one["delta"])


def _chosen(profile: Profile, runs: Runs, single: Mapping[str, Any]) -> dict[str, Any]:
    """What the best of a random number of such runs costs."""
    from taciturn.privacy.guarantees import selection_law
    from taciturn.privacy.guarantees.private_selection import select

    found = select(profile, runs, single["delta"]).guarantee(single["notion"], single["unit"])
    return {
        **selection_law.to_json(runs),
        "epsilon": found.epsilon,
        "single": found.detail["single_run_epsilon"],
        **{name: single[name] for name in ("notion", "unit", "relation", "delta")},
        "status": f"conditional: {'; '.join(each.text for each in found.assumptions)}",
        "theorem": found.theorem,
        "accountant": found.accountant,
    }


def _sigma_if_chosen(target: float, delta: float, rate: float, steps: int, relation: Relation, runs: Runs) -> float:
    """The smallest σ, to 1e-3, at which the run that is chosen keeps the target."""
    from taciturn.privacy.accounting.accountant import compose
    from taciturn.privacy.accounting.events import PoissonGaussian
    from taciturn.privacy.accounting.user_entity import noise_for
    from taciturn.privacy.guarantees.private_selection import select

    return noise_for(
        target, lambda sigma: select(compose({PoissonGaussian(rate, sigma): steps}, relation), runs, delta).epsilon
    )


def _bayesian(profile: Any, gamma: float, delta2: float, delta: float, relation: Relation) -> dict[str, Any]:
    from taciturn.privacy.guarantees.theorems import bayesian

    if relation != "substitution":
        raise UsageError("--gamma is of confidentiality, whose neighbours are by substitution: leave --relation out")
    total = delta if delta2 < delta else min(delta + delta2, 1 - 1e-12)  # as a certificate states it
    return {
        "gamma": gamma,
        "delta2": delta2,
        "epsilon": bayesian(profile, gamma, delta2, total).epsilon,
        "if_missed": profile.epsilon(delta),
        "notion": "bayesian-confidentiality",
        "unit": "a secret drawn at random",
        "relation": relation,
        "delta": total,
        "status": f"conditional: π misses at most {gamma:g}, both policies at most {delta2:g} of such secrets",
    }


@dataclass(frozen=True, slots=True)
class Table:
    """Every cell of a what-if table. rows, columns: the parameters with several values, None where one is fixed."""

    cells: tuple[dict[str, Any], ...]
    given: Values
    rows: str
    columns: str | None
    shown: str
    """What stands in a cell: sigma (of a target), selection, bayesian or epsilon."""


def table(given: Values, relation: Relation, delta2: float, law: Law | None = None) -> Table:
    """The cells of one or two parameters with several values; the one with more values makes the rows. A target that no
    noise reaches leaves its cell empty, with the reason. Raises UsageError for three such parameters."""
    several = sorted((name for name in given if len(given[name]) > 1), key=lambda name: -len(given[name]))
    if len(several) > 2:
        raise UsageError(f"one or two options may have several values, found {', '.join(several)}")
    cells = []
    for combination in product(*given.values()):
        at = dict(zip(given, combination, strict=True))
        try:
            cells.append(cell(at, relation, delta2, law) | {"at": at})
        except GuaranteeError as error:
            cells.append({"at": at, "sigma": None, "epsilon": None, "status": "none", "reason": str(error)})
    shown = "bayesian" if "gamma" in given else "sigma" if "epsilon" in given else "selection" if law else "epsilon"
    return Table(tuple(cells), given, several[0], several[1] if len(several) == 2 else None, shown)


def value(one: Mapping[str, Any], shown: str) -> float | None:
    """The number that stands in a cell; None where there is none."""
    found = one.get(shown, {}).get("epsilon") if shown in ("bayesian", "selection") else one[shown]
    return None if found is None else float(found)


def grid(made: Table) -> tuple[list[str], list[list[str]]]:
    """Head and rows, as text that rounds no cost in its own favour."""
    first = SIGNS[made.rows]
    if made.columns is None:
        names = ["sigma"] * ("epsilon" in made.given) + ["epsilon"] + ["bayesian"] * ("gamma" in made.given)
        names += ["selection"] * ("runs" in made.given)
        head = {
            "sigma": "σ",
            "epsilon": "ε",
            "bayesian": "ε, secret drawn at random",
            "selection": "ε, best of the runs",
        }
        rows = [[_plain(c["at"][made.rows]), *(_cost(value(c, name)) for name in names)] for c in made.cells]
        return [first, *(head[name] for name in names)], rows
    across = made.given[made.columns]
    at = {(c["at"][made.rows], c["at"][made.columns]): value(c, made.shown) for c in made.cells}
    rows = [[_plain(x), *(_cost(at[x, y]) for y in across)] for x in made.given[made.rows]]
    return [first, *(f"{SIGNS[made.columns]} = {_plain(y)}" for y in across)], rows


def caption(made: Table) -> list[str]:
    """What every number of a table is: quantity, notion, unit, relation, δ, status; what is fixed; what is empty."""
    full = [c for c in made.cells if c["epsilon"] is not None]
    lines = []
    if full:
        c = full[0]
        delta = "δ as given" if len(made.given["delta"]) > 1 else f"δ = {c['delta']:g}"
        unit = "k records" if len(made.given.get("group", ())) > 1 else c["unit"]
        notion = "group-confidentiality" if unit == "k records" and c["relation"] == "substitution" else c["notion"]
        lines.append(
            f"ε: {notion}, unit: {unit}, neighbours by {c['relation']}, {delta}, {c['status']}; {c['accountant']}"
        )
        if "bayesian" in c:
            b = c["bayesian"]
            total = delta if len(made.given["delta"]) > 1 else f"δ = {b['delta']:g}"
            gamma = "γ" if len(made.given["gamma"]) > 1 else f"{b['gamma']:g}"
            lines.append(
                f"ε, secret drawn at random: {b['notion']}, neighbours by {b['relation']}, {total}, conditional: π misses "
                f"at most {gamma}, both policies at most {b['delta2']:g} of such secrets; for one missed, ε at k = 1"
            )
        if "selection" in c:
            s = c["selection"]
            law = "poisson" if s["law"] == "poisson" else f"negative binomial, η = {s['shape']:g}"
            lines.append(
                f"ε, best of the runs: {notion}, unit: {unit}, neighbours by {s['relation']}, {delta}, number of runs "
                f"{law}, {s['status']}; {s['theorem']}; {s['accountant']}"
            )
        if made.shown == "sigma":
            of = "best of the runs is" if "selection" in c else "ε is"
            lines.append(f"σ: the smallest noise multiplier whose {of} within the target")
    fixed = [f"{SIGNS[name]} = {_plain(given[0])}" for name, given in made.given.items() if len(given) == 1]
    lines.append("fixed: " + ", ".join(fixed))
    if len(full) < len(made.cells):
        lines.append("–: no σ reaches the target")
    return lines


def title(made: Table) -> str:
    """What is shown against what."""
    names = {
        "sigma": "σ",
        "epsilon": "ε",
        "bayesian": "ε of a secret drawn at random",
        "selection": "ε of the best run",
    }
    what = names[made.shown]
    return f"{what} against {SIGNS[made.rows]}" + (f" and {SIGNS[made.columns]}" if made.columns else "")


def plot(made: Table, out: Path) -> None:
    """Write the table as curves, one for each value of its columns. Infinite costs are left out."""
    from taciturn.reporting.figures.budget import write

    curves = []
    for y in made.given[made.columns] if made.columns else (None,):
        cells = [c for c in made.cells if y is None or c["at"][str(made.columns)] == y]
        points = [(float(c["at"][made.rows]), v) for c in cells if (v := value(c, made.shown)) is not None]
        points = sorted(point for point in points if math.isfinite(point[1]))
        name = "" if y is None else f"{SIGNS[str(made.columns)]} = {_plain(y)}"
        curves.append((name, [x for x, _ in points], [v for _, v in points]))
    axes = (SIGNS[made.rows], "σ" if made.shown == "sigma" else "ε")
    write(out, curves, axes, title(made), caption(made), grid(made))


def _plain(given: float) -> str:
    return f"{given:,}" if isinstance(given, int) else f"{given:.6g}"


def _cost(found: float | None) -> str:
    from taciturn.privacy.guarantees.guarantee import round_up

    return "–" if found is None else round_up(found, 4)
