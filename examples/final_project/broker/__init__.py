"""The broker of the project, with its settings as code."""
