"""The course folder: its layout, configuration and lock, paths, the site's address, and known errors of libraries."""
