"""The quorum's protocol. It does not know what a topic is."""
