"""How long the tests look for a counterexample: `make check` is content with a fifth of it."""

import os

from hypothesis import HealthCheck, settings

IN_SHORT = "STROM_TESTS_IN_SHORT"
SHARE = 5
USUAL = 100


def examples(number=USUAL):
    """Return of how many examples a test is made that takes `number` when there is time."""
    return max(number // SHARE, 1) if os.environ.get(IN_SHORT) else number


def load_profile():
    """Have the same examples everywhere, however slow the machine: a failure is everybody's.

    `--hypothesis-profile=default` looks for new ones.
    """
    settings.register_profile(
        "steady",
        max_examples=examples(),
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("steady")
