"""What the bytes of a value are: JSON, Avro or Protobuf of a given schema; without Spark."""
