"""Every field of `transformers.TrainingArguments`: part of a plan, of no consequence here, or refused, and why.

A field that none of the tables knows, of a newer `transformers` or a class derived from TrainingArguments, is refused too
where it differs from its default.
"""

from __future__ import annotations

MAPPED: dict[str, str] = {
    "output_dir": "the run's folder",
    "per_device_train_batch_size": "with the two below it, the expected batch: q is the batch over the number of records",
    "gradient_accumulation_steps": "a factor of the expected batch, as the number of processes is",
    "num_train_epochs": "noised steps: epochs · records / batch; passes over text without noise",
    "max_steps": "noised steps",
    "learning_rate": "of each phase",
    "lr_scheduler_type": "over each phase",
    "lr_scheduler_kwargs": "over each phase",
    "warmup_steps": "of each phase; below 1 a share of its steps",
    "optim": "adamw_torch and adamw_torch_fused (one optimiser here), or sgd",
    "weight_decay": "of matrices, as in the Trainer",
    "adam_beta1": "of AdamW",
    "adam_beta2": "of AdamW",
    "adam_epsilon": "of AdamW",
    "max_grad_norm": "the clip norm C of each record's gradient; of the mean gradient in steps without noise",
    "bf16": "of matrix products",
    "fp16": "of matrix products",
    "activation_checkpointing": "as in the Trainer, never reentrant",
    "activation_checkpointing_kwargs": "use_reentrant = False alone",
    "gradient_checkpointing": "the older name of activation_checkpointing",
    "gradient_checkpointing_kwargs": "the older name of activation_checkpointing_kwargs",
    "seed": "of weights and dropout, and of the order of batches without noise; never of noise",
    "data_seed": "of the order of batches without noise",
    "logging_strategy": "steps or no",
    "logging_steps": "between calls of on_log; below 1 a share of the steps",
    "logging_first_step": "of on_log",
    "save_strategy": "steps, or no: one checkpoint at the end, and one where a run is stopped",
    "save_steps": "between checkpoints; below 1 a share of the steps",
    "save_total_limit": "checkpoints that stay; two if not given, as a run goes on from the newest",
    "report_to": "tensorboard, wandb, mlflow",
    "disable_tqdm": "whether there is a display",
    "use_cpu": "where there is no GPU to see",
    "ddp_timeout": "how long processes wait for each other",
}
"""Field → what it becomes."""

_EVAL = "of evaluation, which eval_strategy turns on, and that is refused"
_HUB = "of push_to_hub, which is refused"
_TRACKIO = "of a service that report_to does not take"
HARMLESS: dict[str, str] = {
    "bf16_full_eval": _EVAL,
    "fp16_full_eval": _EVAL,
    "eval_delay": _EVAL,
    "eval_steps": _EVAL,
    "eval_accumulation_steps": _EVAL,
    "eval_do_concat_batches": _EVAL,
    "eval_use_gather_object": _EVAL,
    "per_device_eval_batch_size": _EVAL,
    "prediction_loss_only": _EVAL,
    "include_for_metrics": _EVAL,
    "batch_eval_metrics": _EVAL,
    "metric_for_best_model": "of load_best_model_at_end, which is refused",
    "greater_is_better": "of load_best_model_at_end, which is refused",
    "hub_token": _HUB,
    "hub_private_repo": _HUB,
    "hub_model_id": _HUB,
    "hub_strategy": _HUB,
    "hub_always_push": _HUB,
    "hub_revision": _HUB,
    "project": _TRACKIO,
    "trackio_space_id": _TRACKIO,
    "trackio_bucket_id": _TRACKIO,
    "trackio_static_space_id": _TRACKIO,
    "run_name": "a run is called as its folder is",
    "tf32": "TrainingArguments set it in torch themselves",
    "auto_find_batch_size": "always so: a pass that runs out of memory is cut, and the drawn batch stays",
    "torch_empty_cache_steps": "of how torch keeps memory, no number depends on it",
    "log_level": "of the Trainer's own messages, which nothing here writes",
    "log_level_replica": "of the Trainer's own messages, which nothing here writes",
    "log_on_each_node": "process 0 alone talks",
    "logging_nan_inf_filter": "a loss or weights that are no numbers end the run by name",
    "enable_jit_checkpoint": "always so: SIGTERM ends the step and writes a checkpoint",
    "dataloader_pin_memory": "of a loader's memory, no number depends on it",
    "remove_unused_columns": "a screened corpus has no columns to remove",
    "length_column_name": "of train_sampling_strategy = group_by_length, which is refused",
    "use_cache": "nothing is generated while a run goes on",
    "do_train": "of scripts; the Trainer does not look at it either",
    "do_eval": "of scripts; the Trainer does not look at it either",
    "do_predict": "of scripts; the Trainer does not look at it either",
    "resume_from_checkpoint": "of scripts; give it to train()",
    "local_rank": "read from the environment that torchrun makes",
}
"""Field → why it changes nothing that was asked for."""

