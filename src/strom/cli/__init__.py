"""The `strom` command: one noun a file."""
