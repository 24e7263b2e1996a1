"""Kafka's protocol: frames, headers, messages. It does not know what a message means."""
