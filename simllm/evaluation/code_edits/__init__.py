"""Studies of systems that edit code, such as repair tools: their edits are compared with reference edits."""
