"""The table of data sets: for each split the files that may hold it, how they are laid out, and what is not the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taciturn.data.loaders import layouts as lay
from taciturn.data.loaders.dialogues import abcd, multiwoz21, multiwoz21_lines, multiwoz22
from taciturn.data.loaders.layouts import WHOLE, Layout, cut, in_runs, marked, rows
from taciturn.data.loaders.tables import columns, news_csv, tsv


@dataclass(frozen=True, slots=True)
class Place:
    """Files of a split: a glob below the folder (a compressed ending may follow), their layout, what differs."""

    pattern: str
    layout: Layout
    note: str = ""


@dataclass(frozen=True, slots=True)
class Hub:
    """A name that ``datasets.load_dataset`` knows, its configuration, its names of our splits, and read options."""

    name: str
    config: str | None
    splits: Mapping[str, str]
    options: Mapping[str, str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class DataSet:
    """splits: places by split, the first that is there counts. folders: where they lie below the folder a user names.
    licence: as its source states it."""

    licence: str
    folders: tuple[str, ...]
    splits: Mapping[str, tuple[Place, ...]]
    hub: Hub | None = None
    note: str = field(default="")


_ROWS = rows()
_SENTENCES, _COLUMNS = in_runs(_ROWS), in_runs(columns)
_LINES = rows(format="lines")
"""Shared, so that files named together are seen to be alike."""

_NUMBERS = "Labels are the hub's class numbers"
_GLUE = {"train": "train", "valid": "validation"}


def _glue(name: str, folder: str, licence: str, first: str, second: str | None, cells: tuple[str, ...]) -> DataSet:
    """One GLUE task: JSON lines with the hub's field names, or the official table with its own."""
    pair = {"text_pair": second} if second else {}
    json = rows(text=first, label="label", **pair)
    table = tsv(*cells)
    sample = "A sample (8,999 rows) of train: compare with a baseline of the same size, not with the paper's numbers."
    held_out = "1,000 further rows of train, ours to tune on."
    held = {"valid": ("dev", "validation")}  # our split: GLUE's file, the hub's split
    if name == "mnli":
        held = {split: (f"dev_{split}", f"validation_{split}") for split in ("matched", "mismatched")}
    splits = {
        "train": (
            Place("train.tsv", table),
            Place(f"{name}_train.jsonl", json),
            Place(f"{name}_train_sample.jsonl", json, sample),
        ),
        "heldout": (Place(f"{name}_train_sample_heldout.jsonl", json, held_out),),
    }
    splits |= {s: (Place(f"{d}.tsv", table), Place(f"{name}_{d}.jsonl", json)) for s, (d, _) in held.items()}
    hub_splits = {"train": "train"} | {split: hub for split, (_, hub) in held.items()}
    hub = Hub("nyu-mll/glue", name, hub_splits, {"text": first, "label": "label"} | pair, f"{_NUMBERS}.")
    if name == "sst2":
        del splits["heldout"]
    return DataSet(licence, ("glue", folder, f"glue_data/{folder}"), splits, hub)


def _wikitext(split: str, hub: str) -> tuple[Place, ...]:
    masked = "The tokens version: rare words are <unk>, so perplexities are not the raw version's."
    return (
        Place(f"wiki.{split}.raw.txt", _LINES),
        Place(f"wiki.{split}.raw", _LINES),
        Place(f"{hub}*.parquet", _ROWS),
        Place(f"wiki.{split}.tokens", _LINES, masked),
    )


def _ner(*patterns: str) -> tuple[Place, ...]:
    """Sentences with entities, as JSON lines or in columns."""
    return tuple(Place(p, _SENTENCES if p.endswith(".jsonl") else _COLUMNS) for p in patterns)


def _own_splits(*places: Place) -> dict[str, tuple[Place, ...]]:
    parts = tuple(Place(p.pattern, cut(p.layout), p.note) for p in places)
    return dict.fromkeys(("train", "valid", "test", WHOLE), parts)


SECRET = frozenset({"ref", "phone", "addr", "address", "post", "postcode"})
"""MultiWOZ slots that hold a secret, by their names in 2.1 and 2.2."""
_MULTIDOGO = frozenset(
    (
        "name", "ssn", "account_number", "target_account_number", "account_id", "card_number", "email_address",
        "phonenumber", "phone_number", "password", "username", "address", "booking_confirmation_number", "claimid",
        "policyid", "order_number", "current_zipcode",
    )
)  # fmt: skip
_PART = "512 of 8,437 train dialogues, with silver spans (database and patterns)."
_ABCD = "Train (8,034 dialogues) is not here: valid stands in for it, so tune on nothing of valid; test on test."
_SILVER = "Of its spans customer names are gold, the rest silver (patterns)."
_MWZ22, _MWZ21 = marked(multiwoz22, SECRET), marked(multiwoz21, SECRET)
_CHATS = marked(_ROWS, _MULTIDOGO)

