"""The steps from a model to what is handed over: certify, audit, report, export.

Each returns a few words, and "done", "kept", or "off" where the settings ask for nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from taciturn.auditing.finding import save as save_findings
from taciturn.errors import DataError
from taciturn.mechanisms import certify as certifying
from taciturn.mechanisms.corpus_evidence import unsure_validation
from taciturn.mechanisms.cost import against_target
from taciturn.privacy.certificates.certificate import CERTIFICATE
from taciturn.privacy.certificates.history import RUNS
from taciturn.project.attack import attack, canary_groups
from taciturn.project.context import Shared
from taciturn.project.done_steps import file_key, key_of
from taciturn.project.progress import fresh_evidence, share_history


def certify(shared: Shared) -> tuple[str, str]:
    chosen, folder = shared.project.settings.certify, shared.run_folder
    recall = None if chosen.recall is None else shared.project.base / chosen.recall
    files = {name: shared.project.base / file for name, file in sorted(chosen.groups.items())}
    for file in (*files.values(), *(() if recall is None else (recall,))):
        if not file.is_file():
            raise DataError(f"{file}: no such file, and {shared.project.path.name} names it under [certify]")
    share_history(shared.screened_folder, _other_screenings(shared))
    key = key_of(
        "certify",
        shared.train_key,
        chosen.model_dump(mode="json"),
        file_key(recall) if recall else "",
        {name: file_key(file) for name, file in files.items()},
        file_key(shared.screened_folder / RUNS),
        unsure := unsure_validation(shared.config.train, shared.screened, shared.own_validation or None),
    )
    step = f"certify {folder.name}"
    state = "kept"
    if not shared.state.is_done(step, key) or not (folder / CERTIFICATE).is_file():
        state = "done"
        shared.state.begin(step, key)
        fresh_evidence(folder)
        groups = {name: _lines(file) for name, file in files.items()}
        groups |= canary_groups(shared.planted, shared.screened, folder)
        certifying.certify(
            folder, groups=groups, recall=recall, confidence=chosen.confidence, private_validation=unsure
        )
        shared.state.finish(step, key)
    certificate = shared.certificate
    target = certificate.target
    if target is None:
        return f"ε = {certificate.spent['epsilon']}", state
    sigmas = [e["noise_multiplier"] for p in certificate.plan["phases"] if "noise_multiplier" in (e := p["event"])]
    return against_target(target["epsilon"], certificate.epsilon_spent, sigmas), state


def _other_screenings(shared: Shared) -> list[Path]:
    numbers = range(1, len(shared.state.folders.get("screened", [])) + 1)
    folders = [shared.project.folder / "screened" / str(i) for i in numbers]
    return [folder for folder in folders if folder != shared.screened_folder]


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").split("\n") if line.strip()]


def audit(shared: Shared) -> tuple[str, str]:
    chosen, folder = shared.project.settings.audit, shared.run_folder
    if not chosen.attacks:
        return "no attack is named", "off"
    path = folder / "audit.json"
    key = key_of("audit", chosen.model_dump(mode="json"), file_key(folder / CERTIFICATE))
    step = f"audit {folder.name}"
    state = "kept"
    if not shared.state.is_done(step, key) or not path.is_file():
        state = "done"
        shared.state.begin(step, key)
        save_findings(path, attack(shared.project, shared.texts, shared.screened, shared.plan, folder))
        shared.state.finish(step, key)
    return "; ".join(f"{each.attack}: {each.verdict}" for each in shared.findings), state


def report(shared: Shared) -> tuple[str, str]:
    chosen, folder = shared.project.settings.report, shared.run_folder
    if chosen.output is None:
        return "no output is named", "off"
    import taciturn.reporting as reports

    path = shared.project.folder / chosen.output
    key = key_of(
        "report", str(path), *(file_key(folder / name) for name in (CERTIFICATE, "audit.json", "metrics.jsonl"))
    )
    if shared.state.is_done("report", key) and path.is_file():
        return str(path), "kept"
    shared.state.begin("report", key)
    reports.write(path, [reports.RunView.load(folder)])
    shared.state.finish("report", key)
    return str(path), "done"


def export(shared: Shared) -> tuple[str, str]:
    chosen, folder = shared.project.settings.export, shared.run_folder
    if chosen.output is None:
        return "no output is named", "off"
    from taciturn.reporting.export import export as write

    path = shared.project.folder / chosen.output
    step = f"export {chosen.output}"
    key = key_of("export", shared.train_key, *(file_key(folder / name) for name in (CERTIFICATE, "audit.json")))
    if shared.state.is_done(step, key) and path.is_dir():
        return str(path), "kept"
    if path.exists() and step not in shared.state.begun:
        raise DataError(f"{path} exists and is not of this project: name another folder in [export]")
    shared.state.begin(step, key)
    fresh = path.with_name(f"{path.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    difference = write(folder, fresh)
    shutil.rmtree(path, ignore_errors=True)
    fresh.rename(path)
    shared.state.finish(step, key)
    return f"{path}, whose loss differs by {difference:.1e} at most", "done"
