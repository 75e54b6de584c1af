"""taciturn budget: what noise, rate and steps cost."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.options import Json


def budget(
    *,
    rate: Annotated[float, Parameter(name=["--rate", "-q"], help="Poisson sampling rate")],
    steps: Annotated[int, Parameter(name=["--steps", "-T"])],
    delta: float = 1e-5,
    sigma: Annotated[float | None, Parameter(help="noise multiplier; or give --epsilon")] = None,
    epsilon: Annotated[float | None, Parameter(help="target: the smallest σ that meets it is found")] = None,
    relation: Literal["substitution", "add-remove"] = "substitution",
    group: Annotated[int, Parameter(name=["--group", "-k"], help="records that change together")] = 1,
    gamma: Annotated[float | None, Parameter(help="miss rate of π: also the Bayesian ε")] = None,
    delta2: Annotated[float, Parameter(help="miss rate of π and π_c together")] = 0.0,
    json: Json = False,
) -> None:
    """ε of DP-SGD for given noise, rate and steps, or the noise a target ε needs.

    Example: `taciturn budget --sigma 1 --rate 0.01 --steps 1000 --delta 1e-5 --relation substitution`
    """
    from taciturn.cli.show import as_json, number, out
    from taciturn.errors import UsageError
    from taciturn.privacy.accountant import accountant_name, compose
    from taciturn.privacy.calibrate import noise_multiplier
    from taciturn.privacy.events import PoissonGaussian
    from taciturn.privacy.theorems import bayesian
    from taciturn.privacy.theorems import group as group_bound

    if (sigma is None) == (epsilon is None):
        raise UsageError("give either --sigma (for its ε) or --epsilon (for the σ it needs)")
    if sigma is None:
        assert epsilon is not None
        sigma = noise_multiplier(epsilon, delta, rate, steps, relation)
    profile = compose({PoissonGaussian(rate, sigma): steps}, relation)
    spent = profile.epsilon(delta) if group == 1 else group_bound(profile, group, delta).epsilon
    result: dict[str, object] = {
        "sigma": sigma,
        "rate": rate,
        "steps": steps,
        "delta": delta,
        "relation": relation,
        "group": group,
        "epsilon": spent,
        "unit": "record" if group == 1 else f"{group} records",
        "status": "proved for the plan",
        "notion": "confidentiality" if relation == "substitution" else "dp",
        "accountant": accountant_name(),
    }
    if gamma is not None:
        bound = bayesian(profile, gamma, delta2, delta)
        result["bayesian"] = {
            "gamma": gamma,
            "delta2": delta2,
            "epsilon": bound.epsilon,
            "if_missed": profile.epsilon(delta),
        }
    if json:
        as_json(result)
        return
    out.print(
        f"ε = {number(spent, 4)} at δ = {delta:g} ({result['notion']}, {relation}, unit: {result['unit']}) "
        f"for σ = {sigma:.6g}, q = {rate:g}, T = {steps:,}; {result['accountant']}",
        soft_wrap=True,
    )
    if gamma is not None:
        out.print(
            f"Bayesian: ε = {number(bound.epsilon, 4)} at δ = {delta:g} for a random secret that π misses with "
            f"probability {gamma:g}; for one that was missed it is still {number(profile.epsilon(delta), 4)}",
            soft_wrap=True,
        )
