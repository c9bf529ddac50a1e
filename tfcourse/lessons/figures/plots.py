"""Matplotlib figures in the course's style, which follow the colours of their page.

Matplotlib is imported inside the functions: `tfcourse` itself does not need it, only the lessons do.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tfcourse.lessons.figures.colours import weight_colormap

#: Blue, vermilion, bluish green, reddish purple and grey: the hues of Okabe and Ito's palette for all kinds of colour
#: vision that also keep a contrast of at least 3:1 on a white and on a near-black page.
PALETTE: tuple[str, ...] = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6e6e6e")

#: The colour of everything that must take the colour of the page's text. No figure needs this near-black for itself.
INK = "#010203"

# Under this name matplotlib knows the course's colour map.
_COLORMAP = "tfcourse"

# The theme puts a light box under every HTML output of its dark pages. A figure in currentColor wants the page itself.
_ON_DARK_PAGE = (
    "html[data-theme=dark] .bd-content div.cell_output .text_html:has(svg.tfcourse-figure)"
    "{background-color:transparent;color:inherit;padding:0}"
)

# What is wider than this, in inches, is too small to read on a phone, whose figures have the other width; the bound is that of a drawing.
_WIDEST, _PHONE, _BOUND = 5.2, 3.6, 527
_TWO_WIDTHS = (
    ".tfcourse-plot{container-type:inline-size}.tfcourse-plot>.tfcourse-plot-narrow{display:none}"
    f"@container (max-width: {_BOUND}px)"
    "{.tfcourse-plot>.tfcourse-plot-narrow{display:block}.tfcourse-plot>.tfcourse-plot-wide{display:none}}"
)


def _settings() -> dict[str, Any]:
    """The rcParams of the course's figures."""
    from cycler import cycler

    inked = ("text.color", "axes.labelcolor", "axes.titlecolor", "axes.edgecolor", "xtick.color", "ytick.color")
    cycle = cycler(color=list(PALETTE)) + cycler(marker=["o", "s", "^", "D", "v"])
    return {
        **dict.fromkeys(inked, INK),
        "axes.facecolor": "none",
        "axes.grid": False,
        "axes.prop_cycle": cycle + cycler(linestyle=["-", "--", "-.", ":", "-"]),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": "medium",
        "figure.constrained_layout.use": True,
        "figure.facecolor": "none",
        "font.size": 11,
        "grid.alpha": 0.3,
        "grid.color": INK,
        "image.cmap": _COLORMAP,
        "legend.frameon": False,
        "lines.linewidth": 2.0,
        "lines.markersize": 5.0,
        "patch.edgecolor": INK,
        "savefig.facecolor": "none",
    }


@contextmanager
def style() -> Iterator[tuple[str, ...]]:
    """Draw in the course's style inside a `with` block.

    Text, ticks and spines are drawn in `INK`, which `show` turns into the colour of the page's text. Each colour of the cycle comes with a
    marker and a dash pattern, so that lines do not differ in colour alone. Give `INK` as the colour of any further line or text that has to
    follow the page.

    Yields:
        The palette: five colours, as `#rrggbb`, with a contrast of 3:1 or more on light and on dark pages.

    Example:
        >>> with style() as (blue, vermilion, *_):
        ...     fig, ax = plt.subplots()
    """
    import matplotlib as mpl

    if _COLORMAP not in mpl.colormaps:
        mpl.colormaps.register(weight_colormap(), name=_COLORMAP)
    with mpl.rc_context(_settings()):
        yield PALETTE


def to_html(fig: Any, *, alt: str) -> str:
    """Turn a figure into HTML: one SVG, or two for wide figures, of which the second is laid out for a phone.

    Args:
        fig: a matplotlib figure that was drawn inside `style`. The layout of a wide one is changed.
        alt: what the figure shows, as in `to_svg`.

    Returns:
        The SVG of `to_svg`, or a `<div>` with two.
    """
    wide = to_svg(fig, alt=alt)
    if fig.get_figwidth() <= _WIDEST:
        return wide
    _lay_out_for_a_phone(fig)
    layouts = (
        f'<div class="tfcourse-plot-wide">{wide}</div><div class="tfcourse-plot-narrow">{to_svg(fig, alt=alt)}</div>'
    )
    return f'<div class="tfcourse-plot"><style>{_TWO_WIDTHS}</style>{layouts}</div>'


