"""Groups of consumers and their offsets: what their coordinator decides."""
