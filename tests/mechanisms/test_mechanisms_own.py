"""``tt.PrivateSteps`` seen from outside: other people's modules, losses and loops, and what none of them may get wrong."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

import taciturn as tt
from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.training.randomness.gaussian import SecretSource

SETTINGS: dict[str, Any] = {"delta": 1e-4, "steps": 3, "batch": 20, "noise_multiplier": 1.0, "allow": ["cannot-learn"]}


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.kind, self.value = nn.Linear(5, 7), nn.Linear(7, 3), nn.Linear(7, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x).tanh()
        return self.kind(h), self.value(h).squeeze(-1)


def two_losses(model: nn.Module, batch: Any) -> Tensor:
    kind, value = model(batch["x"])
    return nn.functional.cross_entropy(kind, batch["kind"], reduction="none") + 3 * (value - batch["value"]) ** 2


def rows(count: int, seed: int) -> list[dict[str, Tensor]]:
    g = torch.Generator().manual_seed(seed)
    return [
        {"x": x, "kind": (x.abs() * 9).long().sum() % 3, "value": 2 * x.sum()}
        for x in torch.randn(count, 5, generator=g)
    ]


def tiny() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=40, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    return GPT2LMHeadModel(config)


def pairs(count: int, seed: int) -> list[dict[str, Tensor]]:
    g = torch.Generator().manual_seed(seed)
    return [
        dict(zip(("better", "worse"), torch.randint(1, 40, (2, 9), generator=g), strict=True)) for _ in range(count)
    ]


def dpo(before: nn.Module) -> Any:
    def logs(model: Any, ids: Tensor) -> Tensor:
        said = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
        return said.gather(2, ids[:, 1:, None]).squeeze(2).sum(1)

    def loss(model: Any, batch: Any) -> Tensor:
        with torch.no_grad():
            was = logs(before, batch["better"]) - logs(before, batch["worse"])
        return -nn.functional.logsigmoid(logs(model, batch["better"]) - logs(model, batch["worse"]) - was + 0.3)

    return loss


def begun(out: Path, **changed: Any) -> tuple[nn.Module, tt.PrivateSteps]:
    model = changed.pop("model", None) or TwoHeads()
    given = {"loss": two_losses, "records": rows(200, 1), "examples": rows(4, 2), **SETTINGS, **changed}
    loss, records, examples = (given.pop(name) for name in ("loss", "records", "examples"))
    return model, tt.PrivateSteps(model, loss, records, examples, out, **given)


def slowly(model: nn.Module, loss: Any, records: list[Any], drawn: list[int], clip: float) -> dict[str, Tensor]:
    """Σ of clipped gradients by parameter, one record at a time."""
    total = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for row in drawn:
        model.zero_grad()
        loss(model, {name: t[None] for name, t in records[row].items()}).sum().backward()
        grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        norm = float(torch.stack([g.square().sum() for g in grads.values()]).sum().sqrt())
        for name, g in grads.items():
            total[name] += g * min(1.0, clip / norm)
    model.zero_grad()
    return total


@pytest.mark.parametrize("kind", ["two heads", "preferences"])
@pytest.mark.parametrize("at_once", [1, 7, 32])
def test_the_gradient_is_the_noised_sum_of_an_oracle_loop(kind: str, at_once: int, tmp_path: Path) -> None:
    """With the seed known the noise can be subtracted, and what is left is the clipped sum over what the coins let in."""
    torch.manual_seed(1)
    if kind == "two heads":
        model: nn.Module = TwoHeads()
        loss, records, examples = two_losses, rows(200, 1), rows(4, 2)
    else:
        model = tiny().eval()
        loss, records, examples = dpo(deepcopy(model)), pairs(200, 1), pairs(3, 2)
    private = tt.PrivateSteps(
        model, loss, records, examples, tmp_path / "run", noise_seed=5, clip=0.5, at_once=at_once, **SETTINGS
    )
    rate, secret = 20 / 200, SecretSource(5)
    for step in private:
        names = dict(model.named_parameters())
        found = {name: p.grad.clone() for name, p in names.items() if p.grad is not None}
        drawn = secret.coins(step.number - 1, 200, rate).tolist()
        want = slowly(model, loss, records, drawn, 0.5)
        tensors = [want[name].contiguous() for name in names]
        secret.add_gaussian(step.number - 1, tensors, 1.0 * 0.5 / 20, 1 / 20)
        for name, tensor in zip(names, tensors, strict=True):
            assert torch.allclose(found[name], tensor, atol=6e-5), name  # the grid of the noise is 2.4e-5
        with torch.no_grad():
            for name, p in names.items():
                p -= 0.1 * found[name]


def test_a_user_trains_finishes_and_a_sceptic_verifies(tmp_path: Path) -> None:
    out = tmp_path / "run"
    torch.manual_seed(0)
    model, private = begun(out, epsilon=4.0, steps=40, batch=60, noise_multiplier=None, allow=[], records=rows(900, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    batch = {name: torch.stack([row[name] for row in rows(300, 9)]) for name in ("x", "kind", "value")}
    start = float(two_losses(model, batch).detach().mean())
    spent = []
    for step in private:
        spent.append(step.epsilon or 0.0)
        optimizer.step()
        optimizer.zero_grad()
    assert float(two_losses(model, batch).detach().mean()) < start / 2
    assert 3.96 < spent[-1] <= 4.0
    assert spent == sorted(spent)
    certificate = private.finish(lambda folder: torch.save(model.state_dict(), folder / "model.pt"))
    assert tt.verify(out / "certificate.json") == []
    of_content, of_presence = certificate.statements()
    assert (of_content.relation, of_content.status) == ("substitution", "conditional")
    assert of_presence.relation == "add-remove"
    assert of_presence.epsilon < of_content.epsilon <= 4.0
    open_ = " ".join(certificate.words)
    assert "that record alone" in open_
    assert "nothing else in the program looks at the records" in open_
    page = tt.report(out).save(tmp_path / "report.html").read_text("utf-8")
    assert "Every record that the loop was given" in page
    assert "A record is one whole document" not in page, "it is whatever the loop takes for one"
    with (out / "model" / "model.pt").open("ab") as file:
        file.write(b"x")
    assert tt.verify(out / "certificate.json") != []


def test_a_known_seed_makes_no_guarantee(tmp_path: Path) -> None:
    _, private = begun(tmp_path / "run", noise_seed=3)
    for _ in private:
        pass
    certificate = private.finish(lambda folder: (folder / "nothing").write_text(""))
    assert {each.status for each in certificate.statements()} == {"none"}


class Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.layer(x)
        return h - h.mean(0), h[:, 0]


class Normed(TwoHeads):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(7, affine=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.norm(self.body(x))
        return self.kind(h), self.value(h).squeeze(-1)


class Dropping(TwoHeads):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(nn.functional.dropout(x, 0.5, training=True))


def by_rank(model: nn.Module, batch: Any) -> Tensor:
    losses = two_losses(model, batch)
    return losses * (losses.detach() >= losses.detach().median())


def contrastive(model: nn.Module, batch: Any) -> Tensor:
    kind, _ = model(batch["x"])
    return nn.functional.cross_entropy(kind @ kind.t(), torch.arange(len(kind)), reduction="none")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"model": Mean()}, "differ from one record at a time"),
        ({"model": Normed()}, "statistics of a batch"),
        ({"model": Dropping()}, "random"),
        ({"loss": by_rank}, "differ from one record at a time"),
        ({"loss": contrastive}, "one record at a time|took no part"),
        ({"loss": lambda model, batch: two_losses(model, batch).mean()}, "one number for each"),
        ({"loss": lambda *_: 0.0}, "one number for each"),
        ({"records": DataLoader(rows(9, 1))}, "loader"),
        ({"records": iter(rows(9, 1))}, "loader"),
        ({"examples": rows(2, 1)}, "at least 3"),
        ({"optimiser": {"lr": 1.0}}, "the loop has its own"),
        ({"batsh": 3}, "batch"),
        ({"at_once": 0}, "at_once"),
        ({"delta": 0.5}, "large-delta|δ"),
    ],
)
def test_what_breaks_a_premise_is_refused_before_a_record_is_read(
    changed: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        begun(tmp_path / "run", **changed)
    assert not (tmp_path / "run").exists()


class Augmented:
    """Records with noise of a stream that all of them share."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.rows = draw, rows(200, 1)

    def __len__(self) -> int:
        return 200

    def __getitem__(self, row: int) -> Any:
        return self.rows[row] | {"x": self.rows[row]["x"] * float(self.draw())}


