"""The packs pl, it, nl, pt, se and br (countries.py has the others). A number whose check digit fails is still found where
its name stands before it: people mistype, and a wrong digit tells as much of them."""

from __future__ import annotations

from functools import partial

from taciturn.screening.policies.patterns.documents import dates
from taciturn.screening.policies.shapes import LEFT, RIGHT, Maker, Table, after, define

# What may stand between a cue and its value, in these languages; folding makes an o of º.
_GAP = (
    r"(?:[ _-]{0,2}(?:numer(?:em|u)?|num|nr|n[.°o]|n\.[°o]|n[uú]mero|numero|nummer|no|kod|kodem|jest|to|brzmi|[èée]|is"
    r"|het|är)(?![^\W_])\.?){0,3}[\s:=#\"'(\[-]{1,4}"
)
_TOWN = r"[A-ZÀ-ÞĄĆĘŁŃÓŚŹŻ][\w'-]{1,30}"
_HOUSE = r"\d{1,5}[A-Za-z]?(?![^\W_])(?:/\d{1,4}[A-Za-z]?(?![^\W_]))?"
_OF = r"d(?:ei|el|ella|elle|egli|i|a)"
_NAME = r"[\w'.-]{1,30}"
_cued = partial(after, gap=_GAP)


def _number(country: str, cue: str, *finds: str, value: str) -> tuple[str, Maker]:
    """The country's numbers behind their names, whatever their check digits."""
    return _cued(f"{country}-number", cue, *finds, value=value, digits=6)


def _born(country: str, cue: str, months: str, *finds: str) -> tuple[str, Maker]:
    """A date behind the words for birth, with a month's name in figures or in the language."""
    written = rf"\d{{1,2}}[.o°]?(?: de)? (?:{months})(?:,? (?:de )?\d{{4}})?(?!\w)"
    pattern = rf"(?<![^\W_])(?:{cue})[\s:=(]{{1,3}}({written}|{dates(1)}|\d{{6}}(?!\d)|\d{{8}})(?!\w|[-/]\d)"
    options = {"digits": 1, "group": 1, "ignore_case": True, "whole": False, "label": "date-of-birth"}
    return define(f"{country}-birth", pattern, *finds, **options)


PL: Table = dict(
    (
        define("pl-pesel", rf"{LEFT}\d{{11}}{RIGHT}", "44051401359", check="pl.pesel", digits=11),
        define(
            "pl-nip",
            rf"{LEFT}(?:PL ?)?\d{{3}}(?:([ -]?)\d{{3}}\1\d{{2}}\1\d{{2}}|([ -])\d{{2}}\2\d{{2}}\2\d{{3}}){RIGHT}",
            "856-734-62-15",
            "PL 8567346215",
            check="pl.nip",
            digits=10,
        ),
        define("pl-id-card", r"(?<!\w)[A-Z]{3} ?\d{6}(?!\w)", "ABA 300000", check="pl-id-card", digits=6),
        define(
            "pl-account", rf"{LEFT}\d{{2}}([ -]?)(?:\d{{4}}\1){{5}}\d{{4}}{RIGHT}", "61 1090 1014 0000 0712 1981 2874",
            check="pl-account", digits=26,
        ),
        _number(
            "pl",
            r"pesel(?:em|u)?|nip|regon|krs|bdo|(?:dow(?:ód|od(?:u|em)) osobist(?:y|ego|ym)|dow(?:ód|odu)|paszport(?:u|em)?"
            r"|praw(?:o|a) jazdy|legitymacj[aiię]|kont[oa]|rachun(?:ek|ku))(?: bankow(?:e|ego|y))?"
            r"(?: seri[ai](?: i numer)?)?|seri[ai] i numer",
            "PESEL: 44051401358",
            "NIP nr 856-734-62-16",
            "REGON 192598184",
            "dowód osobisty seria i numer ABC 123456",
            value=r"(?:[A-Z]{2,3} ?)?\d(?:[ -]?\d){5,25}",
        ),
        _cued(
            "pl-phone",
            r"tel(?:efon(?:u|em|iczn[yie])?)?\.?(?: kom\.?| kontaktowy)?|kom(?:órk[aięą]|\.)|zadzwoń(?:cie)? (?:na|pod)",
            "tel. kom. 600100200", value=r"\+?\(?\d[\d ()-]{5,16}\d", digits=7, label="phone",
        ),
        define(
            "pl-mobile", rf"{LEFT}(?:\+?48[ -]?)?(?:4[5-9]|5[0137]|6[069]|7[2-9]|88)\d([ -])\d{{3}}\1\d{{3}}{RIGHT}",
            "600-100-200", digits=9, label="phone",
        ),
        _cued(
            "pl-plate", r"(?:nr|numer) rej(?:\.|estracyjny)?|tablic[aey] rejestracyjn[aey]",
            "nr rej. WA 12345", value=r"[A-Z]{1,3} ?(?=[A-Z]{0,2}\d)[A-Z0-9]{3,5}", label="plate",
        ),
        define(
            "pl-address",
            rf"(?<!\w)(?:(?i:ul|al|os|pl)\.|(?i:ulic[aęyi]|alej[aię]|osiedl[eua]|placu?))"
            rf" ?{_NAME}(?: {_NAME}){{0,3}}? {_HOUSE}"
            rf"(?: ?(?:m|lok)\.? ?\d{{1,4}})?(?:,? {{1,2}}\d{{2}}-\d{{3}} {_TOWN})?",
            "ul. Długa 12/4, 00-238 Warszawa", "al. Jana Pawła II 61 lok. 211", digits=1, label="address",
        ),
        define("pl-postcode", rf"{LEFT}\d{{2}}-\d{{3}} {{1,2}}{_TOWN}", "00-238 Warszawa", digits=5, label="postcode"),
        _born(
            "pl", r"data urodzenia|urodzon[yae](?: w dniu| dnia)?|ur\.(?: dnia)?",
            r"stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada|grudnia",
            "urodzona 3 maja 1980", "ur. 03.05.1980",
        ),
    )
)  # fmt: skip

