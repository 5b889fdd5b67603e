"""Import and export of fairseq's file formats, without fairseq."""
