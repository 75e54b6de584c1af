"""Words before a full stop that may not end a sentence, and words that most likely begin one. Lower case, no stop.

English first, then German, French, Spanish, Italian, Dutch, Polish and Portuguese, for every text: its language is not
asked. A stop that is missed only makes a record longer; one too many cuts a name or an address in two.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEVER_LAST = _words(
    """
    adm approx bzw ca capt cf cmdr col dr dña e.g eg evtl fr gen gov hon i.e ie lt maj messrs mlle mme mmes mr mrs ms mt
    mx pres prof pvt rep rev sen sgt sra srta st supt viz vs z.b д.р т.е т.д
    abs az dipl d.h einschl evtl fam ggf h.c habil hr hrn inh ing inkl i.v jur lfd mult phil rdnr sog u.a usf verh vgl verst
    ziff z.zt zzgl
    mgr mlles vve
    avda ctra dn dª d.ª excmo ilmo núm pza s.a sras
    dott egr geom sigg sig.ra sig.na spett
    dhr drs jhr mej mevr mr.dr
    adw hab inż ks płk poz prok sygn tj tzn ust woj zob św
    dra eng.º exma exmo ilma pça sª tv
    """
)
"""Titles, and words that announce what follows."""

BEFORE_NUMBER = _words(
    "apt art bldg cap ch cl eq ext fig figs fl lot no nos nr op p para paras pp rm sec ste tel unit vol vols "
    "anm bd bl hs hsnr kap kto plz rn rs rz seite tz bte ft párr pág págs arts fasc pag tav blz blok wyd par lit pkt kod fls"
)
"""Not the end when a number follows: "No. 5", "Apt. 079"."""

SELDOM_LAST = _words(
    """
    al apr ariz assn aug ave blvd bros calif co colo conn corp ct dec dept dist div esq est etc feb fla ft govt hwy
    inc intl jan jr jul jun llc ln ltd mfg mich minn natl nev nov oct okla pkwy pl plc rd rte sept sq sr tenn ter
    tex tues thurs univ usw wis в.г г ул
    bf ff fa gem geb gest str pl tel med nat rer theol
    av bd chem cie fg imp rte sté
    c esq izda dcha urb
    res tel
    dr kerkstr pln
    al d gm i lit m pow r sp tys ul ur wsp zam zm
    lda trav
    """
)
"""The end only when a word follows that usually begins a sentence."""

STARTERS = _words(
    """
    after all also an and another are as at because before but by can could did do does for from had has have he her
    here his how however if in is it its let many may most my no not now of okay on one or our please she should since
    so some sorry such sure thank thanks that the their then there these they this those though to was we well were
    what when where which while who why will with would yes yet you your
    auch bitte danach danke dann das dies diese dieser er es ich sie und wir aber
    elle elles il ils je merci mais nous vous cette
    ella ellos gracias nosotros pero también
    grazie io lui lei noi però
    bedankt hij ik maar wij zij
    dziękuję jest nie ona oni proszę tak
    ele eles obrigado
    """
)
"""Counted as a beginning only when capitalised."""
