"""Our models among transformers' Auto classes: importing this module registers them (taciturn/_register.py does)."""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from taciturn.models.awd_lstm import AWDLSTMConfig, AWDLSTMForCausalLM, AWDLSTMForSequenceClassification
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM

for config, model in ((LSTMConfig, LSTMForCausalLM), (AWDLSTMConfig, AWDLSTMForCausalLM)):
    AutoConfig.register(config.model_type, config, exist_ok=True)
    AutoModelForCausalLM.register(config, model, exist_ok=True)
AutoModelForSequenceClassification.register(AWDLSTMConfig, AWDLSTMForSequenceClassification, exist_ok=True)
