"""Topics as Spark sources and sinks: `format("strom")`, in Python, with Arrow on both sides."""
