"""What goes wrong with a pipeline, in words that name the step and say what to do."""

from collections.abc import Sequence


class PipelineError(Exception):
    """A pipeline cannot be loaded, checked, run or stopped."""


class DeclarationError(PipelineError):
    """The pipeline as it is written cannot run; all that is wrong with it, a line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class StepError(PipelineError):
    """A source, step or sink failed."""

    def __init__(self, step: str, text: str) -> None:
        super().__init__(f"{step}: {text}")
        self.step = step
        self.text = text


class ChangedError(PipelineError):
    """The pipeline is no longer the one that its checkpoints are of."""


class BusyError(PipelineError):
    """The pipeline runs already."""
