"""CRT, Figure 4: membership inference against the policy's miss rate γ."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.crt.curves import DIFFERS, MEDIUM, NEEDS, OUR_SETTING, PAPER_SETTING, attack, longer, results
from taciturn.recipes.crt.members import findings
from taciturn.recipes.recipe import Inputs, Recipe, Results, statements

RECIPE = Recipe(
    name="crt-figure4",
    paper="crt",
    item="Figure 4",
    title="membership inference attack",
    asks="Can one tell which secrets a model was trained on, when the policy missed some?",
    paper_setting=PAPER_SETTING
    + " 1,000 sequences with a secret that was trained on (reference numbers; addresses) against "
    "1,000 generated ones of the same form, classified by perplexity (A.5); a guess is right for half.",
    our_setting=OUR_SETTING,
    differs=(
        *DIFFERS,
        "Members are turns with an order number, phone or address as they were written; non-members are turns of "
        "the same kind "
        "about other people, from the same generator.",
        "Beside the loss of the whole turn, as in A.5, stands that of the secret's own tokens, where it was measured.",
        "Accuracy at the best threshold, chosen on the same texts as in the paper, is above .5 even when nothing "
        "leaked; what chance gives is said below.",
    ),
    published=(
        statements(
            "Accuracy of the attack",
            "section 5.3 and the caption, read from the text only: the curves' numbers are not printed",
            (
                "CRT-LSTM and CRT-GPT: nearly 50 % at every γ",
                "Non-private-LSTM, Non-private-GPT and S-DP-LSTM: surge above 50 % as γ leaves 0",
            ),
        ),
    ),
    needs=NEEDS,
    medium=MEDIUM,
)


def run(inputs: Inputs, work: Work) -> Results:
    """The accuracy of every row at every γ."""
    plots, tables, found = attack(inputs, work, "membership_accuracy", "membership accuracy", ("a guess", 0.5))
    _, auc, _ = attack(inputs, work, "membership", "membership AUC")
    own, told, _ = attack(
        inputs, work, "secret_membership_accuracy", "membership accuracy, the secret's own tokens", ("a guess", 0.5)
    )
    tables = [*tables, *auc, *told]
    says = [*findings(inputs, work, found, "membership"), *longer(inputs)]
    return results(inputs, work, found, [*plots, *own], tables, says)
