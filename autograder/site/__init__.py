"""Build the static site: a Sphinx extension, and the library behind ``tfcourse build``.

``_config.yml`` loads :mod:`autograder.site.extension`, so plain ``jupyter-book build`` gives the same pages;
:func:`autograder.site.build.build_site` adds what a command needs: a clean publication, students' files, errors that say what to do.
"""
