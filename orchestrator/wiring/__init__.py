"""Put adapters and use cases together: the only place that knows both."""
