"""Hugging Face's way in: TrainingArguments, a model and a screened corpus, over the one engine there is."""
