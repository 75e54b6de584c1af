"""CRT, Figure 5: membership inference on groups of texts against the policy's miss rate γ."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.crt.curves import DIFFERS, MEDIUM, NEEDS, OUR_SETTING, PAPER_SETTING, attack, results
from taciturn.recipes.crt.members import findings
from taciturn.recipes.recipe import Inputs, Recipe, Results, statements

RECIPE = Recipe(
    name="crt-figure5",
    paper="crt",
    item="Figure 5",
    title="group membership inference attack",
    asks="Does an attack on many texts at once see what an attack on one does not?",
    paper_setting=PAPER_SETTING
    + " 1,000 groups of 20 texts with secrets that were trained on against 1,000 groups of others, "
    "classified by the sum of perplexities (A.5).",
    our_setting=OUR_SETTING,
    differs=(
        *DIFFERS,
        "Groups are disjoint, so that they are independent (the paper's 2,000 groups of 20 out of 2,000 texts "
        "overlap), and hold "
        "10 texts in the quick size.",
        "Beside the loss of the whole turn, as in A.5, stands that of the secret's own tokens, where it was measured.",
        "The score of a group is the sum of its losses.",
    ),
    published=(
        statements(
            "Accuracy of the attack on groups",
            "section 5.3 and the caption, read from the text only: the curves' numbers are not printed",
            (
                "CRT-LSTM and CRT-GPT: align well with 50 %",
                "Non-private and S-DP models: at certain γ a higher accuracy than the attack on single texts",
            ),
        ),
    ),
    needs=NEEDS,
    medium=MEDIUM,
)


def run(inputs: Inputs, work: Work) -> Results:
    """The accuracy of every row at every γ."""
    y = "accuracy on groups"
    plots, tables, found = attack(inputs, work, "group_membership_accuracy", y, ("a guess", 0.5))
    _, auc, _ = attack(inputs, work, "group_membership", "AUC on groups")
    own, told, _ = attack(
        inputs, work, "secret_group_membership_accuracy", f"{y}, the secret's own tokens", ("a guess", 0.5)
    )
    tables, says = [*tables, *auc, *told], findings(inputs, work, found, "group_membership")
    return results(inputs, work, found, [*plots, *own], tables, says)