IT: Table = dict(
    (
        define(
            "it-tax-code",
            r"(?<!\w)[A-Z]{3} ?[A-Z]{3} ?[0-9LMNPQRSTUV]{2}[A-EHLMPR-T][0-9LMNPQRSTUV]{2}"
            r" ?[A-Z][0-9LMNPQRSTUV]{3}[A-Z](?!\w)",
            "RCCMNL83S18D969H", "rcc mnl 83s18 d969h", check="it.codicefiscale", ignore_case=True,
        ),
        define("it-vat", rf"{LEFT}(?:IT ?)?\d{{11}}{RIGHT}", "IT 00743110157", check="it.iva", digits=11),
        define("it-id-card", r"(?<!\w)C[A-Z]\d{5}[A-Z]{2}(?!\w)", "CA00000AA", digits=5),
        define("it-health-card", rf"{LEFT}80380\d{{15}}{RIGHT}", "80380000302012345678", digits=20),
        define(
            "it-plate", r"(?<![\w-])[A-HJ-NPR-TV-Z]{2}[ -]?\d{3}[ -]?[A-HJ-NPR-TV-Z]{2}(?![\w-])", "AB 123 CD", digits=3,
            label="plate",
        ),
        _number(
            "it",
            r"codice fiscale|cod\. ?fisc\.?|c\.? ?f\.|partita iva|p\. ?iva|carta d'identità|c\.?i\.?e\.?"
            r"|passaporto|patente(?: di guida)?|tessera sanitaria|conto(?: corrente)?|c/c",
            "codice fiscale: RCCMNL83S18D969A",
            "partita IVA n. 00743110158",
            "carta d'identità n. AB 1234567",
            value=r"[A-Z]{6}[0-9A-Z]{2}[A-Z][0-9A-Z]{2}[A-Z][0-9A-Z]{3}[A-Z]"
            r"|(?:[A-Z]{2} ?)?\d(?:[ -]?\d){4,25}(?:[A-Z]{1,2})?",
        ),
        _cued(
            "it-phone", r"tel(?:efono)?\.?|cell(?:ulare)?\.?|chiama(?:mi|temi|re)?(?: al)?",
            "cell. 338 123 4567", value=r"\+?\(?\d[\d ()./-]{5,16}\d", digits=7, label="phone",
        ),
        define(
            "it-address",
            rf"(?<!\w)(?i:via|viale|piazz(?:a|ale)|corso|largo|vicolo|strada)(?: {_OF})?"
            rf"(?: [A-ZÀ-Þ][\w'.-]{{0,30}}(?: {_OF})?)"
            rf"{{1,4}}?,? (?:n\.? ?)?{_HOUSE}(?:,? (?:- )?\d{{5}} {_TOWN})?",
            "via Garibaldi, 12", "corso Vittorio Emanuele II 4, 20122 Milano", digits=1, label="address",
        ),
        _cued("it-postcode", r"c\.?a\.?p\.?", "CAP 20122", value=r"\d{5}", digits=5, label="postcode"),
        _born(
            "it", r"data di nascita|nat[oaie](?: a [^\W\d_]{2,30})?(?: il(?: giorno)?)?",
            r"gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
            "nato a Roma il 3 maggio 1980", "data di nascita: 03/05/1980",
        ),
    )
)  # fmt: skip

