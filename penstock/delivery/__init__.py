"""The one read path: what a subscription is told, from a cursor on."""
