"""A small made-up press: reporters who write one-sentence news on four topics about people, organisations and places.

It stands in for CoNLL-2003, AG News and filings where a user names no data: several reporters write about one entity, some
entities are written about often and most rarely, and some sentences are about none. Sentences and names are our own.
"""

from __future__ import annotations

from random import Random

from taciturn.data.people import FIRST, LAST, STREETS
from taciturn.text.document import Document
from taciturn.text.spans import Span

TOPICS = ("World", "Sports", "Business", "Sci/Tech")
CATEGORIES = ("person", "org", "loc", "misc")

SENTENCES = {
    "World": (
        "Voters in {loc} go to the polls this weekend.",
        "{person} called for talks after the border closed.",
        "A court in {loc} freed {person} on bail.",
        "{misc} soldiers left the valley before dawn.",
        "Ministers meet {person} in {loc} to discuss the treaty.",
        "Heavy rain drove thousands out of their homes.",
        "The cease-fire held for a second night.",
    ),
    "Sports": (
        "{person} scored twice as {loc} won the cup.",
        "The {misc} striker {person} limped off before the break.",
        "{loc} beat the visitors in extra time.",
        "{person} will coach the {misc} side next season.",
        "The match was stopped twice because of fog.",
        "Runners trained all winter for the final.",
    ),
    "Business": (
        "Shares of {org} fell after weak sales.",
        "{org} agreed to buy {org} for an undisclosed sum.",
        "{person} resigned as chief of {org}.",
        "{org} will open a plant near {loc}.",
        "Profits rose as fuel prices eased.",
        "Retailers expect a slow quarter.",
    ),
    "Sci/Tech": (
        "{org} recalled a battery that may overheat.",
        "Engineers at {org} built a faster chip in {loc}.",
        "{person} found a comet with a small telescope.",
        "A {misc} probe sent back its first pictures.",
        "The update closes a hole in the browser.",
        "Researchers grew crystals that store heat.",
    ),
}  # fmt: skip

_FIRMS = ("Holdings", "Industries", "Partners", "Systems", "Foods", "Airways")
_TOWNS = ("ville", "ford", "ton", "mouth", "stead")


def write(
    users: int, sentences: int, seed: int, split: str = "train", entities: int = 40, kinds: int | None = None
) -> list[Document]:
    """``sentences`` news by each of ``users`` reporters; splits of a seed share entities, not reporters.

    entities: of each category; the n-th is named in proportion to 1/n. kinds: of each topic the first so many kinds of
    sentence, or all. Every third reporter has one topic only.
    """
    world = Random(f"press/{seed}")  # a text seed goes through SHA-512, not through hash()
    names = {category: _names(world, category, entities) for category in CATEGORIES}
    weights = [1 / n for n in range(1, entities + 1)]
    rng = Random(f"press/{seed}/{split}")
    made: list[Document] = []
    for user in range(users):
        beat = (rng.choice(TOPICS),) if user % 3 == 0 else TOPICS
        for _ in range(sentences):
            topic = rng.choice(beat)
            text = ""
            gold: list[Span] = []
            for literal, slot in _parts(rng.choice(SENTENCES[topic][:kinds])):
                text += literal
                if slot:
                    name = rng.choices(names[slot], weights)[0]
                    gold.append(Span(len(text), len(text) + len(name), slot, 1.0, "gold"))
                    text += name
            name = f"{split}-{len(made)}"
            made.append(Document(name, text, user=f"{split}-reporter-{user}", gold=tuple(gold), label=topic))
    return made


def _parts(template: str) -> list[tuple[str, str]]:
    """(literal, slot after it or "") pieces."""
    pieces = template.replace("{", "\0").replace("}", "\0").split("\0")
    return list(zip(pieces[::2], [*pieces[1::2], ""], strict=True))


def _names(rng: Random, category: str, count: int) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < count:
        last, town = rng.choice(LAST), rng.choice(STREETS) + rng.choice(_TOWNS)
        named = {"person": f"{rng.choice(FIRST)} {last}", "org": f"{last} {rng.choice(_FIRMS)}", "loc": town}
        made[named.get(category, f"{town}ian")] = None
    return list(made)
