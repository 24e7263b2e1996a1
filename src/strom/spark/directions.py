"""Which options are for reads only, and which for writes only.

A view has the options of both; each side leaves alone what is the other's. Elsewhere they are
mistakes, and told to have no effect.
"""

from strom.spark.option_names import CONSUMER_SETTINGS, KAFKA, SOURCE_OPTIONS, WITHOUT_EFFECT
from strom.spark.write_options import PRODUCER_SETTINGS, SINK_OPTIONS
from strom.spark.write_options import WITHOUT_EFFECT as WITHOUT_EFFECT_ON_WRITES

_READING = frozenset(each.lower() for each in SOURCE_OPTIONS) | {
    f"{KAFKA}{each}" for each in (*CONSUMER_SETTINGS, *WITHOUT_EFFECT)
}
_WRITING = frozenset(each.lower() for each in SINK_OPTIONS) | {
    f"{KAFKA}{each}" for each in (*PRODUCER_SETTINGS, *WITHOUT_EFFECT_ON_WRITES)
}
READING_ONLY = _READING - _WRITING
WRITING_ONLY = _WRITING - _READING
