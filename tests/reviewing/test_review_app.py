"""Every route, who is refused, what a bad request gets, and that the bound is `taciturn recall`'s."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="starlette is not installed (extra 'review')")
pytest.importorskip("httpx", reason="httpx is not installed: the routes are not asked")
from starlette.testclient import TestClient

from taciturn.errors import UsageError
from taciturn.reviewing.app import application
from taciturn.reviewing.bound import Reached
from taciturn.reviewing.context import LONGEST, RECORDS, around
from taciturn.reviewing.desk import Desk, alone
from taciturn.reviewing.guard import HEADERS, Guard
from taciturn.screening import policy, screen
from taciturn.screening.corpus.screened import load
from taciturn.screening.labels import read, write
from taciturn.screening.measuring.sample import draw
from taciturn.text.document import Document
from taciturn.text.readers import Corpus

KINDS = ("name", "phone", "secret", "unsure")
PORT = 8765
HOME = f"http://127.0.0.1:{PORT}"
SECRETS = ("(555) 010-7788", "010-7788", "Rhonda", "Quillfeather", "sesame")


@dataclass
class Page:
    """A browser that was shown the token."""

    client: TestClient
    guard: Guard
    desk: Desk
    folder: Path

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(path, **options)

    def post(self, at: int, **change: Any) -> Any:
        revision = self.get(f"/records/{at}").json()["record"]["revision"]
        return self.client.post(f"/records/{at}", json={"revision": revision} | change)

    def place(self, words: str) -> int:
        return next(i for i, line in enumerate(self.desk.lines) if words in line.text)

    def mark(self, at: int, words: str, kind: str = "name") -> Any:
        text = self.desk.lines[at].text
        start = len(text[: text.index(words)].encode("utf-16-le")) // 2
        return self.post(at, op="add", start=start, end=start + len(words.encode("utf-16-le")) // 2, kind=kind)


@pytest.fixture
def page(corpus: Path, tmp_path: Path) -> Page:
    folder = tmp_path / "screened"
    shutil.copytree(corpus, folder)
    screened = load(folder)
    write(folder / "labels.jsonl", draw(screened, 40, seed=3))
    desk = Desk.open(folder / "labels.jsonl", KINDS)
    reached = Reached.over(desk.lines, screened, policy("phone", "email"), policy("conservative"), 0.95)
    guard = Guard(application(desk, "labels", "", lambda: reached(desk.lines)), PORT)
    client = TestClient(guard, base_url=HOME, follow_redirects=False)
    assert client.get(guard.url).status_code == 200
    return Page(client, guard, desk, folder)


def stranger(page: Page, **options: Any) -> TestClient:
    return TestClient(page.guard, base_url=HOME, **options)


ROUTES = ("/", "/review.js", "/review.css", "/state", "/records/0", "/bound", "/nowhere")


@pytest.mark.parametrize("path", ROUTES)
def test_nobody_gets_in_without_the_token(page: Page, path: str) -> None:
    other = stranger(page)
    for asked in (path, f"{path}?token=", f"{path}?token=x", f"{path}?token={page.guard.token[:-1]}"):
        assert other.get(asked).status_code == 403
    assert other.get(path, headers={"Cookie": f"taciturn-review-{PORT}={page.guard.token}"}).status_code == 403
    assert other.post(path, json={}).status_code == 403
    assert other.options(path, headers={"Origin": "http://evil.example"}).status_code == 403
    assert not other.cookies


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"[::1]:{PORT}", ""]
)
def test_another_name_for_this_address_is_refused(page: Page, host: str) -> None:
    for path in (*ROUTES, f"/?token={page.guard.token}"):
        assert page.get(path, headers={"Host": host}).status_code == 403
    assert page.get("/state", headers={"Host": f"127.0.0.1:{PORT}"}).status_code == 200


def test_the_cookie_and_the_headers(page: Page) -> None:
    entered = stranger(page).get(page.guard.url)
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert page.guard.token not in entered.headers["set-cookie"]
    assert page.guard.token not in entered.text
    for path in ROUTES:
        answer = page.get(path)
        assert {k: answer.headers[k] for k in HEADERS} == HEADERS
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert page.get("/").headers["content-type"].startswith("text/html")
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    html = page.get("/").text
    assert "http" not in html.replace("http-equiv", "")
    assert "style=" not in html


def test_a_page_of_another_port_changes_nothing(page: Page) -> None:
    before = (page.folder / "labels.jsonl").read_bytes()
    body = json.dumps(
        {"revision": page.get("/records/0").json()["record"]["revision"], "op": "status", "status": "done"}
    )
    for headers, code in (
        ({"Origin": "http://127.0.0.1:9999", "Content-Type": "application/json"}, 403),
        ({"Origin": "null", "Content-Type": "application/json"}, 403),
        ({"Origin": HOME, "Content-Type": "text/plain"}, 415),
        ({"Origin": HOME}, 415),
    ):
        assert page.client.post("/records/0", content=body, headers=headers).status_code == code
    assert (page.folder / "labels.jsonl").read_bytes() == before
    good = {"Origin": HOME, "Content-Type": "application/json"}
    assert page.client.post("/records/0", content=body, headers=good).status_code == 200
    assert page.client.post("/records/0", content=b" " * 70_000, headers=good).status_code == 413
    assert page.client.post("/records/0", content=iter([b"{}"]), headers=good).status_code == 411


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (b"{", "not JSON"),
        (b"[]", "the change is not one"),
        ({"op": "erase"}, "union_tag_invalid"),
        ({"op": "status", "status": "perhaps"}, "literal_error"),
        ({"op": "status", "status": "done", "spans": []}, "extra_forbidden"),
        ({"op": "add", "start": "0", "end": 4}, "int_type"),
        ({"op": "add", "start": -1, "end": 4}, "greater_than_equal"),
        ({"op": "add", "start": 0}, "missing"),
        ({"op": "add", "start": 4, "end": 4, "kind": "name"}, "is empty"),
        ({"op": "add", "start": 9, "end": 4, "kind": "name"}, "is empty"),
        ({"op": "add", "start": 0, "end": 9999, "kind": "name"}, "border of a character"),
        ({"op": "add", "start": 1, "end": 9, "kind": "name"}, "border of a character"),  # within the emoji
        ({"op": "add", "start": 2, "end": 3, "kind": "name"}, "blanks"),
        ({"op": "add", "start": 0, "end": 4, "kind": "sesame"}, "kind of secret is unknown"),
    ],
)
def test_a_bad_change_is_refused_and_quoted_nowhere(
    page: Page, change: Any, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    at = page.place("my name is")
    before = (page.folder / "labels.jsonl").read_bytes()
    if isinstance(change, bytes):
        headers = {"Content-Type": "application/json"}
        answer = page.client.post(f"/records/{at}", content=change, headers=headers)
    else:
        answer = page.post(at, **change)
    assert answer.status_code == 400
    assert says in answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert (page.folder / "labels.jsonl").read_bytes() == before
    heard = answer.text + "".join(capfd.readouterr())
    assert not [s for s in SECRETS if s in heard]


def test_records_that_are_not_there(page: Page) -> None:
    for path in ("/records/40", "/records/x", "/records/-1", "/records", "/../labels.jsonl", "/%2e%2e/guard.py"):
        assert page.get(path).status_code == 404
    assert page.client.delete("/records/0", headers={"Content-Type": "application/json"}).status_code in (405, 411)


def test_offsets_are_units_outside_and_code_points_in_the_file(page: Page) -> None:
    at = page.place("my name is")
    text = page.desk.lines[at].text
    answer = page.mark(at, "Rhonda Quillfeather").json()
    [shown] = answer["record"]["spans"]
    units = text.encode("utf-16-le")
    assert units[2 * shown["start"] : 2 * shown["end"]].decode("utf-16-le") == "Rhonda Quillfeather"
    [kept] = read(page.folder / "labels.jsonl")[at].spans
    assert text[kept.start : kept.end] == "Rhonda Quillfeather"
    assert shown["start"] == kept.start + 1  # one emoji before it
    assert (page.folder / "labels.jsonl").stat().st_mode & 0o777 == 0o600
    assert sum(width for _, width, _ in answer["record"]["runs"]) == answer["record"]["units"] == len(units) // 2
    page.mark(at, "👩‍👩‍👧", "secret")
    page.post(at, op="rename", start=shown["start"], end=shown["start"], kind="unsure")
    assert [s.label for s in read(page.folder / "labels.jsonl")[at].spans] == ["unsure", "secret"]
    page.post(at, op="remove", start=0, end=answer["record"]["units"])
    assert read(page.folder / "labels.jsonl")[at].spans == ()


def test_two_windows_do_not_overwrite_each_other(page: Page) -> None:
    at = page.place("magic word")
    stale = page.get(f"/records/{at}").json()["record"]["revision"]
    page.mark(at, "sesame")
    answer = page.client.post(f"/records/{at}", json={"revision": stale, "op": "status", "status": "done"})
    assert answer.status_code == 409
    assert len(answer.json()["record"]["spans"]) == 1
    assert read(page.folder / "labels.jsonl")[at].label_status == "todo"


def test_a_file_that_something_else_wrote_is_not_overwritten(page: Page) -> None:
    lines = read(page.folder / "labels.jsonl")
    write(page.folder / "labels.jsonl", [lines[0].model_copy(update={"label_status": "done"}), *lines[1:]])
    answer = page.post(1, op="status", status="done")
    assert answer.status_code == 400
    assert "changed by something else" in answer.json()["error"]
    assert read(page.folder / "labels.jsonl")[0].label_status == "done"
    file = page.folder / "labels.jsonl"
    with alone(file), pytest.raises(UsageError, match="--reviewer"), alone(file):
        pass


def test_progress_and_what_comes_next(page: Page) -> None:
    assert page.get("/state").json()["first"] == 0
    assert page.get("/records/39").json()["record"]["next_todo"] == 0
    for at, status in ((0, "done"), (1, "skip")):
        state = page.post(at, op="status", status=status).json()["state"]
    assert state["counts"] == {"done": 1, "skip": 1, "todo": 38}
    assert page.get("/state").json()["first"] == 2
    assert page.get("/records/39").json()["record"]["next_todo"] == 2
    page.post(0, op="status", status="todo")
    assert page.get("/state").json()["first"] == 0
    again = Desk.open(page.folder / "labels.jsonl", KINDS)
    assert again.counts() == {"done": 0, "skip": 1, "todo": 39}


def test_the_bound_is_that_of_recall(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    from taciturn.cli.main import run

    assert page.get("/bound").json() == {"confidence": 0.95, "records": 0, "gamma": None, "delta2": None}
    wanted: dict[str, Any] = {}
    for words, secret, kind in (
        ("call me at", "(555) 010-7788", "phone"),
        ("my name is", "Rhonda Quillfeather", "name"),
        ("magic word", "sesame", "secret"),
        ("how can I", "help", "unsure"),  # missed, so it counts
    ):
        at = page.place(words)
        page.mark(at, secret, kind)
        page.post(at, op="status", status="done")
        found = page.get("/bound").json()
        capsys.readouterr()
        assert run(["recall", str(page.folder), str(page.folder / "labels.jsonl"), "--json"]) == 0
        wanted = json.loads(capsys.readouterr().out)
        assert (found["gamma"], found["delta2"]) == (wanted["bounds"]["gamma"], wanted["bounds"]["delta2"])
        assert found["missed_by_both"] == wanted["missed_by_both"]
    passed = wanted["sample"]["passed_over"]
    last = max(i for i, line in enumerate(page.desk.lines) if line.label_status != "todo")
    todo = [i for i, line in enumerate(page.desk.lines[:last]) if line.label_status == "todo"]
    assert passed == len(todo) > 0  # they count as records that could not be judged, until somebody looks at them
    assert wanted["labels"] > 4
    for at in todo:
        page.post(at, op="status", status="done")
    assert run(["recall", str(page.folder), str(page.folder / "labels.jsonl"), "--json"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    assert (wanted["missed_by_pi"], wanted["missed_by_both"], wanted["labels"]) == (3, 2, 4)
    page.post(page.place("line one"), op="status", status="skip")  # nobody knows: the worst is taken
    found = page.get("/bound").json()
    assert (found["missed_by_pi"], found["missed_by_both"], found["records"]) == (4, 3, 5)
    assert run(["recall", str(page.folder), str(page.folder / "labels.jsonl"), "--json"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    assert (found["gamma"], found["delta2"]) == (wanted["bounds"]["gamma"], wanted["bounds"]["delta2"])
    assert any("could not be judged" in condition for condition in wanted["conditions"])


def test_an_error_nobody_foresaw_says_no_text(page: Page, capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> dict[str, Any]:
        raise ValueError("sesame")

    guard = Guard(application(page.desk, "labels", "", broken), PORT)
    client = TestClient(guard, base_url=HOME)
    client.get(guard.url)
    answer = client.get("/bound")
    heard = answer.text + "".join(capfd.readouterr())
    assert answer.status_code == 500
    assert "ValueError in broken" in heard
    assert "sesame" not in heard
    assert guard.token not in heard


def test_undo_goes_back_change_by_change_and_survives_nothing_else(page: Page) -> None:
    first, second = page.place("my name is"), page.place("magic word")
    before = [line.model_copy() for line in page.desk.lines]
    page.mark(first, "Rhonda")
    page.post(first, op="status", status="done")
    page.mark(second, "sesame")
    assert page.get(f"/records/{first}").json()["state"]["changes"] == 3
    assert page.post(second, op="undo", changes=2).status_code == 409  # another window has made one since
    back = page.post(first, op="undo", changes=3).json()  # whatever record is shown, the last change goes
    assert (back["record"]["at"], back["record"]["spans"]) == (second, [])
    page.post(second, op="undo", changes=2)
    assert [line.label_status for line in read(page.folder / "labels.jsonl")].count("done") == 0
    page.post(second, op="undo", changes=1)
    assert read(page.folder / "labels.jsonl") == before
    answer = page.post(second, op="undo", changes=0)
    assert (answer.status_code, "nothing to undo" in answer.json()["error"]) == (400, True)


def test_what_stands_around_a_record_is_of_its_document() -> None:
    """Against a slow look at every record; long neighbours are cut at the far end."""
    texts = [f"d{i} " + " ".join(f"sentence {j} of {i} ends." for j in range(i + 1)) for i in range(9)]
    texts.append("x" * 2000 + ". Then this one. " + "y" * 2000 + ".")
    made = [Document(f"d{i}", text) for i, text in enumerate(texts)]
    screened = screen(Corpus.from_documents(made), policy("phone"), policy("conservative"), unit="sentence")
    records = list(
        zip(
            screened.table["id"].to_pylist(),
            screened.table["document_id"].to_pylist(),
            screened.texts("original"),
            strict=True,
        )
    )
    found = around(draw(screened, 999), screened)
    assert len(found) == len(records)
    for at, (id, document, _) in enumerate(records):
        same = [i for i, each in enumerate(records) if each[1] == document]
        place = same.index(at)
        want = [records[i][2] for i in same[max(0, place - RECORDS) : place]]
        rest = [records[i][2] for i in same[place + 1 : place + 1 + RECORDS]]
        assert list(found[id].before) == [t if len(t) <= LONGEST else "… " + t[-LONGEST:] for t in want]
        assert list(found[id].after) == [t if len(t) <= LONGEST else t[:LONGEST] + " …" for t in rest]