NL: Table = dict(
    (
        define(
            "nl-bsn", rf"{LEFT}(?:\d{{9}}|\d{{4}}\.\d{{2}}\.\d{{3}}|\d{{3}}([ .])\d{{3}}\1\d{{3}}){RIGHT}", "111222333",
            "1112.22.333", check="nl.bsn", digits=9,
        ),
        define(
            "nl-vat", r"(?<!\w)NL ?\d{4}\.?\d{2}\.?\d{3}\.?B\.?\d{2}(?!\w)", "NL4495.44.503.B01", check="nl.btw",
            digits=11,
        ),
        _number(
            "nl",
            r"bsn|burgerservice(?:nummer)?|sofi(?:nummer)?|kvk(?:-nummer)?|btw(?:-nummer)?|paspoort(?:nummer)?|rijbewijs(?:nummer)?"
            r"|identiteits(?:kaart|bewijs)(?:nummer)?|rekening(?:nummer)?|(?:klant|polis|dossier|patiënt)nummer",
            "BSN: 111222334", "KvK-nummer 12345678", "paspoort nr. NW1234567",
            value=r"(?:[A-NP-Z]{2}[A-NP-Z0-9]{0,5})?\d(?:[ .-]?\d){4,15}(?:B\d{2})?",
        ),
        _cued(
            "nl-phone",
            r"tel(?:efoon(?:nummer)?)?\.?|mobiel(?: nummer)?|mob\.|bel(?:len)?(?: (?:me|mij|ons))?(?: op)?|06-nummer",
            "bel me op 0612345678", value=r"\+?\(?\d[\d ()-]{5,16}\d", digits=7, label="phone",
        ),
        define(
            "nl-postcode", r"(?<!\w)[1-9]\d{3} ?(?!S[ADS])[A-Z]{2}(?!\w)(?: \d{1,5}(?![^\W_]))?", "1012 AB", "1012AB 12",
            digits=4, label="postcode",
        ),
        define(
            "nl-plate",
            r"(?<![\w-])(?:[A-Z]{2}-(?:\d{2}-(?:\d{2}|[A-Z]{2})|[A-Z]{2}-\d{2}|\d{3}-[A-Z])"
            r"|\d{2}-(?:\d{2}-[A-Z]{2}|[A-Z]{2}-(?:\d{2}|[A-Z]{2})|[A-Z]{3}-\d)|\d-[A-Z]{3}-\d{2}|[A-Z]-\d{3}-[A-Z]{2})(?![\w-])",
            "12-ABC-3", "AB-12-CD", digits=2, label="plate",
        ),
        _born(
            "nl", r"geboortedatum|geboren(?: te [^\W\d_]{2,30})?(?: op)?|geb\.",
            r"januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
            "geboren op 3 mei 1980", "geboortedatum: 03-05-1980",
        ),
    )
)  # fmt: skip

PT: Table = dict(
    (
        define(
            "pt-nif", rf"{LEFT}(?:PT ?)?\d{{3}}([ .]?)\d{{3}}\1\d{{3}}{RIGHT}", "PT 501 964 843", check="pt.nif", digits=9
        ),
        define("pt-id-card", r"(?<!\w)\d{8}[ -]?\d ?[A-Z0-9]{2}\d(?!\w)", "00000000 0 ZZ4", check="pt.cc", digits=10),
        define("pt-social", rf"{LEFT}[12]\d{{10}}{RIGHT}", "11234567892", check="pt-social", digits=11),
        _number(
            "pt",
            r"nif|nipc|contribuinte|niss|segurança social|número de utente|utente|sns|cart[ãa]o (?:de|do) cidad[ãa]o"
            r"|b\.?i\.?|bilhete de identidade|passaporte|carta de condução|conta|nib",
            "NIF: 501964844", "cartão de cidadão n.º 12345678 9 ZZ1", "número de utente 123456789",
            value=r"(?:[A-Z]{1,2} ?)?\d(?:[ .-]?\d){4,21}(?: ?[A-Z]{2}\d)?",
        ),
        define(
            "pt-phone", rf"{LEFT}(?:(?:\+|00)351 ?)?(?:9[1236]|2[1-9])\d([ -]?)\d{{3}}\1\d{{3}}{RIGHT}", "912 345 678",
            "912345678", digits=9, label="phone",
        ),
        define("pt-postcode", rf"{LEFT}[1-9]\d{{3}}-\d{{3}}(?: {{1,2}}{_TOWN})?(?![\w-])", "1000-205 Lisboa", digits=7,
               label="postcode"),
        define(
            "pt-plate", r"(?<![\w-])(?:[A-Z]{2}-\d{2}-(?:\d{2}|[A-Z]{2})|\d{2}-(?:[A-Z]{2}-\d{2}|\d{2}-[A-Z]{2}))(?![\w-])",
            "AA-01-BB", "12-AB-34", digits=2, label="plate",
        ),
        _born(
            "pt", r"data de nascimento|nascid[oa](?: em [^\W\d_]{2,30},?)?(?: a| em)?",
            r"janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
            "nascido a 3 de maio de 1980", "data de nascimento: 03/05/1980",
        ),
    )
)  # fmt: skip

