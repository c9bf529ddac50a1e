"""Executes lessons side by side.

MyST-NB executes a notebook when Sphinx comes to its page, one after the other. Before Sphinx reads the first page, this executes all
lessons whose outputs are not cached at the same time, each in a kernel of its own, and puts the outputs into the cache where MyST-NB
finds them. A lesson that fails is not put there: MyST-NB executes it again, and tells what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from autograder.parallel import available_cores

_LOGGER = logging.getLogger(__name__)


def execute_lessons(app: Sphinx, env: BuildEnvironment, docnames: Sequence[str]) -> None:
    """Execute the notebooks among the pages that are going to be read, as many at once as there are processors, but two at least."""
    settings = env.mystnb_config
    if settings.execution_mode != "cache":
        return
    cache = get_cache(settings.execution_cache_path)
    waiting = [(path, notebook) for path, notebook in _notebooks(env, docnames) if not _is_cached(cache, notebook)]
    if len(waiting) < 2:
        return
    for path, _ in waiting:
        _LOGGER.info("%s: Executing notebook beside others", path)

    def execute(item: tuple[Path, Any]) -> Any:
        path, notebook = item
        return single_nb_execution(
            notebook, cwd=str(path.parent), allow_errors=False, timeout=settings.execution_timeout, meta_override=True
        )

    with ThreadPoolExecutor(max(2, available_cores())) as threads:
        # The last chapters first: they take longest, and what takes long should not begin last.
        for (path, notebook), result in zip(waiting[::-1], threads.map(execute, waiting[::-1]), strict=True):
            if result.err is None:
                bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": result.time})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def _notebooks(env: BuildEnvironment, docnames: Sequence[str]) -> list[tuple[Path, Any]]:
    """Return file and content of the pages that are notebooks and are to be executed."""
    settings, notebooks = env.mystnb_config, []
    for name in docnames:
        path = Path(env.doc2path(name))
        if any(path.match(pattern) for pattern in settings.execution_excludepatterns):
            continue
        text = path.read_text(encoding="utf-8")
        reader = create_nb_reader(str(path), env.myst_config, settings, text)
        if reader is not None:
            notebooks.append((path, reader.read(text)))
    return notebooks


def _is_cached(cache: Any, notebook: Any) -> bool:
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return True
