"""Words before a full stop that may not end a sentence, and words that most likely begin one. Lower case, no stop."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEVER_LAST = _words(
    """
    adm approx bzw ca capt cf cmdr col dr dña e.g eg evtl fr gen gov hon i.e ie lt maj messrs mlle mme mmes mr mrs ms mt
    mx pres prof pvt rep rev sen sgt sra srta st supt viz vs z.b д.р т.е т.д
    """
)
"""Titles, and words that announce what follows."""

BEFORE_NUMBER = _words(
    "apt art bldg cap ch cl eq ext fig figs fl lot no nos nr op p para paras pp rm sec ste tel unit vol vols"
)
"""Not the end when a number follows: "No. 5", "Apt. 079"."""

SELDOM_LAST = _words(
    """
    al apr ariz assn aug ave blvd bros calif co colo conn corp ct dec dept dist div esq est etc feb fla ft govt hwy
    inc intl jan jr jul jun llc ln ltd mfg mich minn natl nev nov oct okla pkwy pl plc rd rte sept sq sr tenn ter
    tex tues thurs univ usw wis в.г г ул
    """
)
"""The end only when a word follows that usually begins a sentence."""

STARTERS = _words(
    """
    after all also an and another are as at because before but by can could did do does for from had has have he her
    here his how however if in is it its let many may most my no not now of okay on one or our please she should since
    so some sorry such sure thank thanks that the their then there these they this those though to was we well were
    what when where which while who why will with would yes yet you your
    """
)
"""Counted as a beginning only when capitalised."""
