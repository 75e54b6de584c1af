"""Just Fine-tune Twice (Shi et al. 2022): redacted text first, then the originals with noise (guarantees.md §4.1).

The first phase is noiseless, or lightly noised where what the policy misses is to cost less than everything. Both phases
are record-aligned: every record is trained on by itself, never packed with others.
"""

from __future__ import annotations

from taciturn.errors import UsageError
from taciturn.mechanisms.config import PrivateSteps, PublicSteps, Strict
from taciturn.privacy.claims import FIRST
from taciturn.screening.screened import ScreenedCorpus
from taciturn.training.plan import Phase, Plain, Plan, Poisson, Shuffle, Target, epoch_steps

SUMMARY = "fine-tune on redacted text, then privately on the originals; selective privacy"


class Config(Strict):
    """redacted: the first phase (JFT 3.1, direct usage). light: noised instead (lightly-noised fine-tuning); it states its
    own noise_multiplier, and so does ``private`` then, as one target cannot be shared out. private: the second phase."""

    redacted: PublicSteps = PublicSteps()
    light: PrivateSteps | None = None
    private: PrivateSteps = PrivateSteps(clip=0.1)


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """[redacted text, plainly or lightly noised; originals with DP-SGD]."""
    records = len(screened.texts("redacted"))
    if config.light is None:
        shuffle = Shuffle(config.redacted.batch_size)
        steps = config.redacted.epochs * epoch_steps(records, shuffle)
        first = Phase(FIRST, ("redacted",), records, shuffle, Plain(), steps, config.redacted.optimiser.build())
    else:
        if config.light.noise_multiplier is None or config.private.noise_multiplier is None:
            raise UsageError(
                "jft with a lightly noised first phase: set light.noise_multiplier and private.noise_multiplier; one "
                "target ε cannot be shared between two phases"
            )
        first = Phase(
            FIRST,
            ("redacted",),
            records,
            Poisson(config.light.sampling_rate(records)),
            config.light.rule(records, target),
            config.light.steps,
            config.light.optimiser.build(),
        )
    second = Phase(
        "private",
        ("original",),
        records,
        Poisson(config.private.sampling_rate(records)),
        config.private.rule(records, target),
        config.private.steps,
        config.private.optimiser.build(),
    )
    return Plan("jft", (first, second), 1, target, screened.key)
