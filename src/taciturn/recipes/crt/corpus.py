"""The text of CRT's experiments: dialogues with planted canaries, through π at each miss rate, and those kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from taciturn.recipes import texts
from taciturn.recipes.cells import Work
from taciturn.recipes.crt.data import in_one_form, load_split
from taciturn.recipes.crt.sizes import CANARIES, COPIES, Setting
from taciturn.recipes.recipe import Inputs

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.policies import Policy
    from taciturn.text.document import Document, Record


@dataclass(frozen=True)
class Texts:
    """Those of one data set in one size."""

    inputs: Inputs
    work: Work
    data: str
    setting: Setting

    def documents(self, part: str, seed: int = 0) -> list[Document]:
        """Dialogues of a split. Of "train", part "others" follows those trained on: the same generator, other people."""
        n = self.setting.test if part == "test" else self.setting.dialogues
        if (folder := self.inputs.data) is not None:
            every = load_split(self.data, folder, "test" if part == "test" else "train")
            if part == "others":  # a split used up leaves those of the others
                return list(
                    every[n : 2 * n] or load_split(self.data, folder, "valid") + load_split(self.data, folder, "test")
                )
            return list(every[:n])
        from taciturn.data.customersim import simulate

        split = "test" if part == "test" else "train"
        return simulate(2 * n, seed + self.inputs.seed, split)[n if part == "others" else 0 :][:n]

    def sides(self) -> tuple[list[Document], list[Document], str]:
        """Dialogues trained on and others for the membership attack, in one form; and which, where not all are."""
        trained = self.documents("train")
        if self.inputs.data is None or (pair := in_one_form(self.data, self.inputs.data)) is None:
            return trained, self.documents("others"), ""
        version, members, others = pair
        return [each for each in trained if each.id in members], list(others), f"those of version {version}"

    def test(self) -> tuple[list[Record], str]:
        """Up to 500 test turns that do not stand in the training text, and how many do."""
        from taciturn.text.segment import split

        train, test = (
            [record for document in self.documents(part) for record in split(document, "turn")]
            for part in ("train", "test")
        )
        kept, note = texts.unseen(test, train, 500)
        return list(kept), note

    @cached_property
    def canaries(self) -> Any:
        """Template and secrets: lower case, as CustomerSim's π takes two words with capitals for a name."""
        from taciturn.auditing.canaries.templates import Planted, Template, draw

        template = Template("my id is: {}", length=self.setting.digits)
        return Planted(template, tuple(draw(template, CANARIES, 7)), COPIES)

    @cached_property
    def policy(self) -> Policy:
        """π: the set's preset and the canaries' own pattern."""
        import taciturn as tt
        from taciturn.screening.policies import Regex

        digits = self.setting.digits
        badge = Regex("canary", rf"my id is: (\d{{{digits}}})", must_find=("my id is: " + "1" * digits,), group=1)
        return tt.policy(self.data, badge, name=f"{self.data} and canaries")

    def miss_seed(self, gamma: float) -> int:
        """The first seed of π's coin with which it misses 10γ of the ten canaries, rounded: else chance would decide."""
        from taciturn.screening.policies.derived import Missing

        texts = [self.canaries.template.fill(secret) for secret in self.canaries.secrets]
        want = round(gamma * CANARIES)
        for seed in range(10_000):
            if sum(not found.spans for found in Missing(self.policy, gamma, seed).find(texts)) == want:
                return seed
        raise AssertionError(f"no coin misses {want} canaries")

    def screened(self, gamma: float) -> ScreenedCorpus:
        """The corpus through π at γ; kept in the work folder."""
        import taciturn as tt
        from taciturn.auditing.canaries.templates import plant
        from taciturn.screening import pipeline
        from taciturn.screening.corpus.manifest import MANIFEST
        from taciturn.text.readers import Corpus

        given = (
            "" if self.inputs.data is None else f"-{sha256(str(self.inputs.data.resolve()).encode()).hexdigest()[:8]}"
        )
        folder = self.work.path("screened", f"{self.data}-{self.inputs.size}-{self.inputs.seed}-{gamma:g}{given}")
        if not (folder / MANIFEST).exists():
            canaries = self.canaries
            documents = plant(self.documents("train"), canaries.template, canaries.secrets, canaries.copies, 7)
            pipeline.screen(
                Corpus.from_documents(documents), self.policy, tt.policy("conservative"), unit="turn", miss_rate=gamma,
                miss_seed=self.miss_seed(gamma), out=folder,
            )  # fmt: skip
        return tt.load_screened(folder)
