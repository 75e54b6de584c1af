"""Families of models, by transformers' `model_type`, whose per-record gradients were compared with one record at a time:
docs/models.md has what is exact and what costs more, and its test builds each and holds this list to what it finds."""

from __future__ import annotations

CAUSAL = (
    "gpt2", "gpt_neo", "gpt_neox", "gptj", "gpt_bigcode", "codegen", "bloom", "mpt", "opt", "llama", "mistral", "qwen2",
    "qwen3", "gemma", "gemma2", "gemma3_text", "phi", "phi3", "falcon", "cohere", "cohere2", "stablelm", "olmo", "olmo2",
    "granite", "smollm3", "starcoder2", "nemotron", "mixtral", "olmoe", "qwen2_moe", "qwen3_moe", "granitemoe", "phimoe",
    "deepseek_v3", "gpt_oss", "mamba", "mamba2", "falcon_mamba", "jamba",
)  # fmt: skip

ENCODERS = (
    "bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "albert", "deberta", "deberta-v2", "modernbert",
    "nomic_bert", "roformer", "eurobert",
)  # fmt: skip

OURS = ("lstm", "awd-lstm")

WORKING = f"Families that work: {', '.join((*OURS, *CAUSAL))}; encoders {', '.join(ENCODERS)} (docs/models.md)"
"""In the words of an error. Others may: `taciturn check` tries them."""
