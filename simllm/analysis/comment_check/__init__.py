"""Comments that no longer fit their code: what they say, what the code does, and where both disagree.

A documentation comment makes claims: it names parameters, a result, exceptions, values. A claim is broken if
the code contradicts it. An alarm is a broken claim, with its place. In a range of commits, a claim is only
broken by a change of the code that left the comment as it was.
"""
