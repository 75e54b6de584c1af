"""What a trained row of CRT's experiments is measured by: noise, Bayesian ε on the way, exposure and membership."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taciturn.recipes.cells import Row
from taciturn.recipes.crt.sizes import DELTA

if TYPE_CHECKING:
    from taciturn.text.document import Document, Record


def noise(plan: Mapping[str, Any]) -> Row:
    """σ and sampling rate of the noised phase, None without one."""
    events = [phase["event"] for phase in plan["phases"] if phase["event"].get("rate")]
    return {"sigma": events[0]["noise_multiplier"], "rate": events[0].get("rate")} if events else {"sigma": None}


def bayesian(plan: Mapping[str, Any], points: Sequence[Row], gamma: float | None) -> Row:
    """Bayesian ε at δ where each point was taken, as it holds and by the paper's accounting; γ None: nothing is redacted.

    Returns holds, published: one ε a point, of the private steps until then. Empty for rows without such a statement
    (redaction: 0; S-DP: ∞, since what π misses is trained on without noise).
    """
    from taciturn.privacy.accounting.accountant import compose
    from taciturn.privacy.accounting.event_files import from_json
    from taciturn.privacy.accounting.events import PoissonGaussian
    from taciturn.privacy.guarantees.published_crt import published_epsilon
    from taciturn.privacy.guarantees.theorems import bayesian as theorem
    from taciturn.privacy.guarantees.theorems import bayesian_simple

    if plan["mechanism"] not in ("dpsgd", "crt"):
        return {}
    phase = next(each for each in plan["phases"] if each["event"].get("rate"))
    tables = {
        from_json(each["event"]): 1 for each in plan["phases"] if each["event"].get("event") == "thresholded-counts"
    }
    event = PoissonGaussian(phase["event"]["rate"], phase["event"]["noise_multiplier"])
    rounds = int(plan["repeat"])
    total = int(phase["steps"])  # of all rounds, as plan.json counts
    before = (sum(int(each["steps"]) for each in plan["phases"]) - total) // rounds
    holds, published = [], list[float | None]()
    for point in points:
        steps = _private_steps(int(point["done"]), before, total // rounds, rounds)
        profile = compose({**tables, event: steps}, "substitution")
        share = 1.0 if gamma is None else gamma
        holds.append(profile.epsilon(DELTA) if gamma is None else theorem(profile, share, 0.0, DELTA).epsilon)
        if tables:
            published.append(None)  # a table of counts is none of the paper's
            continue
        if not steps or share <= DELTA:
            published.append(0.0)
            continue
        at = published_epsilon(event.rate, event.noise_multiplier, steps, min(DELTA / share, 0.999))
        published.append(bayesian_simple(at, share))
    return {"holds": holds, "published": published}


def _private_steps(done: int, before: int, steps: int, rounds: int) -> int:
    """Private steps among the first ``done`` of [``before`` public, ``steps`` private] × rounds.

    >>> [_private_steps(done, 3, 2, 2) for done in (0, 3, 4, 5, 8, 9, 10)]
    [0, 0, 1, 2, 2, 3, 4]
    """
    whole, rest = divmod(done, before + steps)
    return min(whole, rounds) * steps + max(0, rest - before)


def attacks(
    run: Any, canaries: Any, members: Sequence[Document], others: Sequence[Document], kinds: Sequence[str], group: int
) -> Row:
    """Highest exposure of the canaries, accuracy and AUC of membership, alone and in groups of ``group`` (A.5).

    Members are turns of the training dialogues that hold a secret, as they were written; non-members turns of the same kind
    with other people's secrets, from the same generator. kinds: labels of those secrets. Under "secret_" the same of the
    secret's own tokens alone: what stands around it is everybody's and only blurs the score.
    """
    import taciturn as tt

    sides = [secret_turns(documents, kinds) for documents in (members, others)]
    few = min(1000, *map(len, sides))
    inside, outside = ([record.body for record in side[:few]] for side in sides)
    names = ["exposure", "membership", *(["group-membership"] if few >= 2 * group else [])]
    found = tt.audit(run, names, canaries=canaries, members=inside, nonmembers=outside, group_size=group, seed=0)
    row: Row = {"members": few, **secrets_told(run.model(), [side[:few] for side in sides], kinds, group)}
    for each in found:
        name = each.attack.replace("-", "_")
        row |= {name: each.score, f"{name}_verdict": each.verdict, f"{name}_p95": each.null.get("p95")}
        if name != "exposure":
            row |= {f"{name}_accuracy": each.detail["accuracy_same_set"], f"{name}_mean": _null(each)}
    return row


def _null(finding: Any) -> list[float]:
    """Mean and 95 % point of the accuracy when nothing leaked: above .5, as the threshold is chosen afterwards."""
    return [finding.null["accuracy_same_set_mean"], finding.null["accuracy_same_set_p95"]]


def secrets_told(model: tuple[Any, Any], sides: Sequence[Sequence[Record]], kinds: Sequence[str], group: int) -> Row:
    """AUC and accuracy at the best threshold of −mean loss of the secrets' tokens, alone and summed over disjoint groups.
    model: with its tokenizer. sides: members and non-members."""
    import numpy as np

    from taciturn.auditing.membership.roc import best_threshold, delong

    scores = [-secret_losses(*model, side, kinds) for side in sides]
    rng = np.random.default_rng(0)
    batches = [
        each[rng.permutation(len(each))[: len(each) // group * group]].reshape(-1, group).sum(1) for each in scores
    ]
    row: Row = {}
    for name, (a, b) in {"secret_membership": scores, "secret_group_membership": batches}.items():
        if min(len(a), len(b)) > 1:
            row |= {name: float(delong(a[None], b[None])[0][0]), f"{name}_accuracy": best_threshold(a, b)[1]}
    return row


def secret_losses(model: Any, tokenizer: Any, records: Sequence[Record], kinds: Sequence[str]) -> Any:
    """Mean −log p over the tokens that touch a secret of these kinds in each record, given what stands before it, [N]."""
    import numpy as np

    from taciturn.models.loss import collate, microbatches, token_losses
    from taciturn.models.sequences import mask_id, touched
    from taciturn.models.tokens import encode_all

    tokens, mask = encode_all(tokenizer, [record.body for record in records]), mask_id(tokenizer)
    found = np.zeros(len(records))
    model.eval()
    for rows in microbatches(np.arange(len(tokens)), tokens.lengths, 4096):
        losses = token_losses(model, collate(tokens, rows, mask, model.device)).double().cpu().numpy()
        for line, at in zip(losses, rows, strict=True):
            spans = [(span.start, span.end) for span in records[at].gold if told(span, kinds)]
            inside = touched(tokenizer, records[at].body, spans, len(tokens[at]))[1:]  # scored at the token before
            found[at] = line[: len(inside)][inside].mean()
    return found


def told(span: Any, kinds: Sequence[str]) -> bool:
    """Whether an annotation is of a kind that the attack looks for; sets differ in case."""
    return span.label.lower() in kinds


def secret_turns(documents: Sequence[Document], kinds: Sequence[str]) -> list[Record]:
    """Turns with an annotated secret that is told, each text once."""
    from taciturn.text.segment import split

    records: list[Record] = [record for document in documents for record in split(document, "turn")]
    every = [record for record in records if any(told(span, kinds) for span in record.gold)]
    return list({record.body: record for record in every}.values())
