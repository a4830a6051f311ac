"""How long tests wait for what must come: what takes longer hangs, as no machine is so busy.

No limit in seconds decides a test (docs/contributing.md, test/lint/check_limits.py). A deadline that a test needs to pass is a
multiple of what a run of the same kind has just taken.
"""

import contextlib
import math
import time

PATIENCE = 3600  # seconds


class Took:
    """Seconds that something took, once it is over."""

    seconds = 0.0

    def times(self, factor, least=1):
        """A deadline in whole seconds."""
        return max(least, math.ceil(factor * self.seconds))


@contextlib.contextmanager
def measured():
    """Yields what will know how long the block has taken."""
    took, begin = Took(), time.monotonic()
    try:
        yield took
    finally:
        took.seconds = time.monotonic() - begin
