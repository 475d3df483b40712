"""Views: tree patterns over documents that feed each other, planned under capacity limits."""
