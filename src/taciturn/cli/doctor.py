"""taciturn doctor: what is installed, and what this machine offers."""

from __future__ import annotations

from taciturn.cli.options import Json

EXTRAS = {
    "train": ("torch", "transformers", "tokenizers", "safetensors", "cryptography"),
    "lora": ("peft",),
    "gguf": ("gguf", "accelerate"),
    "tensorboard": ("tensorboard",),
    "report": ("matplotlib", "jinja2"),
    "datasets": ("datasets",),
    "zstd": ("zstandard",),
    "secrets": ("detect-secrets",),
    "spacy": ("spacy",),
    "presidio": ("presidio-analyzer",),
    "gliner": ("gliner",),
    "near": ("rbloom",),
    "ray": ("ray",),
}


def doctor(*, json: Json = False) -> None:
    """Say which parts work here, which extra is missing, and the device and threads training would use.

    Example: `taciturn doctor`
    """
    import os
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from taciturn import __version__
    from taciturn.cli.show import as_json, out, table

    def found(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    core = (
        *("numpy", "scipy", "pyarrow", "pydantic", "dp-accounting", "google-re2", "python-stdnum", "wordfreq"),
        *("cyclopts", "rich"),
    )
    packages = {name: found(name) for name in (*core, *(p for extra in EXTRAS.values() for p in extra))}
    facts: dict[str, object] = {
        "taciturn": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": packages,
        "missing": {
            e: f"pip install 'taciturn[{e}]'" for e, ps in EXTRAS.items() if any(packages[p] is None for p in ps)
        },
    }
    if packages["torch"]:
        import torch

        facts["threads"] = torch.get_num_threads()
        facts["device"] = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
    if json:
        as_json(facts)
        return
    rows = [(k, str(v)) for k, v in facts.items() if not isinstance(v, dict)]
    rows += [(name, v or "not installed") for name, v in packages.items()]
    out.print(table("taciturn doctor", ("what", "found"), rows))
    for extra, line in facts["missing"].items():  # type: ignore[attr-defined]
        out.print(f"for the {extra} parts: {line}")
