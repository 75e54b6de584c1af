"""taciturn synthesize: text of a certified model, as a corpus to share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json, Verbose, comma, joined
from taciturn.cli.reading import READ, Reading

if TYPE_CHECKING:
    from taciturn.synthesis.synthesize import Synthesis


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Quality:
    """A page on how good the texts are, made from private text: for the owner alone."""

    quality: Annotated[
        Path | None,
        Parameter(help="folder (mode 0700) for a page on the texts, for you alone"),
    ] = None
    held_out: Annotated[
        tuple[str, ...],
        Parameter(group="Quality page", help="original text the model never saw; may be repeated", negative=""),
    ] = ()
    training: Annotated[
        tuple[str, ...],
        Parameter(group="Quality page", help="text the model was trained on: what was copied from it", negative=""),
    ] = ()
    judge: Annotated[
        Path | None, Parameter(group="Quality page", help="folder of a public model, for perplexity and features")
    ] = None

    def check(self, output: Path) -> None:
        """Raise UsageError before any work for what cannot be measured, or would be shared."""
        from taciturn.errors import UsageError

        if self.quality is None:
            if self.held_out or self.training or self.judge:
                raise UsageError("--held-out, --training and --judge are for the page of --quality FOLDER: name it")
            return
        if not self.held_out:
            raise UsageError("--quality compares with original text the model never saw: name it with --held-out")
        from taciturn.reporting.quality import checked
        from taciturn.synthesis.quality.measure import check_installed

        check_installed()
        checked(self.quality, output)

    def write(self, output: Path, reading: Reading, seed: int) -> None:
        if self.quality is None:
            return
        from taciturn.cli.show import talk
        from taciturn.reporting.quality import sentences, write
        from taciturn.synthesis.quality.measure import measure

        talk.print("comparing with private text ...")
        training = reading.corpus(self.training).documents() if self.training else ()
        measured = measure(output, reading.corpus(self.held_out).documents(), training, self.judge, seed)
        path = write(self.quality, output, measured)
        for sentence in sentences(measured):
            talk.print(sentence)
        talk.print(f"wrote {path} (mode 0600): for you alone, no certificate covers it")


QUALITY = Quality()


def synthesize(
    run: Annotated[Path, Parameter(help="a certified run's folder, or an exported model's", validator=RUN_THERE)],
    *,
    n: Annotated[int, Parameter(name=["-n", "--n"], help="texts to write")],
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the folder to write")],
    seed: Annotated[int, Parameter(help="of what is drawn")] = 0,
    labels: Annotated[str, Parameter(help="comma-separated, as texts were trained to begin with")] = "",
    template: Annotated[str, Parameter(group="Drawing", help="how a text begins, with --labels")] = "{label}: ",
    prompts: Annotated[Path | None, Parameter(help="beginnings of texts, one a line; public text only")] = None,
    skeletons: Annotated[Path | None, Parameter(help="texts with masks to fill, one a line; public text only")] = None,
    policy: Annotated[
        tuple[str, ...],
        Parameter(name=["--policy", "-p"], help="drop texts in which it marks anything; may be repeated", negative=""),
    ] = (),
    keep_copies: Annotated[
        bool, Parameter(group="Drawing", help="keep texts that were written before", negative="")
    ] = False,
    max_tokens: Annotated[int, Parameter(help="of a text, at most")] = 128,
    temperature: Annotated[float, Parameter(group="Drawing", help="1 as the model was trained")] = 1.0,
    top_k: Annotated[int, Parameter(group="Drawing", help="only the k likeliest tokens; 0 for all")] = 0,
    top_p: Annotated[
        float, Parameter(group="Drawing", help="only the likeliest tokens that hold this probability")
    ] = 0.95,
    batch: Annotated[int, Parameter(group="Drawing", help="texts drawn at once")] = 32,
    kind: Annotated[
        Literal["jsonl", "parquet"], Parameter(name="--as", group="Drawing", help="files of this format")
    ] = "jsonl",
    allow: Annotated[
        tuple[Literal["uncertified", "not-for-release"], ...],
        Parameter(
            help="of such a model all the same",
            negative="",
        ),
    ] = (),
    quality: Quality = QUALITY,
    reading: Reading = READ,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Write a corpus of text that a certified model makes up. The certificate travels with it.

    Given again, the command goes on where it stopped, or writes the quality page of a finished corpus.

    Example: `taciturn synthesize runs/mail -n 10000 -o synthetic/ -p pii`
    """
    from taciturn.cli.show import as_json
    from taciturn.synthesis.settings import Settings
    from taciturn.synthesis.synthesize import read_openings
    from taciturn.synthesis.synthesize import synthesize as write

    quality.check(output)
    settings = Settings(
        seed=seed,
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        batch=batch,
        format=kind,
        keep_copies=keep_copies,
        labels=tuple(comma(labels)),
        template=template,
        policy=joined(policy) or "",
        **read_openings(run, prompts=prompts, skeletons=skeletons),
    )
    with _display(n) as notify:
        done = write(run, n, output, settings, allow=allow, notify=notify)
    _say(done, verbose, result=not json)
    quality.write(output, reading, seed)
    if json:
        as_json({"folder": str(output), **done.manifest.model_dump(mode="json")})


def _say(done: Synthesis, verbose: bool, result: bool) -> None:
    """result: whether the claims are what standard output is for."""
    from taciturn.cli.show import claims as show_claims
    from taciturn.cli.show import talk

    counts, claims = done.manifest.counts, done.manifest.claims
    if done.again:
        talk.print(f"{done.folder} has these {done.manifest.number:,} texts already")
        return
    left = f"{counts.copies:,} copies, {counts.marked:,} marked, {counts.empty:,} empty"
    talk.print(f"wrote {done.manifest.number:,} texts to {done.folder}/data ({counts.drawn:,} drawn; left out: {left})")
    if counts.cut > counts.kept / 2:
        talk.print(f"{counts.cut:,} of {counts.kept:,} end at --max-tokens and not of themselves")
    for reason in claims["reasons"]:
        talk.print(f"not for release: {reason}")
    if result:
        show_claims(claims["words"], verbose)
    if claims["certified"]:
        talk.print(
            f"{done.folder}/README.md says it in full; to check it: taciturn verify {done.folder} --without-weights"
        )


@contextmanager
def _display(number: int) -> Iterator[Callable[[int, int], None]]:
    """Texts kept of those wanted, how many were drawn, time left; plain lines when not a terminal."""
    import time

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from taciturn.cli.show import LINE_EVERY, talk

    if not talk.is_terminal:
        last = time.monotonic()

        def line(kept: int, drawn: int) -> None:
            nonlocal last
            if time.monotonic() - last >= LINE_EVERY:
                last = time.monotonic()
                talk.print(f"synthesize: {kept:,} of {number:,} texts kept, {drawn:,} drawn")

        yield line
        return
    columns: tuple[Any, ...] = (
        *(TextColumn("synthesize"), BarColumn(bar_width=24), MofNCompleteColumn()),
        *(TextColumn("{task.fields[note]}"), TimeRemainingColumn(compact=True)),
    )
    with Progress(*columns, console=talk) as progress:
        task = progress.add_task("", total=number, note="")
        yield lambda kept, drawn: progress.update(task, completed=min(kept, number), note=f"{drawn:,} drawn")
