"""One partition on disk, in Kafka's own files. It does not know what a leader is."""
