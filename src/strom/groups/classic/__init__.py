"""Classic groups: the clients' leader shares the work, the coordinator keeps them in step."""
