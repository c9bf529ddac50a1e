"""Keep submissions in the course folder: names of students' folders, files beside notebooks, notes on lateness."""
