"""The process: sockets, dispatch, the API modules, and what they share."""
