"""Repairs of accessibility roles that docutils writes and that are no longer valid."""

from __future__ import annotations

_DEPRECATED = 'role="doc-biblioentry"'
_VALID = 'role="listitem"'


def with_valid_roles(body: str) -> str:
    """Return a page's body with bibliography entries marked as the items of their list.

    docutils gives entries the role ``doc-biblioentry``, which ARIA 1.1 of digital publishing deprecated in favour of ``listitem``; screen
    readers ignore it, and with it the list, which then has no items.
    """
    return body.replace(_DEPRECATED, _VALID)
