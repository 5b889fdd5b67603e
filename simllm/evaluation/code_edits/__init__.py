"""Studies of systems that edit code, such as repair tools: their edits are compared with reference edits.

- An item is a piece of code to edit, the source. Its reference is the code after the right edit.
- A candidate, or attempt, is the edited code of one system for one item; there may be several.
- A candidate solves an item if it passes the item's tests. If no test result is known, it solves the item if
  it equals the reference, apart from layout, comments, docstrings and imports.
- A family is a system without its variant, such as a prompt.
- The baseline is a system that returns every source unchanged.
"""
