"""Numbers by which others know a person, of customers, contracts, files and orders: in other languages than English, and
behind a cue that says no "number"."""

from __future__ import annotations

from taciturn.screening.policies.shapes import CODE, Table, after

# German and Dutch write the cue as one word, the others as two, in either order.
_WHAT = (
    r"kunden|vertrags|versicherten|versicherungs|rechnungs|mitglieds|vorgangs|ticket|buchungs|auftrags|bestell|sendungs"
    r"|policen|patienten|personal|matrikel|z[äa]hler|schadens?|fall|referenz"
    r"|klant|klanten|dossier|polis|order|contract|factuur|lidmaatschaps|boekings|reserverings|zaak|schade|pati[ëe]nt"
    r"|zendings"
)
_FR = r"dossier|client|contrat|commande|police|adh[ée]rent|facture|abonn[ée]|sinistre|r[ée]servation|suivi|patient"
_ES = r"cliente|expediente|contrato|pedido|p[óo]liza|factura|reserva|socio|afiliado|siniestro|seguimiento|abonado"
_IT = r"cliente|pratica|contratto|polizza|ordine|fattura|prenotazione|spedizione|sinistro|tessera|socio|matricola"
_PT = r"cliente|processo|contrato|encomenda|ap[óo]lice|fatura|reserva|utente|s[óo]cio|pedido|sinistro"
_PL = r"klienta|umowy|zam[óo]wienia|polisy|sprawy|faktury|rezerwacji|przesy[łl]ki|szkody|pacjenta|zg[łl]oszenia"
_NOUNS = rf"(?:{_FR}|{_ES}|{_IT}|{_PT}|{_PL})"
_NUMBER = (
    r"(?:n[uú]m[eé]?ros?|numer|n°|no|n\.[°o]?|nr\.?|no\.|c[óo]d(?:e|igo|ice)|kod|r[ée]f(?:[ée]rence|erencia)?\.?|rif\.)"
)
_CUES = "|".join(
    (
        rf"(?:{_WHAT})[ -]?(?:nummer|nr\.?|code|id)",
        rf"{_NUMBER} ?(?:(?:de|del|della|di|du|do|da) |d['’])?{_NOUNS}",
        rf"{_NOUNS} {_NUMBER}",
        r"aktenzeichen|gesch[äa]ftszeichen|az\.|sygn(?:atura)?\.?(?: akt)?|sygn\. akt",
    )
)
_GAP = r"(?: (?:ist|lautet|est(?: le)?|es(?: el)?|è|is|to|é))?[\s:=#\"'(\[-]{1,4}"
_COURT = r"(?:[IVX]{1,5} [A-Z]{1,3} )?"  # II K 118/20

_WEAK = (
    r"claim|policy|case|member(?:ship)?|booking|reservation|customer|client|patient|employee|student"
    r"|p[óo]liza|polizza|ap[óo]lice|expediente|dossier|pratica|umowa|polisa"
)
_YEAR = r"(?!(?:19|20)\d\d(?![\w/-]))"
# Letters before a blank are capitals: other words are no part of it.
_CODED = r"(?:(?-i:[A-Z]{1,4}) |[A-Z]{0,4}-?)\d[A-Z0-9]{0,31}(?:[./-][A-Z0-9]{1,24}| \d{2,24}){0,6}"
_COUNTED = r"(?! ?(?:%|€|dollars?|euros?|usd|eur|times|days|weeks|months|years|people|items|members|customers))"
_PLAIN = rf"{_YEAR}(?=[A-Z]{{0,4}}[ -]?\d(?:[ A-Z/.-]{{0,2}}\d){{3}}){_CODED}{_COUNTED}"

TABLE: Table = dict(
    (
        after(
            "identifier-abroad",
            _CUES,
            "Kundennummer: 48213",
            "Aktenzeichen 12 C 345/22",
            "numéro de dossier : 45-8812",
            "nº de expediente 22/2019",
            "numero di pratica 2020/118",
            "dossiernummer is 2020-118",
            "sygnatura akt II K 118/20",
            "número de processo 118/20",
            value=rf"(?=[A-Z -]{{0,8}}\d(?:[ A-Z/.-]{{0,3}}\d){{2}}){_COURT}{CODE}",
            gap=_GAP,
            label="identifier",
        ),
        after(
            "identifier-weak",
            _WEAK,
            "case 22-1881",
            "claim 88120-A",
            "póliza 8812993",
            value=_PLAIN,
            gap=r"[ :#]{1,3}",
            label="identifier",
            digits=4,
        ),
    )
)