def _lay_out_for_a_phone(fig: Any) -> None:
    """Put the panels of a row below each other, unless they are bare images, and the legends below the panels; wrap what is written."""
    panels = [ax for ax in fig.axes if ax.get_subplotspec() is not None]
    rows, columns = (max(getattr(ax.get_gridspec(), count) for ax in panels) for count in ("nrows", "ncols"))
    width, height = fig.get_size_inches()
    fig.set_layout_engine("constrained")
    if columns > 1 and any(ax.get_xticks().size for ax in panels):
        for cell, ax in zip(fig.add_gridspec(len(panels), 1), panels, strict=True):
            ax.set_subplotspec(cell)
            ax.tick_params(labelleft=True, labelbottom=True)
            if ax.get_shared_y_axes().joined(ax, panels[0]):
                ax.set_ylabel(panels[0].get_ylabel())
        height = max(2.2, height / rows) * len(panels)
    elif columns > 1:
        height *= max(0.7, _PHONE / width)
    legends = [*(ax.get_legend() for ax in fig.axes if ax.get_legend()), *fig.legends]
    entries = {
        text.get_text(): handle
        for legend in legends
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
    }
    for legend in legends:
        legend.remove()
    if entries:
        shared = 2 if max(map(len, entries)) < 22 else 1
        title = legends[0].get_title().get_text() or None
        fig.legend(
            entries.values(), entries, loc="outside lower center", ncols=shared, fontsize=9, title=title, frameon=False
        )
        height += 0.2 * -(-len(entries) // shared)
    fig.set_size_inches(_PHONE, height)
    for ax in fig.axes:
        ax.tick_params(labelsize=9)
    fig.draw_without_rendering()
    for ax in fig.axes:
        room = ax.get_position()
        across, up = 14 * room.width * _PHONE, 13 * room.height * height  # characters that fit
        for label, fitting in ((ax.title, across), (ax.xaxis.label, across), (ax.yaxis.label, up)):
            label.set_fontsize(10)
            if "$" not in label.get_text():
                label.set_text(textwrap.fill(label.get_text(), max(8, int(fitting))))


def to_svg(fig: Any, *, alt: str) -> str:
    """Turn a figure into one inline SVG element that follows the colours of the page.

    Args:
        fig: a matplotlib figure that was drawn inside `style`.
        alt: what the figure shows, for whoever cannot see it. One or two sentences, not the caption again.

    Returns:
        `<svg role="img" aria-label=...>...</svg>`: transparent, with `currentColor` for the ink, with identifiers that
        no other figure on the page shares, and the same bytes on every run.

    Raises:
        ValueError: if `alt` is blank, or if nothing in the figure is drawn in `INK` (it was not drawn inside `style`).
    """
    import matplotlib as mpl

    if not alt.strip():
        raise ValueError("a figure needs a description for readers who cannot see it: pass alt='...'")
    buffer = io.StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({"svg.hashsalt": "tfcourse", "svg.fonttype": "path"}):
        # Every drawing moves a constrained layout a little further: settle it, so that each call gives the same bytes.
        fig.draw_without_rendering()
        fig.set_layout_engine("none")
        fig.savefig(buffer, format="svg", transparent=True, metadata=no_metadata)
    drawing = buffer.getvalue()
    if INK not in drawing:
        raise ValueError("nothing in the figure follows the page's text colour: draw it inside `with figures.style():`")
    drawing = drawing[drawing.index("<svg") :].strip().replace(INK, "currentColor")
    drawing = re.sub(r"\s*<metadata>.*?</metadata>|\s*<!--.*?-->", "", drawing, flags=re.DOTALL)
    drawing = _with_own_identifiers(drawing)
    return _with_own_root(drawing, alt)


def _with_own_identifiers(drawing: str) -> str:
    """Prefix every id, and every reference to one: a page holds many figures, and ids are the page's."""
    prefix = "f" + hashlib.sha256(drawing.encode()).hexdigest()[:8]
    drawing = re.sub(r'(?<=\sid=")', f"{prefix}-", drawing)
    return re.sub(r'(?<=href="#)|(?<=url\(#)', f"{prefix}-", drawing)


def _with_own_root(drawing: str, alt: str) -> str:
    """Replace matplotlib's `<svg>` tag, and its style sheet, which would apply to the whole page."""
    match = re.match(r"<svg[^>]*>", drawing)
    assert match is not None  # to_svg has cut the text to begin here
    width, box = (re.search(rf'\s{name}="([^"]*)"', match[0]) for name in ("width", "viewBox"))
    assert width is not None
    assert box is not None
    body = re.sub(r'\s*<defs>\s*<style type="text/css">.*?</style>\s*</defs>', "", drawing[match.end() :], flags=re.S)
    look = f"width:{width[1]};max-width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt"
    return (
        f'<svg class="tfcourse-figure" role="img" aria-label="{html.escape(alt)}" viewBox="{box[1]}" style="{look}"'
        ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<style>{_ON_DARK_PAGE}</style>{body}"
    )
