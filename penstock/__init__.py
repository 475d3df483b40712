"""Penstock: standing SQL queries at scale."""
