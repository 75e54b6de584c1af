"""The routes of the review: records out, changes in. Answers carry text; errors never do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from taciturn.errors import TaciturnError
from taciturn.reviewing.context import Around
from taciturn.reviewing.desk import Change, Desk, Mark, Stale, Undo, revision
from taciturn.reviewing.offsets import Offsets
from taciturn.screening.labels import Line
from taciturn.screening.measuring.preview import runs

Mode = Literal["labels", "corrections"]

PAGE = Path(__file__).parent / "page"
_CHANGE: TypeAdapter[Change] = TypeAdapter(Change)


def application(
    desk: Desk,
    mode: Mode,
    reviewer: str,
    bound: Callable[[], dict[str, Any]] | None,
    context: Mapping[str, Around] | None = None,
    guidelines: str | None = None,
) -> Starlette:
    """The page over one labels file. bound: gives the bound reached so far; None if it is not to be shown. context: what
    stands around each record, by id. guidelines: what a secret is; the page's own if not given."""
    context, guidelines = context or {}, guidelines or (PAGE / "guidelines.txt").read_text("utf-8")

    def state() -> dict[str, Any]:
        return {
            "mode": mode,
            "reviewer": reviewer,
            "file": desk.path.name,
            "kinds": desk.kinds,
            "total": len(desk.lines),
            "counts": desk.counts(),
            "bound": bound is not None,
            "changes": desk.changes,
        }

    def answer(at: int) -> Response:
        return _json({"record": shown(at), "state": state()})

    def shown(at: int) -> dict[str, Any]:
        line = desk.lines[at]
        return page_line(line, at, desk.next_todo(at), context.get(line.id, Around()))

    def place(request: Request) -> int:
        at: int = request.path_params["at"]
        if at >= len(desk.lines):
            raise HTTPException(404, f"there are {len(desk.lines)} records, counted from 0")
        return at

    async def start(_: Request) -> Response:
        first = desk.next_todo()
        said = [[words, escaped] for words, escaped in runs(guidelines)]
        return _json({"first": 0 if first is None else first, "guidelines": said, "state": state()})

    async def record(request: Request) -> Response:
        return answer(place(request))

    async def change(request: Request) -> Response:
        at = place(request)
        try:
            asked = _CHANGE.validate_python(orjson.loads(await request.body()))
        except orjson.JSONDecodeError:
            raise HTTPException(400, "the body is not JSON") from None
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            raise HTTPException(400, f"the change is not one: {first['type']}") from None
        try:
            if isinstance(asked, Undo):
                return answer(await run_in_threadpool(desk.undo, asked.changes))
            start = end = 0
            if isinstance(asked, Mark):
                offsets = Offsets.of(desk.lines[at].text)
                start, end = offsets.to_point(asked.start), offsets.to_point(asked.end)
            await run_in_threadpool(desk.change, at, asked, start, end)
        except Stale as error:
            return _json({"error": str(error), "record": shown(at), "state": state()}, 409)
        return answer(at)

    async def reached(_: Request) -> Response:
        return _json({} if bound is None else await run_in_threadpool(bound))

    def file(name: str) -> Route:
        async def send(_: Request) -> Response:
            return FileResponse(PAGE / name)

        return Route("/" if name == "review.html" else f"/{name}", send)

    return Starlette(
        routes=[
            *map(file, ("review.html", "review.js", "review.css")),
            Route("/state", start),
            Route("/records/{at:int}", record, methods=["GET"]),
            Route("/records/{at:int}", change, methods=["POST"]),
            Route("/bound", reached),
        ],
        exception_handlers={HTTPException: _refusal, TaciturnError: _refusal},
    )


def page_line(line: Line, at: int, todo: int | None, around: Around) -> dict[str, Any]:
    """A line for the page, offsets in UTF-16 units. runs: [what to show, units it stands for, whether it is an escape]."""
    offsets = Offsets.of(line.text)
    return {
        "at": at,
        "next_todo": todo,
        "id": line.id,
        "status": line.label_status,
        "revision": revision(line),
        "units": offsets.units[-1],
        "runs": [
            (said, (2 if said.startswith("\\U") else 1) if escaped else Offsets.of(said).units[-1], escaped)
            for said, escaped in runs(line.text)
        ],
        "redacted": None if line.redacted is None else [(said, escaped) for said, escaped in runs(line.redacted)],
        "before": [list(runs(text)) for text in around.before],
        "after": [list(runs(text)) for text in around.after],
        "spans": [
            {"start": offsets.to_units(s.start), "end": offsets.to_units(s.end), "kind": s.label} for s in line.spans
        ],
    }


def _json(value: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


async def _refusal(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return _json({"error": error.detail}, error.status_code)
    return _json({"error": str(error)}, 400)
