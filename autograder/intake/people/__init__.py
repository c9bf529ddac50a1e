"""Keep the class: read lists, match people to submissions, name strangers, and say for whom a chapter counts."""
