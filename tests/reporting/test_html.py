"""The page: whole, self-contained, the same every time, readable, and without anything a user typed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

import taciturn.reporting.html as page_module
from leaks import told
from taciturn.reporting import RunView, pdf, render, write
from taciturn.reporting.content import as_data, collect

VOID = {"meta", "link", "br", "input", "img", "hr"}
SECRET = "Zaphod 341752"


class Page(HTMLParser):
    """Checks that elements nest, and remembers what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.headings: list[int] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        self.text.append(text)

    def values(self, name: str) -> list[str]:
        return [value for _, n, value in self.attributes if n == name]


@pytest.fixture(scope="session")
def text(shown: dict[int, str]) -> str:
    return shown[4]


@pytest.fixture(scope="session")
def page(text: str) -> Page:
    return Page(text)


def test_all_sections_are_there_and_linked(page: Page) -> None:
    for section, _ in page_module.SECTIONS:
        assert section in page.ids
        assert f"#{section}" in page.values("href")


def test_it_loads_nothing_and_runs_nothing(page: Page, text: str) -> None:
    assert page.tags["script"] == page.tags["iframe"] == page.tags["img"] == 0
    assert all(value.startswith(("#", "data:,")) for value in page.values("href") + page.values("src"))
    assert not re.search(r"https?://|//\w|@import", text)
    assert all(u.startswith("(#") for u in re.findall(r"url(\([^)]*\))", text))
    assert not any(name.startswith("on") for _, name, _ in page.attributes)


def test_ids_are_unique_and_every_reference_has_one(page: Page, text: str) -> None:
    assert len(page.ids) == len(set(page.ids))
    wanted = {v[1:] for v in page.values("href") if v.startswith("#")} | set(re.findall(r"url\(#([^)]+)\)", text))
    assert wanted | set(page.values("aria-labelledby")) <= set(page.ids)


def test_it_can_be_read_aloud(page: Page) -> None:
    assert ("html", "lang", "en") in page.attributes
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert page.tags["caption"] == page.tags["table"]
    assert len([1 for tag, name, _ in page.attributes if (tag, name) == ("th", "scope")]) == page.tags["th"]
    plots = [a for a in page.attributes if a[:2] == ("svg", "role")]
    hidden = [a for a in page.attributes if a[:2] == ("svg", "aria-hidden")]
    labels = [a for a in page.attributes if a[:2] == ("svg", "aria-label") and a[2]]
    assert len(plots) == len(labels) == page.tags["figure"] + 1  # and the way of the records
    assert len(plots) + len(hidden) == page.tags["svg"]


def test_every_plot_has_its_numbers(page: Page) -> None:
    assert page.tags["figure"] == 10
    assert page.text.count("The numbers") == 10


def test_plots_take_their_colours_from_the_page(text: str) -> None:
    css = (Path(page_module.__file__).parent / "style.css").read_text("utf-8")
    for svg in re.findall(r"<svg role.*?</svg>", text, flags=re.S):
        assert not re.search(r"#[0-9a-fA-F]{6}\b", svg)
        assert "<style" not in svg
        for name in re.findall(r"var\(--([\w-]+)\)", svg):
            assert css.count(f"--{name}:") >= 2  # light and dark


def test_equal_runs_give_equal_bytes(four: list[RunView], text: str, tmp_path: Path) -> None:
    assert write(tmp_path / "sub" / "report.html", four).read_text("utf-8") == text


def test_numbers_shown(page: Page) -> None:
    shown = re.sub(r"\s+", " ", " ".join(page.text))  # \\s is a no-break space too
    for piece in ("19.93 bits", "2 of 4 models may be released", "ε = ∞", "8 × 10⁻⁵", "CRT Theorem 8.1", "9,000"):
        assert piece in shown
    assert "nan" not in re.findall(r"\w+", shown)
    assert "None" not in re.findall(r"\w+", shown)


@pytest.mark.parametrize("like", ["unprotected", "crt-skeletons"])
def test_missing_pieces_are_said(make_run: Callable[..., Path], like: str) -> None:
    def shown(*without: str) -> str:
        return " ".join(Page(render([RunView.load(make_run("-".join(("run", *without)), like, without))])).text)

    assert "Not audited" not in shown()
    assert "Not audited: run-audit.json" in shown("audit.json")
    assert "Not certified: run-certificate.json" in shown("certificate.json")
    bare = shown("certificate.json", "audit.json", "evidence.json", "metrics.jsonl", "ledger.jsonl")
    for said in (
        "not to be released yet",
        "it is not certified: nothing is promised",
        "no attack was made on it",
        "has not been attacked",
        "Not certified",
        "No counts were recorded",
        "No perplexity or accuracy was measured",
        "there is no curve",
    ):
        assert said in bare


