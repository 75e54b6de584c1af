"""What a suggested project leaves out, and why: the same sentences on the screen and in the file."""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.project.inspect_files import UNFIELDED, Look
from taciturn.project.settings import Settings

FEW = 1000
"""With fewer documents, canaries would be a visible share of the corpus, and hardly a value stands in enough records for a
table of common ones (docs/how-to/learned-values.md)."""
SIDE = 20
"""Users, or documents where no user is named, that a membership attack needs on either side of the split
(auditing/membership/statistics.py); with fewer its verdict is "inconclusive"."""
FEW_USERS = 20


def left_out(look: Look, settings: Settings) -> dict[str, list[str]]:
    """Sentences by the table of project.toml that they are about."""
    found = {
        "read": [*_columns(look, settings), *_users(look, settings)],
        "split": list(_split(look, settings)),
        "canaries": list(_canaries(look, settings)),
        "certify": [_labels(look)],
    }
    return {table: said for table, said in found.items() if said}


def owners(look: Look) -> int:
    """What the split draws: users where they are named, documents where they are not. Users are those that were seen."""
    return look.users if look.users is not None else look.about


def _columns(look: Look, settings: Settings) -> Iterator[str]:
    read = {part.strip() for part in str(settings.read.text).split(",")}
    others = [name for name in look.texts if name not in read]
    if others and not set(look.formats) <= set(UNFIELDED):
        joined = ",".join([*sorted(read), *others[:1]]) if len(read) == 1 else ""
        yield (
            f"Left out: the text of {', '.join(others[:6])}, as one field is the text. It is neither trained on nor "
            f'screened; text = "{joined}" joins two.'
        )
    if look.label is not None and settings.read.label is None:
        yield f"Left out: the labels in {look.label}, which only a classifier learns (label and plan.model.task)."


def _users(look: Look, settings: Settings) -> Iterator[str]:
    if look.users is None and settings.read.user is None:
        may = f" These may say: {', '.join(look.maybe_users[:4])} (user = …)." if look.maybe_users else ""
        yield f"Left out: users. No field was taken for one, so nothing can be promised about a person.{may}"
    elif look.users is not None and look.users < FEW_USERS:
        yield (
            f"Few users: {look.users}. One of them is a large share of the text, so noise that hides a whole user leaves "
            "little to learn."
        )


def _split(look: Look, settings: Settings) -> Iterator[str]:
    number, share = owners(look), settings.split.held_out
    what = "users" if look.users is not None else "documents"
    if "membership" in settings.audit.attacks:
        yield f"{round(share * number):,} of {number:,} {what} are kept out: at least {SIDE}, which membership attacks need."
        return
    kept = f"{round(share * number)} are kept out to measure utility" if share else "none is kept out"
    yield (
        f"Left out: the membership attack. It needs {SIDE} {what} on each side, and at most a third of {number} can be kept "
        f"out; {kept}."
    )


def _canaries(look: Look, settings: Settings) -> Iterator[str]:
    if not settings.canaries.number:
        yield (
            f"Left out: canaries. There are about {look.about:,} documents; below {FEW:,} forty planted ones would be a "
            'visible share. To plant all the same: number = 10, and "exposure" in audit.attacks.'
        )


def _labels(look: Look) -> str:
    if look.spans:
        where = " in its turns" if look.spans_in_turns else ""
        return (
            f"Annotated secrets are read{where} ({look.annotated:,} in {look.documents:,} documents): they say what the "
            "policies miss, and are never given to them."
        )
    return (
        "Left out: labels. Without any, nobody knows what the policies miss, and the verdict on the model is at best "
        '"not yet": taciturn sample, review and recall, then recall = "recall.json".'
    )
