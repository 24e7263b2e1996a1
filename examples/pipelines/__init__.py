"""Small pipelines, each for one thing that can be done with a stream; see docs/pipelines.md."""
