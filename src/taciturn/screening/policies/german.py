"""German words that may have a capital without being a name: word lists say nothing about case, and every noun has one."""

from __future__ import annotations

from collections.abc import Set

LEAST = 4.5
"""Zipf frequency from which a noun may have its capital: thirty in a million words."""
ABROAD = ("cs", "en", "es", "fi", "fr", "it", "pl", "pt", "sv")
"""Languages in which German names are known and German nouns are not."""
FAMOUS, KNOWN = 4, 100
"""A name has, in so many of these or more, at least one in so many parts of its frequency in German."""

# Towns of more than 100,000 people, states and cantons: their German spelling is not that of other languages.
# ruff: noqa: SIM905  lists of words are read as such
PLACES = frozenset(
    "aachen augsburg bergisch bielefeld bochum bonn bottrop braunschweig bremen bremerhaven chemnitz cottbus "
    "darmstadt dortmund dresden duisburg düsseldorf erfurt erlangen essen frankfurt freiburg fürth gelsenkirchen gera "
    "göttingen gütersloh hagen halle hamburg hamm hanau hannover heidelberg heilbronn herne hildesheim ingolstadt "
    "jena kaiserslautern karlsruhe kassel kiel koblenz köln krefeld leipzig leverkusen lübeck ludwigshafen magdeburg "
    "mainz mannheim moers mönchengladbach mülheim münchen münster neuss nürnberg oberhausen offenbach oldenburg "
    "osnabrück paderborn pforzheim potsdam recklinghausen regensburg remscheid reutlingen rostock saarbrücken "
    "salzgitter siegen solingen stuttgart trier ulm wiesbaden witten wolfsburg wuppertal würzburg zwickau bayern "
    "brandenburg hessen mecklenburg niedersachsen pommern rheinland pfalz saarland sachsen anhalt schleswig holstein "
    "thüringen westfalen württemberg baden franken schwaben wien graz linz salzburg innsbruck klagenfurt villach wels "
    "burgenland kärnten niederösterreich oberösterreich steiermark tirol vorarlberg zürich genf basel lausanne bern "
    "winterthur luzern aargau graubünden solothurn thurgau wallis tessin".split()
)


def nouns(common: Set[str]) -> frozenset[str]:
    """Those of some lower-case words that are no names, with a capital.

    A word is taken for a name if it is one of ``PLACES`` or known abroad: "Müller" and "Berlin" are, "Haus" and "Vertrag"
    are not. Surnames that are frequent nouns ("Baum", "Linke") pass for nouns.
    """
    import wordfreq

    german = wordfreq.get_frequency_dict("de", wordlist="small")
    abroad = [wordfreq.get_frequency_dict(code, wordlist="small") for code in ABROAD]
    return frozenset(
        word.capitalize()
        for word in common - PLACES
        if word.isalpha() and sum(KNOWN * each.get(word, 0.0) > german[word] for each in abroad) < FAMOUS
    )
