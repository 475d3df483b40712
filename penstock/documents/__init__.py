"""XML documents, the tree patterns that subscriptions ask of them, and their matching."""
