"""The files that the pages speak of: mails, a model, a screened corpus, a finished run. Made once, copied for each page."""

from __future__ import annotations

import csv
import json
import mailbox
import re
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from itertools import pairwise
from pathlib import Path

import documents
from taciturn.cli.main import run
from taciturn.data.customersim import simulate

TRUTH = ".truth.json"
"""Every secret of the corpus: what the person who labels knows."""

SMALL: dict[str, dict[str, dict[str, int]]] = {
    "crt": {"public": {"epochs": 1, "batch_size": 32}, "private": {"steps": 5, "batch": 20}}
}


def make(folder: Path) -> None:
    """Everything in ``folder``, which is the current directory: commands are given as a reader would."""
    (folder / "mail").mkdir()
    dialogues = simulate(32, 3)  # more private records than the batch of SMALL
    for year, part in (("2024", dialogues[:16]), ("2025", dialogues[16:])):
        rows = [
            {"id": d.id, "sender": f"clerk{i % 6}@example.org", "body": d.text.replace("\n", " ").strip()}
            for i, d in enumerate(part)
        ]
        (folder / "mail" / f"{year}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    held = [{"id": d.id, "body": d.text.replace("\n", " ").strip()} for d in simulate(4, 5, "test")]
    (folder / "heldout.jsonl").write_text("".join(json.dumps(row) + "\n" for row in held), "utf-8")
    secrets = sorted({d.text[span.start : span.end] for d in dialogues for span in d.gold}, key=len, reverse=True)
    (folder / TRUTH).write_text(json.dumps(secrets), "utf-8")
    others(folder, [d.text for d in dialogues[:4]])
    gpt2(folder / "gpt2", [d.text for d in dialogues])
    llama(folder / "llama", [d.text for d in dialogues])
    for line in trained():
        assert run(line) == 0, line


def others(folder: Path, texts: list[str]) -> None:
    """One file of each format that the pages name."""
    import zstandard

    box = mailbox.mbox(str(folder / "inbox.mbox"))
    for i, text in enumerate(texts):
        message = EmailMessage()
        message["From"], message["Subject"], message["Message-ID"] = "ana@example.org", "parcel", f"<{i}@example.org>"
        message.set_content(text)
        box.add(message)
    box.close()
    with (folder / "customers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("name", "phone"), ("Zelda Quill", "555 010 7788"), ("Omar Bant", "555 010 9911")])
    (folder / "places.txt").write_text("Ely\nThe Copper Kettle\n", "utf-8")
    notes = "case,note\n" + "".join(f'{i},"{" ".join(text.split())}"\n' for i, text in enumerate(texts))
    (folder / "dump.csv.zst").write_bytes(zstandard.compress(notes.replace('""', "").encode()))
    (folder / "archive" / "2024").mkdir(parents=True)
    (folder / "archive" / "2024" / "letter.txt").write_text(texts[0], "utf-8")
    (folder / "archive" / "scan.png").write_bytes(b"\x89PNG")
    (folder / "contract.docx").write_bytes(documents.word(texts[1]))
    with zipfile.ZipFile(folder / "letters.zip", "w") as archive:
        archive.writestr("a/letter.txt", texts[2])
    old = "".join(f'{i},café,"{" ".join(text.split())}"\n' for i, text in enumerate(texts)).replace('""', "")
    (folder / "old.csv").write_text(f"case,subject,note\n{old}", "cp1252", "replace")
    day = [{"type": "message", "user": "U1", "text": text, "ts": f"17000{i:05d}.0001"} for i, text in enumerate(texts)]
    with zipfile.ZipFile(folder / "export.zip", "w") as archive:
        archive.writestr("users.json", json.dumps([{"id": "U1", "name": "ana", "profile": {"real_name": "Ana"}}]))
        archive.writestr("channels.json", json.dumps([{"id": "C1", "name": "help"}]))
        archive.writestr("help/2024-05-01.json", json.dumps(day))
    lines = [f"12/05/2024, 10:{i:02d} - Ana: {' '.join(text.split())}" for i, text in enumerate(texts)]
    (folder / "chat.txt").write_text("\n".join(lines) + "\n", "utf-8")
    says = [
        {"role": "user", "content": "Where is my parcel? Call me on 555-010-7788."},
        {"role": "assistant", "content": "On its way."},
    ]
    (folder / "sft.jsonl").write_text("".join(json.dumps({"messages": says}) + "\n" for _ in range(20)), "utf-8")
    canaries = {"template": "My ID is: {}", "length": 4, "secrets": ["4839", "1270"], "copies": 5}
    (folder / "canaries.json").write_text(json.dumps(canaries), "utf-8")
    (folder / "glue_data" / "QNLI").mkdir(parents=True)
    table = "index\tquestion\tsentence\tlabel\n0\tWho?\tAna did.\tentailment\n1\tWhen?\tAna did.\tnot_entailment\n"
    (folder / "glue_data" / "QNLI" / "dev.tsv").write_text(table, "utf-8")
    (folder / "openings.txt").write_text("Dear customer,\nThank you for\n", "utf-8")
    (folder / "skeletons.txt").write_text("My order <MASK> has not arrived.\n", "utf-8")
    (folder / "names.txt").write_text("Zelda\nOmar\n", "utf-8")


def gpt2(folder: Path, texts: list[str]) -> None:
    """A GPT-2 of 20,000 parameters with a tokenizer of its own: the pages' `gpt2` when there is no hub."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from taciturn.models.tokenizers import bpe_tokenizer

    tokenizer = bpe_tokenizer(texts, 400)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=128, n_embd=24, n_layer=1, n_head=2)
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def llama(folder: Path, texts: list[str]) -> None:
    """A Llama of 30,000 parameters with a chat template: the pages' `llama`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from taciturn.models.tokenizers import bpe_tokenizer

    tokenizer = bpe_tokenizer(texts, 400)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
    )
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def small(arguments: list[str]) -> list[str]:
    """A command with the sizes of SMALL that it does not set itself, two passes over the data at most, and one worker."""
    sizes = SMALL.get(arguments[1], {}) if arguments[0] == "plan" else {}
    wanted = {f"options.{phase}.{key}": value for phase, of in sizes.items() for key, value in of.items()}
    added = [
        f"{name}={value}" for name, value in wanted.items() if not any(a.startswith(f"{name}=") for a in arguments)
    ]
    alone = ["1" if before == "--workers" else word for before, word in pairwise(["", *arguments])]
    if arguments[0] == "synthesize":
        alone = ["30" if before == "-n" else word for before, word in pairwise(["", *alone])]
    brief = [re.sub(r"(?<=epochs=)([3-9]|\d\d+)$", "2", word) for word in alone]
    return brief + [word for setting in added for word in ("--set", setting)]


def label(path: Path) -> None:
    """Play the person who labels a sample: every known secret is marked, every line is done."""
    secrets = json.loads(Path(TRUTH).read_text("utf-8"))
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line in lines:
        spans: list[dict[str, object]] = []
        for secret in secrets:
            start = line["text"].find(secret)
            if start >= 0 and all(start >= span["end"] or start + len(secret) <= span["start"] for span in spans):  # type: ignore[operator]
                spans.append({"start": start, "end": start + len(secret), "label": "secret"})
        line |= {"spans": sorted(spans, key=lambda span: int(str(span["start"]))), "label_status": "done"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def trained() -> Iterator[list[str]]:
    """Command lines up to a certified run."""
    yield [
        "screen",
        "mail/2024.jsonl",
        "mail/2025.jsonl",
        "--text",
        "body",
        "--user",
        "sender",
        "-p",
        "pii",
        "-o",
        "screened",
    ]
    plan = ["plan", "crt", "screened", "--model", "gpt2", "--epsilon", "3", "--delta", "8e-5", "-o", "run.toml"]
    yield small(plan)
    yield ["train", "run.toml", "-o", "runs/mail"]
    yield ["certify", "runs/mail"]