def test_markup_in_a_name_is_text(make_run: Callable[..., Path]) -> None:
    name = "<script>alert(1)<!-- &amp; \"'"
    page = Page(render([RunView.load(make_run(name.replace("/", ""))), RunView.load(make_run("b"))]))
    assert page.tags["script"] == 0
    assert any(name in piece for piece in page.text)


def test_free_text_of_the_inputs_stays_out(make_run: Callable[..., Path], tmp_path: Path) -> None:
    """A secret in whatever a user or a mistake put into a run folder does not reach the page or the data."""
    folder = make_run("careless")
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    plan["model"] |= {
        "name": SECRET,
        "tokenizer": SECRET,
        "prompt": SECRET,
        "labels": [SECRET],
        "words": {SECRET: SECRET},
    }
    plan["model"] |= {"dtype": SECRET, "max_length": SECRET, "task": SECRET, "frozen": [SECRET]}
    plan["phases"][0]["rule"] |= {"clipping": SECRET, "quantile": SECRET}
    plan["phases"][0]["sampler"] |= {"counts": [SECRET]}
    plan["phases"][0]["optimiser"] |= {"momentum": SECRET}
    plan["seeds"] |= {"data": SECRET}
    plan["corpus_key"] = SECRET
    plan["note"] = SECRET
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    corpus = tmp_path / SECRET
    corpus.mkdir()
    (folder / "run.toml").write_text(f'text = "{SECRET}"\ncorpus = {json.dumps(str(corpus))}\n', "utf-8")
    counts = json.loads((folder / "evidence.json").read_text("utf-8"))["counts"]
    manifest = {"counts": counts | {SECRET: 3}, "policies": {"pi": {"name": SECRET}}, "inputs": [{"name": SECRET}]}
    (corpus / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (folder / "model").mkdir()
    config = {"model_type": SECRET, "vocab_size": SECRET, "id2label": {"0": SECRET}, "n_layer": 2}
    (folder / "model" / "config.json").write_text(json.dumps(config), "utf-8")
    evidence = json.loads((folder / "evidence.json").read_text("utf-8"))
    (folder / "evidence.json").write_text(json.dumps(evidence | {"example": SECRET}), "utf-8")
    audit = json.loads((folder / "audit.json").read_text("utf-8"))
    audit["findings"][0]["detail"] |= {"secrets": [SECRET], SECRET: 1.0}
    audit["findings"][0]["detail"]["certificate"] |= {"statement": SECRET, "notion": SECRET}
    audit["findings"][1]["detail"]["attacks"][SECRET] = audit["findings"][1]["detail"]["attacks"]["loss"]
    (folder / "audit.json").write_text(json.dumps(audit), "utf-8")
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            json.dumps({"kind": "eval", "step": 501, "split": "valid", "perplexity": 1.5, "text": SECRET}) + "\n"
        )
    run = RunView.load(folder)
    rates = {"secrets": 200, "missed": 20, "records": 200, "records_missed": 20, "share": 0.1, "bound": 0.2}
    kinds = {SECRET: {"pi": rates, "both": rates}}
    content = collect([run], [{"labels": 200, "missed_by_pi": 20, "missed_by_both": 0, "kinds": kinds}])
    assert content["corpora"][0]["rows"]
    assert len(content["recall"][0]["rows"]) == 4
    assert SECRET not in json.dumps(as_data(content))
    page = page_module.page(content)
    assert SECRET not in page
    program = shutil.which("chromium")
    if program and shutil.which("pdftotext"):  # and printed: neither in its text nor in what a PDF says of itself
        pdf.write(tmp_path / "report.pdf", page, program)
        calls = [[tool, str(tmp_path / "report.pdf"), *rest] for tool, *rest in (("pdftotext", "-"), ("pdfinfo",))]
        printed = [subprocess.run(each, capture_output=True, text=True, check=True).stdout for each in calls]
        assert "Before you sign" in printed[0]
        assert not any(told(part, text) for text in printed for part in SECRET.split())


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme: int) -> None:
    """WCAG 2.2: 4.5 for text, 3 for lines of plots, in both colour schemes."""
    css = (Path(page_module.__file__).parent / "style.css").read_text("utf-8")
    block = re.findall(r":root \{(.*?)\}", css, flags=re.S)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))

    def contrast(a: str, b: str) -> float:
        high, low = sorted((_luminance(colours[a]), _luminance(colours[b])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for front in ("text", "muted", "good", "warn", "bad"):
        assert contrast(front, "paper") >= 4.5
    for tone in ("good", "warn", "bad"):
        assert contrast(tone, f"{tone}-bg") >= 4.5
    assert contrast("muted", "card") >= 4.5
    assert contrast("text", "warn-bg") >= 4.5
    for slot in range(8):
        assert contrast(f"s{slot}", "paper") >= 3
