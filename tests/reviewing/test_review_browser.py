"""The page in a real browser: marks, keys, reload, phone width, both colour schemes, and what a screen reader is told."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the page is not clicked")
sys.path.insert(0, str(Path(__file__).parent))
from served import Served, served  # noqa: E402

from browsing import launched, patient  # noqa: E402
from taciturn.screening import policy, screen  # noqa: E402
from taciturn.screening.measuring.preview import runs  # noqa: E402
from taciturn.text.readers import read  # noqa: E402

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the page is not clicked")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        made = launched(play, CHROMIUM)
        yield made
        made.close()


@pytest.fixture
def at(corpus: Path, tmp_path: Path) -> Iterator[tuple[Path, Served]]:
    """A folder of its own and its review."""
    folder = tmp_path / "screened"
    shutil.copytree(corpus, folder)
    with served(folder, "-n", "40", "--seed", "3") as review:
        yield folder, review


def labels(folder: Path, name: str = "labels.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def place(folder: Path, words: str) -> int:
    """The first record, in the order of the file, that says so."""
    return next(i for i, line in enumerate(labels(folder)) if words in line["text"])


def select(page: Any, words: str) -> None:
    """As a mouse would: from the first letter of ``words`` to the last."""
    page.evaluate(
        """(words) => {
          const box = document.getElementById("text"), walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
          box.focus();
          for (let node; (node = walker.nextNode());) {
            const start = node.data.indexOf(words);
            if (start >= 0) {
              getSelection().setBaseAndExtent(node, start, node, start + words.length);
              return;
            }
          }
          throw new Error("not there");
        }""",
        words,
    )


def heard(page: Any, words: str) -> None:
    page.wait_for_function("(w) => document.getElementById('said').textContent.includes(w)", arg=words)


def go(page: Any, number: int) -> None:
    page.evaluate("(n) => { location.hash = n + 1 }", number)
    page.wait_for_function(
        "(n) => document.getElementById('where').textContent.startsWith(`Record ${n + 1} `)", arg=number
    )


def test_a_reviewer_labels_by_keyboard_and_mouse(at: tuple[Path, Served], browser: Any) -> None:
    folder, review = at
    page = patient(browser.new_page())
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(review.url)
    page.wait_for_selector("#text span")
    assert "token" not in page.url
    assert page.evaluate("document.activeElement.id") == "text"
    assert page.evaluate("document.cookie") == ""

    number = place(folder, "my name is")  # with emoji before it, and a family of three
    go(page, number)
    text = labels(folder)[number]["text"]
    seen = "".join(run for run, _ in runs(text))  # the joiners in the family are shown
    assert page.evaluate("document.getElementById('text').textContent") == seen
    select(page, "Rhonda Quillfeather")
    page.keyboard.press("1")
    heard(page, "Marked as name")
    [span] = labels(folder)[number]["spans"]
    assert text[span["start"] : span["end"]] == "Rhonda Quillfeather"
    assert span["label"] == "name"
    assert labels(folder)[number]["label_status"] == "todo"
    assert page.text_content("#text mark") == "Rhonda Quillfeather"

    page.keyboard.press("2")  # the caret stands at the end of the mark: another kind
    heard(page, "Now phone")
    assert labels(folder)[number]["spans"][0]["label"] == "phone"
    page.keyboard.press("x")
    heard(page, "Mark removed")
    assert labels(folder)[number]["spans"] == []

    page.keyboard.press("Control+Home")  # by keyboard alone, from the first letter: the emoji and "my"
    page.keyboard.press("Control+Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    picked = page.evaluate("document.getSelection().toString()")
    page.keyboard.press("Enter")
    heard(page, "Marked as")
    [span] = labels(folder)[number]["spans"]
    assert text[span["start"] : span["end"]] == picked.strip()
    assert span["start"] == 0

    page.keyboard.type("vq😀")  # nothing can be typed into the text
    assert page.evaluate("document.getElementById('text').textContent") == seen
    select(page, "think")
    page.keyboard.press("d")  # not before the selection was marked, or pointed out
    page.wait_for_selector("#error:not([hidden])")
    assert labels(folder)[number]["label_status"] == "todo"
    page.keyboard.down("d")
    page.keyboard.down("d")  # held too long: judges no record that was not seen
    page.keyboard.down("d")
    page.keyboard.up("d")
    heard(page, "done")
    page.wait_for_selector("#bound strong")
    assert [line["label_status"] for line in labels(folder)].count("done") == 1
    passed = [line["label_status"] for line in labels(folder)[:number]].count(
        "todo"
    )  # they may each be a missed secret
    assert f"of {1 + passed} record" in page.text_content("#bound")
    assert labels(folder)[number]["label_status"] == "done"

    page.reload()
    page.wait_for_selector("#text span")
    assert "1 of 40 done" in page.text_content("#progress")
    first = int(page.text_content("#where").split()[1]) - 1
    page.keyboard.press("u")
    heard(page, "unsure")
    assert labels(folder)[first]["label_status"] == "skip"
    page.click("#previous")
    heard(page, "Record")
    assert errors == []
    page.close()
    review.end()
    assert (review.code, review.json()["done"], review.json()["unsure"]) == (0, 1, 1)


def test_hidden_characters_pages_widths_and_schemes(at: tuple[Path, Served], browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    folder, review = at
    number = place(folder, "magic word")
    for width, scheme in ((1280, "light"), (360, "light"), (1280, "dark"), (360, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 780}, color_scheme=scheme, bypass_csp=True)
        page = patient(context.new_page())
        page.goto(review.url)
        page.wait_for_selector("#text span")
        go(page, number)
        assert page.locator("#text .esc").all_text_contents() == ["\\u202e", "\\u202c"]
        select(page, "quietly")
        page.click("#kinds button:last-child")
        heard(page, "Marked as unsure")
        [span] = labels(folder)[number]["spans"]
        assert labels(folder)[number]["text"][span["start"] : span["end"]] == "quietly"
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        found = axe.Axe().run(page).response["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        below = (
            "document.querySelector('nav').offsetTop - document.querySelector('main').getBoundingClientRect().bottom"
        )
        assert page.evaluate(below) >= 0
        page.click("#marks button")
        heard(page, "Mark removed")
        assert labels(folder)[number]["spans"] == []
        context.close()


def test_turns_around_guidelines_undo_and_skip(tmp_path: Path, browser: Any) -> None:
    """A chat of six turns, each a record: what stands around one is read and not marked; keys take back and pass over."""
    turns = ["hi there \u202e", "my name is Rhonda", "and your number?", "call 980.322.8737", "thank you", "bye now"]
    (tmp_path / "chat.jsonl").write_text(
        "".join(
            json.dumps({"id": who, "text": "\n".join(f"{who} {turn}" for turn in turns)}) + "\n" for who in ("a", "b")
        )
    )
    (tmp_path / "say.txt").write_text("Badges are secrets.\n<b>Plates</b> are none.")
    corpus = read(str(tmp_path / "chat.jsonl"))
    screen(corpus, policy("phone"), policy("conservative"), unit="sentence", out=tmp_path / "s")
    with served(tmp_path / "s", "-n", "12", "--seed", "1", "--guidelines", str(tmp_path / "say.txt")) as review:
        page = patient(browser.new_page())
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(review.url)
        page.wait_for_selector("#text span")
        folder = tmp_path / "s"

        number = place(folder, "a and your number?")
        go(page, number)
        assert page.locator("#before p").all_text_contents() == ["a hi there \\u202e", "a my name is Rhonda"]
        assert page.locator("#after p").all_text_contents() == ["a call 980.322.8737", "a thank you", "a bye now"]
        assert page.locator("#before .esc").count() == 1
        muted = "getComputedStyle(document.getElementById('before')).color"
        assert page.evaluate(muted) == page.evaluate("getComputedStyle(document.getElementById('id')).color")
        page.evaluate("getSelection().selectAllChildren(document.getElementById('before'))")
        page.focus("#text")
        page.keyboard.press("Enter")
        heard(page, "Select a secret first")
        assert labels(folder)[number]["spans"] == []

        assert not page.evaluate("document.getElementById('guide').open")
        page.keyboard.press("g")
        heard(page, "Guidelines shown")
        assert page.inner_text("#guidelines") == "Badges are secrets.\n<b>Plates</b> are none."

        assert page.is_disabled("#undo")
        select(page, "number")
        page.keyboard.press("1")
        heard(page, "Marked as name")
        page.keyboard.press("d")
        heard(page, "done")
        assert labels(folder)[number]["label_status"] == "done"
        page.keyboard.press("z")  # of the record before: it is shown again
        heard(page, "Undone")
        assert page.text_content("#where").startswith(f"Record {number + 1} ")
        assert (labels(folder)[number]["label_status"], len(labels(folder)[number]["spans"])) == ("todo", 1)
        page.keyboard.press("Control+z")
        page.wait_for_function("() => document.getElementById('undo').disabled")
        assert labels(folder)[number]["spans"] == []

        page.keyboard.press("s")
        heard(page, "skipped")
        assert labels(folder)[number]["label_status"] == "todo"
        seen = {number}
        while (
            here := int(page.text_content("#where").split()[1]) - 1
        ) != number:  # all the others, then this one again
            assert here not in seen
            seen.add(here)
            before = page.text_content("#where")
            page.keyboard.press("d")
            page.wait_for_function("(w) => document.getElementById('where').textContent !== w", arg=before)
        assert len(seen) == 12
        assert errors == []
        page.close()
