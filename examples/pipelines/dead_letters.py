"""Dead letters: readings in Avro as columns; what cannot be read goes to a topic of its own.

A letter is the record as it was, with the reason and its old place in headers. Every other record
goes on, and `strom pipeline status` counts the letters ("Bad").
"""

from strom.pipelines import Pipeline

READING = """
{"type": "record", "name": "Reading", "fields": [
  {"name": "oven", "type": "string"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "celsius", "type": ["null", "double"]}
]}
"""

pipeline = Pipeline("oven-alarms")
pipeline.topic("readings", "oven-avro", avro=READING, dead_letters="oven-dead-letters")
pipeline.sql("too_hot", "SELECT oven, at, celsius FROM {readings} WHERE celsius > 300")
pipeline.to_topic("oven-alarms", of="too_hot", key="oven")
