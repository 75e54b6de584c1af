"""The data sets of the three papers, from files that a user has or by their names on the hub; nothing is downloaded here
and nothing is shipped.

    loaded = load("qnli", "glue_data", "valid")
    screened = screen(loaded.corpus, policy)
    print(loaded.note)                            # what differs from the paper: samples, missing splits, licences
"""

from taciturn.data.loaders.load import HUB, Loaded, hub_name, load, names

__all__ = ["HUB", "Loaded", "hub_name", "load", "names"]
