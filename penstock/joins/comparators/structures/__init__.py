"""What several published schemes are built on."""
