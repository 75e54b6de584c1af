"""The smallest model of each family of transformers that docs/models.md speaks of."""

from __future__ import annotations

from typing import Any

V = 83
SMALL: dict[str, Any] = {
    "vocab_size": V, "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24,
    "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
GPT: dict[str, Any] = {
    "vocab_size": V, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
LLAMA = SMALL | {"num_key_value_heads": 2, "pad_token_id": None}
SLIDING = LLAMA | {"sliding_window": 4}
HEADS = SLIDING | {"head_dim": 4}
MIXED = LLAMA | {
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
    "shared_expert_intermediate_size": 12,
}  # fmt: skip
LATENT = MIXED | {
    "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 4, "v_head_dim": 4, "first_k_dense_replace": 1, "n_shared_experts": 1, "num_key_value_heads": 4,
}  # fmt: skip
STATES = {
    "vocab_size": V,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "state_size": 4,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
BERT = SMALL | {"pad_token_id": 1, "type_vocab_size": 2}
RELATIVE = BERT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "pad_token_id": 0}
DISTIL = {"vocab_size": V, "n_layers": 2, "dim": 16, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 64}

CAUSAL: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT-2": ("gpt2", GPT),
    "GPT-Neo": (
        "gpt_neo",
        SMALL | {"num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]], "window_size": 4},
    ),
    "GPT-NeoX, Pythia": ("gpt_neox", SMALL),
    "GPT-J": ("gptj", GPT | {"rotary_dim": 4}),
    "StarCoder": ("gpt_bigcode", GPT),
    "CodeGen": ("codegen", GPT | {"n_head": 4, "rotary_dim": 4}),
    "BLOOM": ("bloom", SMALL | {"n_layer": 2, "n_head": 2}),
    "MPT": ("mpt", {"vocab_size": V, "d_model": 16, "n_layers": 2, "n_heads": 2, "max_seq_len": 64}),
    "OPT": ("opt", SMALL | {"ffn_dim": 24, "word_embed_proj_dim": 8}),
    "Llama, SmolLM2": ("llama", LLAMA),
    "Mistral": ("mistral", SLIDING),
    "Qwen2": ("qwen2", LLAMA),
    "Qwen3": ("qwen3", HEADS),
    "Gemma": ("gemma", HEADS),
    "Gemma 2": ("gemma2", HEADS),
    "Gemma 3": ("gemma3_text", HEADS),
    "Phi": ("phi", SMALL),
    "Phi-3": ("phi3", LLAMA),
    "Falcon": ("falcon", SMALL),
    "Falcon, new form": ("falcon", SMALL | {"new_decoder_architecture": True, "num_kv_heads": 2, "alibi": False}),
    "Cohere": ("cohere", LLAMA),
    "Cohere with normed queries": ("cohere", LLAMA | {"use_qk_norm": True}),
    "Cohere 2": ("cohere2", SLIDING),
    "StableLM": ("stablelm", LLAMA),
    "StableLM with normed queries": ("stablelm", LLAMA | {"qk_layernorm": True}),
    "OLMo": ("olmo", LLAMA),
    "OLMo 2": ("olmo2", LLAMA),
    "Granite": ("granite", LLAMA),
    "SmolLM3": ("smollm3", LLAMA),
    "StarCoder 2": ("starcoder2", LLAMA),
    "Nemotron": ("nemotron", LLAMA),
    "Mixtral": ("mixtral", MIXED),
    "OLMoE": ("olmoe", MIXED),
    "Qwen2-MoE": ("qwen2_moe", MIXED),
    "Qwen3-MoE": ("qwen3_moe", MIXED | {"head_dim": 4}),
    "Granite-MoE": ("granitemoe", MIXED),
    "Phi-MoE": ("phimoe", MIXED),
    "DeepSeek V3": ("deepseek_v3", LATENT),
    "gpt-oss": ("gpt_oss", MIXED | {"head_dim": 4}),
    "Llama 4": ("llama4_text", MIXED | {"head_dim": 4, "intermediate_size_mlp": 24, "attention_chunk_size": 64}),
    "Mamba": ("mamba", STATES),
    "Mamba 2": ("mamba2", STATES | {"num_heads": 8, "head_dim": 4, "n_groups": 1, "chunk_size": 8}),
    "Falcon-Mamba": ("falcon_mamba", STATES),
    "Jamba": (
        "jamba",
        MIXED
        | {
            "mamba_d_state": 4,
            "mamba_dt_rank": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
        },
    ),
    "RecurrentGemma": (
        "recurrent_gemma",
        HEADS | {"lru_width": 16, "attention_window_size": 8, "num_hidden_layers": 3},
    ),
    "RWKV": ("rwkv", SMALL | {"attention_hidden_size": 16, "context_length": 64}),
    "BART, as a decoder": ("bart", {"vocab_size": V, "d_model": 16}),
}

ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "BERT": ("bert", BERT),
    "RoBERTa": ("roberta", BERT),
    "XLM-RoBERTa": ("xlm-roberta", BERT),
    "CamemBERT": ("camembert", BERT),
    "DistilBERT": ("distilbert", DISTIL),
    "ELECTRA": ("electra", BERT | {"embedding_size": 8}),
    "ALBERT": ("albert", BERT | {"embedding_size": 8}),
    "DeBERTa": ("deberta", RELATIVE),
    "DeBERTa v2 and v3": (
        "deberta-v2",
        RELATIVE
        | {"norm_rel_ebd": "layer_norm", "share_att_key": True, "position_buckets": 8, "conv_kernel_size": 3,
           "conv_act": "gelu"},
    ),
    "ModernBERT": ("modernbert", BERT | {"local_attention": 4, "global_attn_every_n_layers": 2, "cls_token_id": 0,
                                         "sep_token_id": 0}),
    "NomicBERT": ("nomic_bert", BERT),
    "RoFormer": ("roformer", BERT | {"embedding_size": 16}),
    "EuroBERT": ("eurobert", LLAMA | {"pad_token_id": 1, "mask_token_id": 2}),
    "SqueezeBERT": ("squeezebert", BERT | {"embedding_size": 16}),
    "MobileBERT": ("mobilebert", BERT | {"embedding_size": 8, "intra_bottleneck_size": 16, "true_hidden_size": 16}),
    "ConvBERT": ("convbert", BERT | {"embedding_size": 16}),
    "Funnel": ("funnel", {"vocab_size": V, "block_sizes": [1, 1], "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 24}),
    "FNet": ("fnet", BERT),
    "T5": ("t5", {"vocab_size": V, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4}),
}  # fmt: skip
