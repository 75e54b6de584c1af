"""What is sensitive: policies made of detectors (guarantees.md, π and π_c)."""

from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.everything import Everything
from taciturn.screening.policies.finder import Detector, Finder
from taciturn.screening.policies.rare_words import Words
from taciturn.screening.policies.regex import Regex
from taciturn.screening.policies.registry import names
from taciturn.screening.policies.union import policy
from taciturn.screening.policies.view import View

__all__ = ["Detector", "Everything", "Finder", "Policy", "Regex", "View", "Words", "names", "policy"]
