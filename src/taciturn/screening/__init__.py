"""Screening: split, redact, partition, deduplicate; what is public, what is private, what skeletons remain."""

from taciturn.screening.manifest import Counts, Manifest
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import Detector, Everything, Policy, Regex, Words, policy
from taciturn.screening.policies import names as policy_names
from taciturn.screening.recall import Recall, measure
from taciturn.screening.screened import Part, ScreenedCorpus, load

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
