"""Record batches: the header view, checksums, codecs, control records, records."""
