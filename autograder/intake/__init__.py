"""Take work in: downloads, the people who handed them in, and one untrusted notebook."""
