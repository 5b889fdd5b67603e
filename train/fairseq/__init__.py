"""Import and export of the file formats of fairseq (a training library), without fairseq itself."""
