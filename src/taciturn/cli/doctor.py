"""taciturn doctor: what is installed, what is missing and what for, and what this machine offers."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from taciturn.cli.options import Json

EXTRAS = {
    "train": ("torch", "transformers", "tokenizers", "safetensors", "cryptography"),
    "lora": ("peft",),
    "gguf": ("gguf", "accelerate"),
    "4bit": ("bitsandbytes",),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow-skinny",),
    "report": ("matplotlib", "jinja2"),
    "review": ("jinja2", "starlette", "uvicorn"),
    "datasets": ("datasets",),
    "zstd": ("zstandard",),
    "documents": ("lxml", "olefile", "openpyxl", "pypdf", "striprtf"),
    "secrets": ("detect-secrets",),
    "spacy": ("spacy",),
    "presidio": ("presidio-analyzer", "spacy"),
    "gliner": ("gliner",),
    "near": ("rbloom",),
    "quality": ("jinja2", "scikit-learn"),
    "ray": ("ray",),
    "cloud": ("fsspec",),
    "docs": ("l2m4m", "mkdocstrings", "zensical"),
}
"""As in pyproject.toml (a test compares)."""

FOR = {
    "train": "train, audit, generate, export; signatures",
    "lora": "adapters",
    "gguf": "models from .gguf files",
    "tensorboard": "report_to tensorboard",
    "wandb": "report_to wandb",
    "mlflow": "report_to mlflow",
    "4bit": "frozen layers in 4 bits",
    "report": "report, figures of recipes, budget --plot",
    "review": "label a sample in a page",
    "datasets": "saved datasets, hf:NAME#SPLIT",
    "zstd": ".zst files",
    "documents": "Word, Excel, PowerPoint, PDF, rich text, Outlook",
    "secrets": "policy detect-secrets",
    "spacy": "policies spacy:…",
    "presidio": "policies presidio…",
    "gliner": "policies gliner:…",
    "near": "screen --clean",
    "quality": "synthesize --quality",
    "ray": "screen --engine ray",
    "cloud": "files on s3://, gs://, …",
    "docs": "build the documentation",
}
CORE = (
    *("numpy", "scipy", "pyarrow", "pydantic", "dp-accounting", "google-re2", "python-stdnum", "wordfreq"),
    *("annotated-types", "confusable-homoglyphs", "cyclopts", "orjson", "py3langid", "regex", "rich", "tomli-w"),
    "webencodings",
)


def extra_of(module: str) -> str | None:
    """The extra that a module comes with; None for one of none.

    >>> extra_of("torch"), extra_of("presidio_analyzer"), extra_of("nowhere")
    ('train', 'presidio', None)
    """
    name = module.replace("_", "-")
    return next((extra for extra, packages in EXTRAS.items() if name in packages), None)


def doctor(
    *,
    measure: Annotated[bool, Parameter(help="two seconds of products: what can be trained in an hour")] = True,
    json: Json = False,
) -> None:
    """Say which parts work here, which extra is missing and what it is for, the device and threads training would use,
    and how many tokens it can train on in an hour.

    Example: `taciturn doctor`
    """
    from taciturn.cli.show import as_json, step

    facts = _facts()
    if facts["packages"]["torch"]:
        with step("loading torch and measuring products"):
            facts |= _device(measure)
    if json:
        as_json(facts)
    else:
        _show(facts)


def _facts() -> dict[str, Any]:
    import os
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from taciturn import __version__

    def found(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    packages = {name: found(name) for name in (*CORE, *(p for extra in EXTRAS.values() for p in extra))}
    absent = {extra: [p for p in needs if packages[p] is None] for extra, needs in EXTRAS.items()}
    return {
        "taciturn": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "packages": packages,
        "missing": {extra: f"pip install 'taciturn[{extra}]'" for extra, names in absent.items() if names},
        "device": None,
    }


def _device(measured: bool) -> dict[str, Any]:
    import torch

    from taciturn.cli.speed import measure

    cuda = torch.cuda.is_available()
    found: dict[str, Any] = {
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(0) if cuda else "cpu",
    }
    if cuda:
        found["device_memory_gib"] = round(torch.cuda.get_device_properties(0).total_memory / 2**30, 1)
    return found | ({"speed": measure(torch.device("cuda" if cuda else "cpu"))} if measured else {})


def _show(facts: dict[str, Any]) -> None:
    from taciturn.cli.show import number, out, table

    packages = facts["packages"]
    rows = [(k.replace("_", " "), str(v)) for k, v in facts.items() if v is not None and not isinstance(v, dict)]
    out.print(table("taciturn doctor", ("what", "found"), rows))
    core = [f"{name} {packages[name]}" for name in CORE if packages[name]]
    out.print(f"core: {', '.join(core)}")
    lost = [name for name in CORE if not packages[name]]
    if lost:
        out.print(f"core packages missing: {', '.join(lost)}; pip install --force-reinstall taciturn")
    extras = []
    for extra, needs in EXTRAS.items():
        state = "missing" if extra in facts["missing"] else "there"
        extras.append((extra, state, FOR[extra], ", ".join(f"{p} {packages[p]}" for p in needs if packages[p])))
    out.print(table("extras", ("extra", "", "for", "installed"), extras))
    for line in facts["missing"].values():
        out.print(line)
    if facts["device"] is None:
        out.print("no torch: this machine reads, screens, accounts and verifies, and cannot train")
    if (speed := facts.get("speed")) is not None:
        sizes = [
            (name, _round(each["tokens_per_hour"]), f"{_round(each['from'])} to {_round(each['to'])}")
            for name, each in speed["models"].items()
        ]
        wide, narrow = number(speed["gflops_wide"]), number(speed["gflops_narrow"])
        title = f"training in an hour, at {wide} GFLOP/s ({narrow} in narrow products)"
        out.print(table(title, ("model", "tokens", "range"), sizes))
        out.print(speed["formula"])


def _round(value: float) -> str:
    """Two digits: more would be a claim.

    >>> _round(270482.0)
    '270,000'
    """
    return f"{float(f'{value:.2g}'):,.0f}"
