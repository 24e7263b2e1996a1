"""Pipelines as code: sources, steps and sinks in one Python file, run on Spark by `strom pipeline`.

Declaring, checking and drawing a pipeline imports no Spark (`declaration`, `graph`, `picture_*`,
`loading`); running one does (`frames`, `running`). What a pipeline leaves between two runs is in
its directory (`directory`).
"""

from strom.pipelines.declaration import Pipeline

__all__ = ["Pipeline"]
