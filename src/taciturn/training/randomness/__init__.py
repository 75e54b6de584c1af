"""Randomness: key streams, Gaussian noise, and the coins of Poisson sampling."""
