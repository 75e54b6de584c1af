"""Screening: split, redact, partition, deduplicate; what is public, what is private, what skeletons remain."""

from taciturn.screening.corpus.manifest import Counts, Manifest
from taciturn.screening.corpus.screened import Part, ScreenedCorpus, load
from taciturn.screening.measuring.recall import Recall, measure
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import Detector, Everything, Policy, Regex, Words, policy
from taciturn.screening.policies import names as policy_names

__all__ = [
    "Counts",
    "Detector",
    "Everything",
    "Manifest",
    "Part",
    "Policy",
    "Recall",
    "Regex",
    "ScreenedCorpus",
    "Words",
    "load",
    "measure",
    "policy",
    "policy_names",
    "screen",
]
