"""Made-up files for `taciturn init`, in several languages."""

from __future__ import annotations

import json
from pathlib import Path

from taciturn.project.inspect_files import Look, inspect
from taciturn.text.readers import read

SAID = {
    "en": "I would like to know where my parcel is, because it was to be here on Monday and it is not.",
    "de": "Ich möchte wissen, wo mein Paket ist, denn es sollte am Montag hier sein und ist es nicht.",
    "fr": "Je voudrais savoir où est mon colis, parce qu'il devait être ici lundi et il n'est pas là.",
    "es": "Quiero saber dónde está mi paquete, porque tenía que llegar el lunes y todavía no está aquí.",
    "nl": "Ik wil graag weten waar mijn pakket is, want het zou er maandag zijn en het is er niet.",
    "ru": "Я хочу знать, где моя посылка, потому что она должна была быть здесь, и её нет.",
    "ja": "私の荷物はどこにあるのか知りたいです。月曜日に届くはずでした。",
    "el": "Θέλω να μάθω πού είναι το δέμα μου, γιατί έπρεπε να είναι εδώ.",
    "et": "Ma tahaksin teada, kus mu pakk on, sest see pidi olema siin esmaspäeval ja seda ei ole.",
    "vi": "Tôi muốn biết bưu kiện của tôi đang ở đâu, vì nó lẽ ra phải đến vào thứ hai.",
}


def seen(folder: Path, rows: list[object], name: str = "mail.jsonl") -> Look:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return inspect(read(path))
