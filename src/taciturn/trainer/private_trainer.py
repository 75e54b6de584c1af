"""``taciturn.PrivateTrainer``: `transformers.TrainingArguments`, a model and a screened corpus; the plan, the engine and the
certificate are those of :func:`taciturn.train`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from taciturn import api
from taciturn.errors import UsageError
from taciturn.privacy.certificates.certificate import CERTIFICATE, Certificate
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.trainer import given_model
from taciturn.trainer.arguments import every, strategy, translate
from taciturn.trainer.fields import CONSTRUCTOR
from taciturn.training.state.callbacks import Callbacks

NEVER = 1e6
"""Minutes without a checkpoint where save_steps decides alone."""


class PrivateTrainer:
    """A trainer with the habits of `transformers.Trainer`, over the engine that every run here has::

        args = TrainingArguments("runs/mail", num_train_epochs=3, per_device_train_batch_size=64, learning_rate=5e-4)
        trainer = tt.PrivateTrainer("gpt2", args, screened, epsilon=3, delta=1e-5)
        trainer.train()
        print(trainer.certificate.words)
        trainer.save_model("model")

    model: a name as :func:`taciturn.plan` takes it, or an object of transformers, which has the trained weights in the end;
    what of it is frozen stays so. processing_class: the tokenizer, needed with an object. train_dataset: a screened corpus.
    mechanism, epsilon, delta, allow, train and ``options``: as :func:`taciturn.plan` takes them; options go before what
    ``args`` say, e.g. ``private={"optimiser": {"lr": 1e-3}}``. peft_config: a `peft.LoraConfig`. callbacks: see
    :class:`taciturn.training.state.callbacks.Callbacks`.

    Raises UsageError naming each field of ``args`` that cannot be honoured, with the reason (trainer/fields.py), and what
    :func:`taciturn.plan` raises.

    Under torchrun every process makes one and calls the same methods in the same order.
    """

    def __init__(
        self,
        model: Any,
        args: Any,
        train_dataset: ScreenedCorpus,
        processing_class: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        mechanism: str = "crt",
        peft_config: Any = None,
        callbacks: Sequence[Any] = (),
        allow: Sequence[str] = (),
        train: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        for name in options:
            if name in CONSTRUCTOR:
                raise UsageError(f"PrivateTrainer takes no {name}: {CONSTRUCTOR[name]}")
        if not isinstance(train_dataset, ScreenedCorpus):
            raise UsageError(
                f"train_dataset: expected a screened corpus, found {type(train_dataset).__name__}; make one of it: "
                'tt.screen(tt.read(dataset, text="…"), tt.policy("pii"))'
            )
        said = translate(args, mechanism, train_dataset, options)
        self.args, self.model, self.processing_class = args, model, processing_class
        self._folder = Path(args.output_dir)
        self._hub = given_model.hub(model)
        base = self._folder / given_model.BASE
        settings: Any = {**given_model.settings(model, processing_class, base), **said.model}
        if (lora := given_model.adapter(peft_config)) is not None:
            settings["lora"] = lora
        self._once(lambda: given_model.keep(model, processing_class, base))
        seeds: Any = said.seeds
        how_to_run: Any = {**said.train, **(train or {})}
        planned = api.plan(
            mechanism, train_dataset, settings, tokenizer=settings.pop("tokenizer"), epsilon=epsilon, delta=delta,
            seeds=seeds, train=how_to_run, allow=allow, **said.options,
        )  # fmt: skip
        steps = planned.plan.total_steps
        saving = every(args, "save_steps", steps) if strategy(args, "save_strategy") else steps
        asked = {"checkpoint_steps": saving, "checkpoint_minutes": NEVER}
        how = {name: value for name, value in asked.items() if name not in (train or {})}
        config = planned.config.model_copy(update={"train": planned.config.train.model_copy(update=how)})
        self.plan = api.Planned(config, planned.plan, train_dataset)
        self.run = api.TrainedRun(self._folder)
        self._callbacks = Callbacks(
            callbacks, planned.plan, self._folder, args, first=args.logging_first_step, epochs=args.num_train_epochs,
            every=every(args, "logging_steps", steps) if strategy(args, "logging_strategy") else 0,
            coder=processing_class,
        )  # fmt: skip

    @property
    def state(self) -> Any:
        """A `transformers.TrainerState`: global_step, max_steps, log_history."""
        return self._callbacks.state

    def train(self, resume_from_checkpoint: bool | str | None = None) -> api.TrainedRun:
        """Train to the plan's end. resume_from_checkpoint: go on from the newest checkpoint in output_dir, which is the only
        one that a run may go on from.

        Raises Interrupted after SIGINT, SIGTERM or a callback's should_training_stop (a checkpoint was written), and what
        :func:`taciturn.train` raises.
        """
        if isinstance(resume_from_checkpoint, str) and Path(resume_from_checkpoint) != self._folder:
            raise UsageError(
                "resume_from_checkpoint: a run goes on from its newest checkpoint, or steps that were paid for would be "
                f"taken twice; give True, or output_dir itself ({self._folder})"
            )
        self._callbacks.begin()
        how: dict[str, Any] = {"resume": bool(resume_from_checkpoint), "progress": not self.args.disable_tqdm}
        try:
            api.train(self.plan, self._folder, notify=self._callbacks.step, **how)
        finally:
            self._callbacks.saved()
        trained, self.processing_class = self.run.model()
        if isinstance(self.model, str):
            self.model = trained
        else:
            given_model.take_back(self.model, trained)
        self._callbacks.end(self.model)
        return self.run

    @property
    def certificate(self) -> Certificate:
        """What may be said of the trained model; written into output_dir when first asked for."""
        path = self._folder / CERTIFICATE
        self._once(lambda: None if path.is_file() else self.run.certify().digest)
        return Certificate.read(path)

    def save_model(self, output_dir: str, **hub: Any) -> None:
        """Write a new folder that is ready for the hub: weights, tokenizer, model card, certificate and its ledger. hub: as
        :meth:`taciturn.api.TrainedRun.export` takes it."""
        _ = self.certificate
        self._once(lambda: self.run.export(output_dir, **{**self._hub, **hub}))

    def _once(self, write: Callable[[], Any]) -> None:
        """Under torchrun process 0 alone writes, and the others wait until it has."""
        from taciturn.training.distributed.processes import joined

        with joined(self.args.ddp_timeout / 60) as world:
            world.once(write)

    def add_callback(self, callback: Any) -> None:
        """One more callback, an object or its class."""
        self._callbacks.add(callback)
