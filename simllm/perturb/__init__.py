"""Rule-based edits of texts: rewordings, and changes of their meaning."""
