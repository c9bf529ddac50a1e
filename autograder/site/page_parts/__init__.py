"""Add parts to pages of the site: notes on exercises, a shorter sidebar, folds on the page of notation."""