_LOADER = (
    "batches are drawn by the plan, at the rate that ε is accounted for; there is no loader, and one's own would break that "
    "guarantee without a sign of it"
)
_ENGINE = "the engine for per-record gradients has its own; leave it out"
_DDP = "processes exchange clipped sums here, not gradients through DistributedDataParallel"
REFUSED: dict[str, str] = {
    "optim_args": "the optimisers are adamw and sgd, with the fields of their own above",
    "optim_target_modules": "the optimisers are adamw and sgd; an adapter is peft_config",
    "average_tokens_across_devices": "a plain step takes the mean over all tokens, a noised one over the expected batch",
    "label_smoothing_factor": "the loss of a record is its cross entropy; own losses: taciturn.PrivateSteps",
    "torch_compile": _ENGINE,
    "torch_compile_backend": _ENGINE,
    "torch_compile_mode": _ENGINE,
    "use_liger_kernel": _ENGINE,
    "liger_kernel_config": _ENGINE,
    "neftune_noise_alpha": "noise in the embeddings is no part of a plan",
    "include_num_input_tokens_seen": "how many tokens a noised step drew is secret",
    "eval_strategy": (
        "a private text that is evaluated on is outside the guarantee. Held-out text that is public: "
        'train={"valid": ["heldout.jsonl"], "valid_is": "public"}'
    ),
    "eval_on_start": "see eval_strategy",
    "load_best_model_at_end": "a model chosen by a measured loss is a choice the guarantee does not cover; plan --selection",
    "save_only_model": "a run goes on from weights, optimiser and ledger together, or its ε is not known",
    "save_on_each_node": "process 0 alone writes, into a folder that all see",
    "push_to_hub": "every save would be a model without a certificate; push the folder that save_model() writes",
    "ignore_data_skip": "a resumed run draws what it would have drawn",
    "restore_callback_states_from_checkpoint": "checkpoints hold the run, not its callbacks",
    "full_determinism": "noise and draws come from the operating system's entropy, or hide nothing",
    "accelerator_config": "accelerate is not involved; torchrun starts the processes",
    "parallelism_config": "accelerate is not involved; torchrun starts the processes",
    "fsdp": 'FSDP2 is train={"shard": True}',
    "fsdp_config": 'FSDP2 is train={"shard": True}',
    "deepspeed": 'not supported; FSDP2 is train={"shard": True}',
    "debug": "not supported",
    "skip_memory_metrics": "the memory of a noised step tells how many records it drew",
    "train_sampling_strategy": _LOADER,
    "dataloader_drop_last": _LOADER,
    "dataloader_num_workers": _LOADER,
    "dataloader_persistent_workers": _LOADER,
    "dataloader_prefetch_factor": _LOADER,
    "dataloader_multiprocessing_context": _LOADER,
    "dataloader_in_order": _LOADER,
    "label_names": "labels are those of the screened corpus: screen with label=",
    "ddp_find_unused_parameters": _DDP,
    "ddp_bucket_cap_mb": _DDP,
    "ddp_broadcast_buffers": _DDP,
    "ddp_static_graph": _DDP,
    "ddp_backend": _DDP,
}
"""Field → why another value than the default is an error."""

CONSTRUCTOR: dict[str, str] = {
    "data_collator": _LOADER,
    "eval_dataset": REFUSED["eval_strategy"],
    "model_init": "give the model, or its name",
    "compute_loss_func": REFUSED["label_smoothing_factor"],
    "compute_metrics": REFUSED["eval_strategy"],
    "preprocess_logits_for_metrics": REFUSED["eval_strategy"],
    "optimizers": "the plan has an optimiser for each phase; one's own loop: taciturn.PrivateSteps",
    "optimizer_cls_and_kwargs": "the plan has an optimiser for each phase; one's own loop: taciturn.PrivateSteps",
    "tokenizer": "its name is processing_class",
}
"""Argument of `transformers.Trainer` → why there is none of that name here."""
