"""Add parts to pages of the site: notes on exercises, a shorter sidebar, folded tables of notation."""
