"""One module per API key; each defines KEY, VERSIONS and handle."""
