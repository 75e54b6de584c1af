"""JSON Schema (draft 2020-12) of certificate.json, made from the types that read and write it.

docs/certificate.schema.json is its output: ``taciturn certify --schema > docs/certificate.schema.json``.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from taciturn.privacy.certificates.certificate import Certificate
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee

NUMBER = {"anyOf": [{"type": "number"}, {"const": "inf"}], "description": 'a number; ∞ is the string "inf"'}
DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256, in hexadecimal"}
EVENT = {
    "type": "object",
    "properties": {
        "event": {
            "enum": [
                "poisson-gaussian",
                "kinds-gaussian",
                "two-level-gaussian",
                "selective-gaussian",
                "thresholded-counts",
                "non-private",
            ]
        }
    },
    "required": ["event"],
    "description": "what one step costs: taciturn.privacy.accounting.events",
}
STEPS = {
    "type": "object",
    "properties": {
        "phase": {"type": "string"},
        "event": EVENT,
        "steps": {"type": "integer", "minimum": 0, "description": "all that were done, and are paid"},
        "lost": {"type": "integer", "minimum": 0, "description": "those of them that the model went on without"},
    },
    "required": ["phase", "event", "lost", "steps"],
    "additionalProperties": False,
}


def certificate_schema() -> dict[str, Any]:
    """The schema as plain JSON. What a certificate quotes (guarantees, evidence, steps) is described too; the plan is not,
    as each mechanism has settings of its own."""
    schema = Certificate.model_json_schema(by_alias=True)
    fields, defined = schema["properties"], schema.setdefault("$defs", {})
    for name, kind, what in (
        ("Guarantee", Guarantee, "an (ε, δ) with its notion, unit, relation, status and what it rests on"),
        ("Evidence", Evidence, "what was measured about the run besides its steps; evidence.json"),
    ):
        made = TypeAdapter[Any](kind).json_schema(ref_template="#/$defs/{model}")
        defined |= made.pop("$defs", {})
        made["description"] = what
        defined[name] = made | {"additionalProperties": False}
    guarantee = defined["Guarantee"]
    guarantee["properties"] |= {"epsilon": NUMBER, "detail": {"type": "object", "additionalProperties": NUMBER}}
    guarantee["required"] = sorted(guarantee["properties"])
    listed = {"type": "array", "items": {"$ref": "#/$defs/Guarantee"}}
    fields["guarantees"] = listed
    fields["evidence"] = {"$ref": "#/$defs/Evidence"}
    fields["ledger_steps"] = {"type": "array", "items": STEPS}
    fields["other_runs"] = {
        "type": "object",
        "properties": {
            "known": {
                "anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
                "description": "other runs recorded; null: not known, or, with counted_by selection, not told",
            },
            "counted_by": {
                "enum": [None, "composition", "selection"],
                "description": "how together counts the other runs; null: it does not. guarantees never count them",
            },
            "together": listed,
            "words": {"type": "string"},
        },
        "required": ["counted_by", "known", "together", "words"],
        "additionalProperties": False,
    }
    fields["spent"] = {
        "type": "object",
        "properties": {"relation": {"enum": ["substitution", "add-remove"]}, "epsilon": NUMBER, "delta": NUMBER},
        "required": ["relation", "epsilon", "delta"],
        "additionalProperties": False,
    }
    defined["ModelFile"]["properties"]["sha256"] = DIGEST
    fields |= dict.fromkeys(("plan_digest", "evidence_digest", "ledger_digest", "digest"), DIGEST)
    schema["required"] = sorted({*schema["required"], "schema"})
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "taciturn certificate"}
    return (
        head
        | {"description": "A certificate.json of taciturn: canonical JSON, see docs/guarantees.md, section 7."}
        | {name: value for name, value in schema.items() if name not in ("title", "description")}
    )
