"""JFT, Table 1: what the four detectors leave of a sentence. Nothing is trained; takes spaCy."""

from __future__ import annotations

from functools import partial

from taciturn.recipes import texts
from taciturn.recipes.cells import Row, Work
from taciturn.recipes.jft.paper import LEVELS
from taciturn.recipes.recipe import Inputs, Recipe, Results, Table
from taciturn.recipes.verdicts import computed

SENTENCES = (
    "Did you hear Alice is getting divorced?",
    "What are you going to do about the custody of the kids?",
    "Please send the invoice to Martin Keller at Northwind by Friday.",
    "My landlord raised the rent twice and I cannot sleep anymore.",
    "The doctor wrote that the lump has to come out next week.",
    "It rains.",
)
"""The paper's two (from Brown et al. 2022), and ours."""

RECIPE = Recipe(
    name="jft-table1",
    paper="jft",
    item="Table 1",
    title="secret detectors of four levels",
    asks="What does each of the four detectors hide of sentences whose secret is a name, and of some whose secret "
        "is a fact?",
    paper_setting="spaCy's named entities (four kinds, then all 18), then also proper nouns, pronouns, subjects and "
        "objects, then "
    "also verbs; two sentences of a dialogue about a divorce.",
    our_setting="The same two sentences and four of our own, through the policies `spacy:low-entity` to "
        "`spacy:high-contextual`.",
    differs=(
        "The mask is one `<MASK>` whatever stood there, and adjacent masks merge; the paper's table shows typed "
        "masks, its "
        "training uses one mask too (A.2).",
        "Redaction is repeated until nothing changes, so that what is detected has ε = 0 (docs/guarantees.md §2).",
        "spaCy's pipeline is the small English one that is installed; the paper does not name its own.",
    ),
    published=(
        Table(
            "What the text says",
            ("sentence", "detector", "left"),
            (
                ("1", "low entity", "Did you hear <PERSON> is getting divorced?"),
                ("1", "low contextual", "no useful information"),
                ("1 and 2", "high contextual", "nothing can be learned from either"),
            ),
            "section 4",
        ),
    ),
)  # fmt: skip


def run(inputs: Inputs, work: Work) -> Results:
    """One row a sentence and level."""
    sentences = inputs.pick(SENTENCES[:2], SENTENCES, SENTENCES)
    found = {
        level: work.cell(
            {"recipe": RECIPE.name, "level": level, "sentences": list(sentences)}, partial(_left, level, sentences)
        )
        for level in LEVELS
    }
    rows = tuple(
        (f"{number}. {sentence}", level, found[level]["left"][number - 1])
        for number, sentence in enumerate(sentences, 1)
        for level in LEVELS
    )
    shares = tuple((level, 100 * found[level]["share"]) for level in LEVELS)
    named = found["low-entity"]["left"][0]
    wide = found["high-contextual"]["left"]
    words = sorted({word for text in wide[:2] for word in text.replace("<MASK>", " ").split() if word.isalpha()})
    telling = sorted({"divorced", "custody", "kids"} & set(words))
    return Results(
        setting=f"All of it: {len(sentences)} sentences; {found['low-entity']['pipeline']}.",
        tables=(
            Table("What is left", ("sentence", "detector", "redacted"), rows),
            Table("Masked", ("detector", "words, %"), shares),
        ),
        says=(
            computed(
                "<MASK>" in named and "divorced" in named,
                "the low-entity detector hides the name and nothing of the divorce.",
                f"with this pipeline the low-entity detector leaves of the first sentence: {named}",
            ),
            computed(
                not telling,
                f"at the highest level the two sentences keep only words such as {', '.join(words[:5])}.",
                f"at the highest level {', '.join(telling)} is still there.",
            ),
            "A detector finds what a model of the language takes for a name, a subject or a verb; what it misses is "
            "not in the "
            "table, and only labels can tell (recall, docs/guarantees.md §3.3).",
        ),
    )


def _left(level: str, sentences: tuple[str, ...]) -> Row:
    import taciturn as tt
    from taciturn.screening.pipeline import screen
    from taciturn.screening.policies.pipelines import pipeline
    from taciturn.text.document import Document
    from taciturn.text.readers import Corpus

    corpus = Corpus.from_documents([Document(str(n), text) for n, text in enumerate(sentences)])
    screened = screen(corpus, tt.policy(f"spacy:{level}"), tt.policy("all-private"), unit="document", dedup="none")
    used = pipeline()
    return {
        "left": screened.texts("redacted"),
        "share": texts.redacted_share(screened),
        "pipeline": f"{used.name} {used.version}",
    }