@pytest.mark.parametrize(
    "draw", [random.random, np.random.rand, lambda: torch.rand(())], ids=["python", "numpy", "torch"]
)
def test_records_that_draw_random_numbers_release_nothing(draw: Any, tmp_path: Path) -> None:
    model, private = begun(tmp_path / "run", records=Augmented(draw), rate=1.0)
    with pytest.raises(UsageError, match="random numbers"):
        next(iter(private))
    assert all(p.grad is None for p in model.parameters())
    assert '"event"' not in (tmp_path / "run" / "ledger.jsonl").read_text()


def test_a_layer_that_comes_in_after_the_look_is_seen_before_the_first_step(tmp_path: Path) -> None:
    model, private = begun(tmp_path / "run", records=Untouchable())
    model.body = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7, affine=False))
    with pytest.raises(UsageError, match="statistics of a batch"):
        next(iter(private))


class Untouchable:
    """Records that nobody may look at."""

    def __len__(self) -> int:
        return 200

    def __getitem__(self, row: int) -> Any:
        raise AssertionError(f"record {row} was read")


def test_planning_and_its_errors_read_no_record(tmp_path: Path) -> None:
    _, private = begun(tmp_path / "run", records=Untouchable())
    assert len(private) == 3
    with pytest.raises(AssertionError, match="was read"):
        list(private)


