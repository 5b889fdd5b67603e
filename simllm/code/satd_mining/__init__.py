"""Mining of git histories for repayments of self-admitted technical debt (SATD).

Developers admit technical debt in comments such as "TODO: handle errors". A commit may repay the debt if it
deletes such a comment and changes the function to which the comment belongs. A repayment is this function
before and after the commit. Deleted comments must fulfil `RULES`, and then `LATER_RULES`, in order. A judge
is a language model that says whether a repayment is real. An item is a repayment in the output file.
"""
