"""Build the links that open a released notebook in Colab or on Binder.

Both services fetch the notebook from a public repository. A course without one has no launch buttons, which is the default: a page
that promises a running notebook and opens an error would be worse than no button.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class LaunchSettings:
    """The location of published notebooks, from ``tfcourse_launch`` in ``_config.yml``."""

    repository: str  # address of a public GitHub repository, ``https://github.com/owner/name``
    branch: str = "main"  # branch that holds the released notebooks
    # path of a chapter's notebook in it; ``{chapter}`` stands for the chapter's name
    notebook: str = "release/{chapter}/{chapter}.ipynb"
    # path of a chapter's lesson notebook in it, or empty for none; ``{number}`` stands for the chapter's number
    lesson: str = ""
    colab: bool = True  # whether pages offer Google Colab
    binder: str = ""  # address of a BinderHub such as ``https://mybinder.org``, or empty for none

    @classmethod
    def from_config(cls, value: dict[str, Any] | None) -> LaunchSettings | None:
        """Parse the value of ``tfcourse_launch``; None without a ``repository``, so that there are no buttons.

        Raises:
            ValueError: if a key is unknown, or the repository does not have the form ``https://github.com/owner/name``.
        """
        if not value or not value.get("repository"):
            return None
        unknown = sorted(set(value) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(
                f"tfcourse_launch has unknown keys {unknown}; known are {sorted(cls.__dataclass_fields__)}"
            )
        settings = cls(**value)
        settings.owner_and_name()
        return settings

    def owner_and_name(self) -> tuple[str, str]:
        """Return the repository's owner and name.

        Raises:
            ValueError: the address is not of the form ``https://github.com/owner/name``.
        """
        address = re.fullmatch(r"https://github\.com/([^/?#]+)/([^/?#]+?)(?:\.git)?/*", self.repository)
        if address is None:
            raise ValueError(
                f"tfcourse_launch.repository is {self.repository!r}, expected https://github.com/owner/name: "
                "Colab opens notebooks from public GitHub repositories only"
            )
        return address[1], address[2]


def launch_links(settings: LaunchSettings, chapter: str) -> list[tuple[str, str]]:
    """Return (service, address) pairs that open a chapter's notebooks: the exercises, and a published lesson."""
    links = _service_links(settings, settings.notebook.format(chapter=chapter))
    if settings.lesson:
        path = settings.lesson.format(chapter=chapter, number=chapter.partition("_")[0])
        links += [(f"{name}, lesson", address) for name, address in _service_links(settings, path)]
    return links


def _service_links(settings: LaunchSettings, notebook: str) -> list[tuple[str, str]]:
    owner, name = settings.owner_and_name()
    path, branch = quote(notebook), quote(settings.branch, safe="")
    links = []
    if settings.colab:
        links.append(("Colab", f"https://colab.research.google.com/github/{owner}/{name}/blob/{branch}/{path}"))
    if settings.binder:
        links.append(("Binder", f"{settings.binder.rstrip('/')}/v2/gh/{owner}/{name}/{branch}?urlpath=lab/tree/{path}"))
    return links
