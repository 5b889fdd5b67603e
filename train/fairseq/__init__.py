"""fairseq's file formats, read and written without fairseq: `python -m train.fairseq --help`."""