SETS: Mapping[str, DataSet] = {
    "wikitext2": DataSet(
        "CC BY-SA 3.0", ("wikitext2", "wikitext-2-raw", "wikitext-2"),
        {"train": _wikitext("train", "train"), "valid": _wikitext("valid", "validation"), "test": _wikitext("test", "test")},
        Hub("Salesforce/wikitext", "wikitext-2-raw-v1", {**_GLUE, "test": "test"}, {}),
        "A record is a line (paragraph or heading); blank lines are skipped.",
    ),
    "abcd": DataSet(
        "MIT", ("abcd", "data"),
        {
            "train": (Place("abcd_v1.1.json", abcd), Place("train.jsonl", _ROWS),
                      Place("valid.jsonl", _ROWS, f"{_ABCD} {_SILVER}")),
            "valid": (Place("abcd_v1.1.json", abcd), Place("valid.jsonl", _ROWS, _SILVER)),
            "test": (Place("abcd_v1.1.json", abcd), Place("test.jsonl", _ROWS, _SILVER)),
        },
    ),
    "sst2": _glue("sst2", "SST-2", "none stated (Stanford); research use", "sentence", None, ("sentence", "label")),
    "qnli": _glue("qnli", "QNLI", "CC BY-SA 4.0 (SQuAD)", "question", "sentence", ("question", "label", "sentence")),
    "qqp": _glue("qqp", "QQP", "Quora's terms: non-commercial", "question1", "question2",
                 ("question1", "is_duplicate", "question2")),
    "mnli": _glue("mnli", "MNLI", "OANC; CC BY 3.0 and CC BY-SA 3.0 in part", "premise", "hypothesis",
                  ("sentence1", "gold_label", "sentence2")),
    "multiwoz22": DataSet(
        "MIT", ("multiwoz", "MultiWOZ_2.2", "data/MultiWOZ_2.2"),
        {
            "train": (Place("train/dialogues_*.json", _MWZ22), Place("mwz22_train.jsonl", _ROWS),
                      Place("mwz22_train_part001.jsonl", _ROWS, _PART)),
            "valid": (Place("dev/dialogues_*.json", _MWZ22), Place("mwz22_dev.jsonl", _ROWS)),
            "test": (Place("test/dialogues_*.json", _MWZ22), Place("mwz22_test.jsonl", _ROWS)),
        },
    ),
    "multiwoz21": DataSet(
        "MIT", ("multiwoz", "MultiWOZ_2.1"),
        {
            "train": (Place("data.json", _MWZ21), Place("mwz21_train.jsonl", multiwoz21_lines)),
            "valid": (Place("data.json", _MWZ21), Place("mwz21_dev.jsonl", multiwoz21_lines)),
            "test": (Place("data.json", _MWZ21), Place("mwz21_test.jsonl", multiwoz21_lines)),
        },
        note="The same dialogues as 2.2: never train on one version's valid and test on the other's.",
    ),
    "conll2003": DataSet(
        "Reuters text: research only, by agreement; never shipped", ("conll2003",),
        {
            "train": _ner("eng.train", "train.txt", "train.conll", "train.jsonl"),
            "valid": _ner("eng.testa", "valid.txt", "valid.conll", "valid.jsonl"),
            "test": _ner("eng.testb", "test.txt", "test.conll", "test.jsonl"),
        },
    ),
    "agnews": DataSet(
        "research and other non-commercial use", ("agnews", "ag_news_csv"),
        {
            "train": (Place("train.csv", news_csv), Place("train.jsonl", lay.news),
                      Place("train_subset_train.jsonl", lay.news_without_valid, "A subset of 120,000 train rows.")),
            "valid": (Place("valid.jsonl", lay.news), Place("train_subset_dev.jsonl", lay.news, "1,000 rows of train.")),
            "test": (Place("test.csv", news_csv), Place("test.jsonl", lay.news)),
        },
        Hub("fancyzhx/ag_news", None, {"train": "train", "test": "test"}, {"label": "label"}, f"{_NUMBERS}; no users."),
    ),
    "contracts": DataSet(
        "CC BY 4.0 (CUAD); public filings", ("contracts_cuad", "full_contract_txt", "CUAD_v1/full_contract_txt"),
        _own_splits(Place("contracts.jsonl", rows(user="file"), "59 contracts of CUAD's 510, not the paper's own."),
                    Place("*.txt", lay.per_file, "CUAD's contracts, not the paper's own.")),
    ),
    "sec_contracts": DataSet(
        "CC BY 3.0", ("sec_contracts", "SEC-filings/CONLL-format/data", "CONLL-format/data"),
        {"train": _ner("train_FIN5.jsonl", "FIN5.txt", "train/FIN5.txt"),
         "test": _ner("test_FIN3.jsonl", "FIN3.txt", "test/FIN3.txt")},
        note="Loan agreements (Alvarado et al. 2015), not the paper's own filings.",
    ),
    "wikigold": DataSet(
        "CC BY 4.0", ("pii_gold", "wikigold/CONLL-format/data", "CONLL-format/data"),
        _own_splits(*_ner("ner_wikigold_wikigold.conll.jsonl", "wikigold.conll.txt", "wikigold.conll")),
        note="Stands in for CoNLL-2003.",
    ),
    "wnut17": DataSet(
        "CC BY 4.0", ("pii_gold", "WNUT17/CONLL-format/data", "CONLL-format/data"),
        {
            "train": _ner("ner_wnut17_wnut17train.conll.jsonl", "wnut17train.conll", "train/wnut17train.conll"),
            "valid": _ner("ner_wnut17_emerging.dev.conll.jsonl", "emerging.dev.conll", "dev/emerging.dev.conll"),
            "test": _ner("emerging.test.annotated", "test/emerging.test.annotated"),
        },
        note="Stands in for CoNLL-2003.",
    ),
    "customersim": DataSet(
        "MIT; generator Apache-2.0", ("customersim",),
        {split: (Place(f"{split}.jsonl", lay.plain_dialogues),) for split in ("train", "valid", "test")},
    ),
    "multidogo": DataSet(
        "CDLA-Permissive-1.0", ("multidogo",),
        {
            split: (Place(f"{stem}.jsonl", _CHATS),)
            for split, stem in (("train", "train"), ("valid", "dev"), ("test", "test"))
        },
        note="Customer turns only; labels are noisy.",
    ),
}  # fmt: skip
