"""Seeded generators of subscriptions and events."""
