"""The labels file: sampled records and the secrets a person marked in them, one JSON object a line.

It holds text, so it is written with mode 0600. A line carries the digest of its text: spans are offsets into exactly that
text, and into nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from taciturn.errors import DataError, MismatchError, nearest
from taciturn.text.atomic import write_bytes

Population = Literal["all", "public", "private"]
SIMPLE = "simple"
"""The one stratum of a simple random sample."""


class LabelSpan(BaseModel):
    """A secret, ``text[start:end]`` in code points of the line's text. label: what kind it is; never the secret itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: int = Field(ge=0)
    end: int = Field(gt=0)
    label: str = Field(default="secret", min_length=1, max_length=40)


class Line(BaseModel):
    """One sampled record.

    spans: what a person marked (for corrections: what π found, to be corrected). label_status: "todo" until someone looked,
    then "done"; "skip" if they could not tell. part: where screening put the record. stratum, stratum_records: what was
    drawn from, and how many records that is; records: of the whole population. weight: records this one stands for.
    population: what was sampled. seed: that gave the draw. salt: makes the identity of corrections unguessable.
    redacted: what training reads.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text: str = Field(repr=False)
    redacted: str | None = Field(default=None, repr=False)
    spans: Annotated[tuple[LabelSpan, ...], Field(repr=False)] = ()
    label_status: Literal["todo", "done", "skip"] = "todo"
    part: Literal["public", "private"]
    stratum: str = SIMPLE
    stratum_records: int = Field(ge=1)
    records: int = Field(ge=1)
    weight: float = Field(gt=0)
    population: Population = "all"
    seed: int
    salt: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    text_digest: str

    @model_validator(mode="after")
    def _spans_lie_in_the_text(self) -> Self:
        if digest(self.text) != self.text_digest:
            raise ValueError("its text is not the one that was sampled; spans index the sampled text only")
        for span in self.spans:
            if not span.start < span.end <= len(self.text):
                raise ValueError(f"span {span.start}:{span.end} is empty or outside its {len(self.text)} characters")
            if not self.text[span.start : span.end].strip():
                raise ValueError(f"span {span.start}:{span.end} marks nothing but blanks")
        return self

    def agrees_with(self, original: str) -> None:
        """Raises MismatchError unless ``original`` is the text this line's spans index."""
        if original != self.text:
            raise MismatchError(
                f"record '{self.id}' has another text in this screened corpus than in the labels file; "
                "draw a new sample, or name the folder the sample came from"
            )


def digest(text: str) -> str:
    """BLAKE2b-128 of a text. It stands beside the text; never store it without."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def counted(lines: Sequence[Line]) -> list[Line]:
    """The lines that a bound is of: those somebody looked at, and those above one of them that are still to do, as ones that
    could not be judged. What is passed over may be passed over for what it says; lines below the last one are not yet drawn.
    """
    last = max((i for i, line in enumerate(lines) if line.label_status != "todo"), default=-1)
    return [
        line.model_copy(update={"label_status": "skip"}) if line.label_status == "todo" else line
        for line in lines[: last + 1]
    ]


def write(path: Path, lines: Iterable[Line]) -> None:
    """Write a labels file, mode 0600."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(orjson.dumps(line.model_dump(mode="json", exclude_none=True)) + b"\n" for line in lines)
    write_bytes(path, data, mode=0o600)


def read(path: Path) -> list[Line]:
    """Read a labels file; raises DataError naming the line, never quoting it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path.name}: cannot be read ({type(error).__name__}); write one with: taciturn sample"
        ) from None
    lines = [
        _line(raw, f"{path.name}, line {number}") for number, raw in enumerate(data.split(b"\n"), 1) if raw.strip()
    ]
    if not lines:
        raise DataError(f"{path.name}: no line in it; write a sample with: taciturn sample")
    seen: set[str] = set()
    for line in lines:
        if line.id in seen:
            raise DataError(f"{path.name}: record '{line.id}' is there twice; keep one line of it")
        seen.add(line.id)
    _one_draw(lines, path.name)
    return lines


def _line(raw: bytes, where: str) -> Line:
    try:
        return Line.model_validate(orjson.loads(raw))
    except orjson.JSONDecodeError:
        raise DataError(f"{where}: not a JSON object") from None
    except ValidationError as error:
        first = max(error.errors(include_input=False, include_url=False), key=lambda e: e["type"] == "extra_forbidden")
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            names = LabelSpan.model_fields if key.startswith("spans.") else Line.model_fields
            raise DataError(f"{where}: unknown key; {nearest(key.rpartition('.')[2], names)}") from None
        says = first["msg"].removeprefix("Value error, ")
        raise DataError(f"{where}: {f'{key}: ' if key else ''}{says[:1].lower()}{says[1:]}") from None


def _one_draw(lines: Sequence[Line], name: str) -> None:
    """All lines must come from one sample: weights of two samples do not add up."""
    for what in ("records", "population", "seed"):
        if len({getattr(line, what) for line in lines}) > 1:
            raise DataError(f"{name}: lines of different samples ('{what}' differs); measure each file by itself")
    sizes: dict[str, int] = {}
    for line in lines:
        if sizes.setdefault(line.stratum, line.stratum_records) != line.stratum_records:
            raise DataError(f"{name}: stratum '{line.stratum}' has two sizes; lines of different samples are mixed")
