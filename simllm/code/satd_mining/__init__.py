"""Mining of git histories for repayments of self-admitted technical debt (SATD).

Developers admit technical debt in comments such as "TODO: handle errors". A commit may repay the debt if it
deletes such a comment and changes the function to which the comment belongs.
"""
