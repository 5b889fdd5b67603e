"""Language models as judges: metrics that ask a model how good a text is, or which of two is better.

A judge is a TOML file: an endpoint with its model, a template, and a scale. A *point-wise* judge gives each
candidate a score on the scale. A *pair-wise* judge sees the candidates of two systems, in both orders, and
names the better one. A reply is *unreadable* if it names no score of the scale; it counts as no score.
"""