SE: Table = dict(
    (
        define(
            "se-personal", rf"{LEFT}(?:(?:18|19|20)\d{{2}}|\d{{2}})[01]\d[0-9]\d ?[-+]?\d{{4}}{RIGHT}", "880320-0016",
            "19880320-0016", "8803200016", check="se-personal", digits=10,
        ),
        define("se-organisation", rf"{LEFT}\d{{6}}-\d{{4}}{RIGHT}", "212000-0142", check="se.orgnr", digits=10),
        define("se-vat", r"(?<!\w)SE ?\d{6}-?\d{4}-?01(?!\w)", "SE 123456789701", check="se.vat", digits=12),
        _number(
            "se",
            r"person(?:nummer|nr)|p(?:ers)?nr|samordningsnummer|org(?:anisations)?(?:\.? ?nr|nummer)|pass(?:nummer|nr)"
            r"|körkort(?:snummer)?|(?:bank|plus)giro|bg|pg|clearing(?:nummer|nr)|konto(?:nummer|nr)?|kund(?:nummer|nr)",
            "personnummer: 880320-0018", "org.nr 212000-0143", "bankgiro 5050-1055",
            value=r"(?:[A-Z]{2})?\d(?:[ ,+-]{0,2}\d){4,17}",
        ),
        _cued(
            "se-phone", r"tel(?:efon)?(?:nummer|nr)?\.?|mobil(?:nummer|nr)?|ring(?: (?:mig|oss))?(?: på)?",
            "ring mig på 070 123 45 67", value=r"\+?\(?\d[\d ()-]{5,16}\d", digits=7, label="phone",
        ),
        _cued(
            "se-plate", r"reg(?:istrerings)?(?:\.? ?nr|nummer)|bilen", "regnr ABC 12D", value=r"[A-Z]{3} ?\d{2}[A-Z0-9]",
            digits=2, label="plate",
        ),
        define(
            "se-postcode", rf"(?<!\w)(?:SE?-)?\d{{3}} \d{{2}} {{1,2}}{_TOWN}", "114 55 Stockholm", digits=5, label="postcode"
        ),
        _born(
            "se", r"födelsedatum|född(?: den)?|f\.",
            r"januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december",
            "född den 3 maj 1980", "födelsedatum: 1980-05-03",
        ),
    )
)  # fmt: skip

BR: Table = dict(
    (
        define(
            "br-cpf", rf"{LEFT}\d{{3}}\.?\d{{3}}\.?\d{{3}}[-/]?\d{{2}}{RIGHT}", "390.533.447-05", check="br.cpf", digits=11
        ),
        define(
            "br-cnpj", r"(?<!\w)[A-Z0-9]{2}\.?[A-Z0-9]{3}\.?[A-Z0-9]{3}/?[A-Z0-9]{4}-?\d{2}(?!\w|[-.]\d)",
            "16.727.230/0001-97", "12ABC34501DE35", check="br.cnpj", digits=2,
        ),
        _number(
            "br",
            r"cpf(?:/mf)?|cnpj(?:/mf)?|r\.?g\.?|cnh|pis(?:/pasep)?|nis|título de eleitor|renavam"
            r"|passaporte|conta(?: corrente)?|ag[êe]ncia|matrícula|protocolo",
            "CPF: 390.533.447-06", "RG nº 12.345.678-9", "CNPJ 16727230000198",
            value=r"(?:[A-Z]{2} ?)?\d(?:[ ./-]?\d){4,19}(?:-?X)?",
        ),
        define(
            "br-phone",
            rf"(?<![\w+])(?:\+?55 ?)?(?:\(\d{{2}}\) ?9?\d{{4}}[- ]?\d{{4}}"
            rf"|\d{{2}} 9?\d{{4}}[- ]\d{{4}}|9\d{{4}}-\d{{4}}){RIGHT}",
            "(11) 91234-5678", "11 91234-5678", digits=8, label="phone",
        ),
        define("br-postcode", rf"{LEFT}\d{{5}}-\d{{3}}{RIGHT}", "01310-100", digits=8, label="postcode"),
        define(
            "br-plate", r"(?<![\w-])[A-Z]{3}(?:-?\d{4}|\d[A-Z]\d{2})(?![\w-])", "ABC1D23", "ABC-1234", digits=3,
            label="plate",
        ),
        _born(
            "br", r"data de nascimento|nascid[oa](?: em| a)?|nasc\.",
            r"janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
            "nascida em 3 de maio de 1980", "nasc. 03/05/1980",
        ),
    )
)  # fmt: skip
