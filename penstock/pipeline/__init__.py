"""The data pipeline: Spark jobs that turn the log into the message log."""
