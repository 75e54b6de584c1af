"""One file per published table or figure of the three papers, each with the paper's setting, ours, and both results."""

from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Built, Inputs, Plot, Recipe, Results, Series, Table, statements
from taciturn.recipes.registry import names, recipe, run

__all__ = [
    "Built",
    "Inputs",
    "Plot",
    "Recipe",
    "Results",
    "Series",
    "Table",
    "Work",
    "names",
    "recipe",
    "run",
    "statements",
]
