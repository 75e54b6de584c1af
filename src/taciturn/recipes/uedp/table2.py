"""UeDP, Table II: sentences, users and sensitive sentences of the data. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from taciturn.errors import UsageError
from taciturn.recipes import simulated_news
from taciturn.recipes.at_hand import Texts, at_hand
from taciturn.recipes.cells import Row, Work
from taciturn.recipes.recipe import Cell, Inputs, Recipe, Results, Table
from taciturn.recipes.uedp import data
from taciturn.recipes.uedp.paper import PUBLISHED, Published
from taciturn.text.document import MASK

RECIPE = Recipe(
    name="uedp-table2",
    paper="uedp",
    item="Table II",
    title="breakdown of the data sets",
    asks="How many users and sensitive sentences are there, and where does a corpus stand on a guarantee in k?",
    paper_setting="CONLL-2003 with its annotated entities; AG and SEC filings with spaCy's.",
    our_setting="The same counts of the sets that are in --data (AG News, and as stand-ins Wikigold for CONLL-2003, "
        "CUAD's contracts and loan agreements for the filings); else of made-up news. Medium: the first 5,000 sentences "
        "of each. Beside them what `uedp` needs to know: holders of an entity, and k of a removal.",
    differs=(
        "CONLL-2003 may not be passed on and the filings are the authors' own; where they are not given, stand-ins "
        "are counted.",
        "Users of the usual AG file are runs of ten articles, as it names no source.",
        "A text of up to 2,000 characters is counted as one sentence: an article of AG News is its title and its "
        "description, which hold more entities than a sentence does.",
        "Whether two mentions are one entity: here equal up to case, accents and white space.",
    ),
    published=(
        Table(
            "Table II",
            ("data set", "vocabulary", "sentences", "users", "Org", "Loc", "Person", "Misc", "GPE", "PII", "All"),
            tuple(
                (p.name, p.vocabulary, p.sentences, p.users,
                 *(p.sensitive.get(c) for c in ("Org", "Loc", "Person", "Misc", "GPE", "PII", "All")))
                for p in PUBLISHED.values()
            ),
            "Table II",
            "Sensitive sentences by category.",
        ),
    ),
    needs="the data sets in a folder given with --data, and spaCy with an English pipeline",
    medium="conll2003 or wikigold, agnews, contracts and sec_contracts, or some of them",
)  # fmt: skip

STAND_INS = (
    ("CONLL-2003", ("conll2003", "wikigold"), "CONLL-2003"),
    ("AG", ("agnews",), "AG"),
    ("SEC", ("contracts",), "SEC"),
    ("SEC", ("sec_contracts",), "CONLL-2003"),
)
"""Sets of the paper, what is read for each, the first that is there, and the set whose categories are counted in it: loan
agreements are annotated as CoNLL-2003 is."""

OWN = ("CONLL-2003 (conll2003)", "AG (agnews)")
"""Not stand-ins: the printed counts are of other rows of the same set."""
NUMBERS = ("sensitive", "entities", "holders", "median", "p95", "largest")


def run(inputs: Inputs, work: Work) -> Results:
    """A row for each set there is, by category."""
    made: list[tuple[str, Published | None, Sequence[Any], str]] = []
    if inputs.data is None:
        users, each = inputs.pick((8, 5), (200, 12), (200, 12))
        made.append(("made-up news", None, simulated_news.write(users, each, inputs.seed), ""))
    else:
        made = [found for name, loaders, like in STAND_INS if (found := _there(name, loaders, like, inputs, work))]
        if not made:
            names = ", ".join(loader for _, loaders, _ in STAND_INS for loader in loaders)
            where = inputs.data.resolve().name
            raise UsageError(
                f"{where}: expected one of {names} in it, found none; give --data the folder that holds them"
            )
    rows: list[tuple[Cell, ...]] = []
    shares: list[str] = []
    for name, published, documents, _ in made:
        about = work.cell(
            {
                "recipe": RECIPE.name,
                "set": name,
                "size": inputs.size,
                "seed": inputs.seed,
                "data": inputs.data.resolve().name if inputs.data else "",
            },
            partial(counted, documents, published),
        )
        first = (name, about["vocabulary"], about["sentences"], about["users"])
        for category in (*categories(published), "all"):
            found = about["categories"][category]
            rows.append((*first, category, *(found[key] for key in NUMBERS)))
            first = ("", None, None, None)
        if published is not None and name in OWN:
            shares.append(beside(name, published, about))
    columns = ("data set", "vocabulary", "sentences", "users", "category", "sensitive sentences", "entities", "holders",
               "k, median", "k, 95 %", "k, largest")  # fmt: skip
    most = max((row for row in rows), key=lambda row: int(row[-1] or 0))
    note = "holders: users of the entity that most users hold; k: units that removing a user and an entity takes out."
    return Results(
        setting=" ".join(
            filter(None, (f"{name}: {len(documents):,} sentences. {said}" for name, _, documents, said in made))
        ),
        tables=(Table("Counts", columns, tuple(rows), note=note),),
        says=(
            *shares,
            "Table II has what the paper's accounting looks at, the share of sensitive sentences. What holds "
            "depends on numbers it does "
            f"not have: here an entity has up to {max(int(r[7] or 0) for r in rows)} holders, and a removal takes "
            f"out up to "
            f"{most[-1]} units.",
        ),
    )


def beside(name: str, published: Published, about: Row) -> str:
    """Shares of sensitive sentences beside those that Table II prints."""
    found, n = about["categories"], about["sentences"]
    each = (
        f"{c} {100 * found[c]['sensitive'] / n:.0f} % (printed {100 * published.share(c):.0f} %)"
        for c in categories(published)
    )
    return f"{name}, sentences that hold an entity: {', '.join(each)}."


def categories(published: Published | None) -> tuple[str, ...]:
    return simulated_news.CATEGORIES if published is None else published.categories


def counted(documents: Sequence[Any], published: Published | None) -> Row:
    """Counts of a set, by category and for all together."""
    from taciturn.mechanisms.corpus import mentions_in
    from taciturn.training.units.deletions import deletion_quantiles, holders
    from taciturn.training.units.grouping import by_user_entity

    row: Row = {
        "vocabulary": len({word for d in documents for word in d.text.split()}),
        "sentences": len(documents),
        "users": len({d.user for d in documents}),
        "categories": {},
    }
    for category in (*categories(published), "all"):
        screened = data.screened(tuple(documents), category, published)
        row["categories"][category] = dict.fromkeys(NUMBERS, 0)
        if not any(MASK in text for text in screened.texts("redacted")):
            continue
        m = mentions_in(screened)
        at = deletion_quantiles(by_user_entity(m))
        row["categories"][category] = {
            "sensitive": int((~m.extended).sum()), "entities": m.detected, "holders": holders(m), "median": at.median,
            "p95": at.p95, "largest": at.largest,
        }  # fmt: skip
    return row


def _there(
    name: str, loaders: tuple[str, ...], like: str, inputs: Inputs, work: Work
) -> tuple[str, Published | None, Sequence[Any], str] | None:
    """The set, or what stands in for it, if the folder has it."""
    from taciturn.data.loaders import load
    from taciturn.errors import DataError

    def read(loader: str) -> Texts:
        documents, note = data.sentences(load(loader, inputs.data or "", "train"), most)
        return Texts(documents, (), note=note)

    most = data.SENTENCES["medium"][0] if inputs.size == "medium" else inputs.pick(60, 2000, 10**9)
    for loader in loaders:
        try:
            found = at_hand(loader, inputs, work, partial(read, loader))
        except DataError:
            continue
        return f"{name} ({loader})", PUBLISHED[like], found.train, found.note
    return None
