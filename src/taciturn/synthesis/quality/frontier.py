"""A score as MAUVE is one (Pillutla et al. 2021): texts as vectors, vectors in clusters, and the area under the frontier of
the two Kullback–Leibler divergences of what the clusters hold. *Like* it: MAUVE's own numbers are of GPT-2 large.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import rel_entr

from taciturn.models.hf import context_length
from taciturn.models.tokens import encode_all
from taciturn.synthesis.quality.distances import Bools, Distance, permuted

SCALE, GRID, CLUSTERS, PARTS = 5.0, 25, 500, 50
"""c of the frontier and its points, as published; clusters at most, a tenth of the texts; dimensions of n-grams."""

Floats = NDArray[np.float64]


def mauve_like(features: Floats, synthetic: Bools, seed: int) -> Distance:
    """1 where both kinds of text fill the clusters alike, towards 0 where they share none. features: [texts, dimensions]."""
    clusters = clustered(features, int(min(synthetic.sum(), (~synthetic).sum())), seed)
    size = int(clusters.max()) + 1

    def statistic(which: Bools) -> float:
        return area(*(np.bincount(clusters[of], minlength=size) for of in (which, ~which)))

    return permuted("mauve-like", statistic, synthetic, seed, higher=False)


def clustered(features: Floats, smaller: int, seed: int) -> NDArray[np.int64]:
    """The cluster of each text; of length-one vectors."""
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import normalize

    unit = normalize(features)
    number = min(max(2, min(CLUSTERS, round(smaller / 10))), len(np.unique(unit.round(9), axis=0)))
    found: NDArray[np.int64] = KMeans(number, n_init=1, random_state=seed).fit_predict(unit).astype(np.int64)
    return found


def area(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    """Of two histograms over the same clusters: the area under (e^{−c·KL(Q‖R)}, e^{−c·KL(P‖R)}), R = λP + (1−λ)Q."""
    p, q = ours / ours.sum(), theirs / theirs.sum()
    curve = [(0.0, 1.0)]
    for weight in np.linspace(1e-6, 1 - 1e-6, GRID)[::-1]:
        r = weight * p + (1 - weight) * q
        curve.append((float(np.exp(-SCALE * rel_entr(q, r).sum())), float(np.exp(-SCALE * rel_entr(p, r).sum()))))
    x, y = np.array([*curve, (1.0, 0.0)]).T
    return float(np.trapezoid(y, x))


def of_ngrams(texts: Sequence[Sequence[str]], seed: int) -> Floats:
    """Texts, as words, as vectors of weighted words and pairs, [texts, at most PARTS]."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    runs = [[*each, *map(" ".join, pairwise(each))] or [""] for each in texts]
    weighted = TfidfVectorizer(analyzer=lambda each: each, max_features=20_000, sublinear_tf=True).fit_transform(runs)
    parts = min(PARTS, weighted.shape[1] - 1)
    if parts < 1:
        return np.ones((len(texts), 1))
    found: Floats = TruncatedSVD(parts, random_state=seed).fit_transform(weighted)
    return found


def of_model(model: Any, tokenizer: Any, texts: Sequence[str], batch: int = 32) -> Floats | None:
    """Texts as what the last layer makes of the last token, [texts, width]; None where a model does not show it."""
    tokens = encode_all(tokenizer, texts, context_length(model))
    out = []
    with torch.inference_mode():
        for first in range(0, len(texts), batch):
            rows = range(first, min(first + batch, len(texts)))
            lengths = [len(tokens[row]) for row in rows]
            ids = torch.zeros(len(rows), max(lengths), dtype=torch.long)
            for i, row in enumerate(rows):  # on the right, where nothing before it reads it
                ids[i, : lengths[i]] = torch.from_numpy(tokens[row].astype("int64"))
            attended = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
            states = model(
                ids.to(model.device), attention_mask=attended.long().to(model.device), output_hidden_states=True
            )
            if getattr(states, "hidden_states", None) is None:
                return None
            last = states.hidden_states[-1].cpu()[torch.arange(len(rows)), torch.tensor(lengths) - 1]
            out.append(last.double().numpy())
    return np.concatenate(out)