def test_an_empty_draw_is_noised_like_any_other(tmp_path: Path) -> None:
    model, private = begun(tmp_path / "run", records=Untouchable(), rate=1e-9, clip=1.0)
    for _ in private:
        for p in model.parameters():
            assert p.grad is not None
            assert float(p.grad.abs().max()) > 0


def test_what_is_done_after_a_kept_state_is_lost_and_paid(tmp_path: Path) -> None:
    out = tmp_path / "run"
    model, private = begun(out, steps=6)
    kept: dict[str, Any] = {}
    for step in private:
        if step.number == 2:
            kept = {"model": deepcopy(model.state_dict()), "steps": private.state_dict()}
        if step.number == 4:
            break
    before = json.loads((out / "plan.json").read_text())
    model.load_state_dict(kept["model"])
    _, again = begun(out, steps=6, model=model, resume=kept["steps"])
    assert len(again) == 4
    seen = [step.number for step in again]
    assert seen == [3, 4, 5, 6]
    certificate = again.finish(lambda folder: torch.save(model.state_dict(), folder / "m.pt"))
    assert json.loads((out / "plan.json").read_text()) == before
    assert tt.verify(out / "certificate.json") == []
    whole = tmp_path / "whole"
    _, straight = begun(whole, steps=6)
    list(straight)
    plain = straight.finish(lambda folder: (folder / "m").write_text(""))
    _, longer = begun(tmp_path / "longer", steps=8)
    list(longer)
    eight = longer.finish(lambda folder: (folder / "m").write_text(""))
    assert certificate.epsilon_spent == pytest.approx(eight.epsilon_spent, rel=1e-3)
    assert certificate.epsilon_spent > plain.epsilon_spent


def test_a_loop_that_breaks_off_goes_on_without_loss(tmp_path: Path) -> None:
    model, private = begun(tmp_path / "run", steps=5)
    for step in private:
        if step.number == 2:
            break
    assert [step.number for step in private] == [3, 4, 5]
    assert list(private) == []
    ledger = (tmp_path / "run" / "ledger.jsonl").read_text()
    assert "lost" not in ledger
    private.finish(lambda folder: torch.save(model.state_dict(), folder / "m.pt"))
    assert tt.verify(tmp_path / "run" / "certificate.json") == []


def test_folders_and_states_that_do_not_fit(tmp_path: Path) -> None:
    out = tmp_path / "run"
    _, private = begun(out)
    with pytest.raises(DataError, match="3 of 3 steps are left"):
        private.finish(lambda _: None)
    list(private)
    state = private.state_dict()
    _, other = begun(out)
    with pytest.raises(DataError, match="already holds a run"):
        list(other)
    with pytest.raises(MismatchError, match="phases"):
        begun(out, steps=4, resume=state)
    with pytest.raises(MismatchError, match="state_dict"):
        begun(out, resume={"no": "state"})
    private.finish(lambda folder: (folder / "m").write_text(""))
    with pytest.raises(DataError, match="has ended"):
        begun(out, resume=state)


def test_nothing_of_the_records_is_in_the_files(tmp_path: Path) -> None:
    """The counts drawn, norms and losses are private; the files of two runs say the same things."""
    said = []
    for seed in (1, 2):
        out = tmp_path / str(seed)
        _, private = begun(out, records=rows(200, seed))
        list(private)
        lines = [json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines()]
        said.append([sorted(line) for line in lines])
        assert (out / "checkpoints").stat().st_mode & 0o777 == 0o700
    assert said[0] == said[1]


def test_a_gradient_whose_line_cannot_be_written_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be drawn again with the same noise, perhaps for other sums."""
    model, private = begun(tmp_path / "run")

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("taciturn.training.state.releases.Ledger.append", full)
    with pytest.raises(OSError, match="no space"):
        next(iter(private))
    assert all(p.grad is None for p in model.parameters())


def test_a_model_that_exchanges_plain_gradients_is_refused(tmp_path: Path) -> None:
    """What Accelerator().prepare gives in several processes. In one: docs/how-to/hugging-face.md."""
    wrapped = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    with pytest.raises(UsageError, match="DataParallel exchanges plain gradients"):
        tt.PrivateSteps(wrapped, lambda *_: torch.zeros(0), [1], [1, 2, 3], tmp_path / "run")
