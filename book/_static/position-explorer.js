/*
 * <position-explorer>: position encodings and the dot products of their rows, made by tfcourse.lessons.explorers.positions. The matrix is on the
 * left, the dot products of a chosen row with all rows on the right.
 *
 * Keyboard: one tab stop for the encodings (arrows choose), and two native sliders for the positions.
 */
(() => {
  "use strict";

  const { Explorer, choice, define, draw, make, slider } = globalThis.tfcourse;

  /** A number to two decimals, without a minus in front of zero. */
  function decimal(number) {
    const text = number.toFixed(2);
    return (text === "-0.00" ? "0.00" : text).replace("-", "\u2212");
  }

  class PositionExplorer extends Explorer {
    build() {
      const { encodings, start } = this.data;
      Object.assign(this, start, { encoding: 0 });
      for (const encoding of encodings) {
        const { rows } = encoding;
        encoding.products = rows.map((row) => rows.map((other) => row.reduce((sum, value, column) => sum + value * other[column], 0)));
        encoding.largest = Math.max(...rows.flat().map(Math.abs)) || 1;
      }
      const options = encodings.map(({ name }) => name);
      this.kinds = choice({ label: "Encoding", legend: true, options, onChoose: (encoding) => this.choose({ encoding }) });
      const max = encodings[0].rows.length - 1;
      const position = (label, which) => slider({ label, max, onInput: (value) => this.choose({ [which]: value }) });
      this.sliders = { first: position("position m", "first"), second: position("position n", "second") };
      this.matrix = make("div");
      this.chart = make("div");
      const sliders = make("div", { className: "pe-sliders" }, this.sliders.first.element, this.sliders.second.element);
      const kinds = encodings.length < 2 ? [] : [this.kinds.element];
      const controls = make("div", { className: "explorer-controls" }, ...kinds, sliders);
      return [controls, make("div", { className: "pe-views" }, this.matrix, this.chart)];
    }

    render() {
      this.kinds.mark(this.encoding);
      if (this.drawn !== this.encoding) this.drawEncoding();
      this.drawn = this.encoding;
      const { products } = this.data.encodings[this.encoding];
      const { first, second } = this;
      this.markers[0].setAttribute("y", first);
      this.markers[1].setAttribute("y", second);
      for (const which of ["first", "second"]) this.sliders[which].mark(this[which]);
      this.curve.setAttribute("points", this.line(first));
      const [x, y] = this.at(second - first, products[first][second]);
      this.dot.setAttribute("d", `M${x.toFixed(2)} ${y.toFixed(2)}h0`);
      this.say(this.describe());
    }

    /** Draw the matrix and the dot products of an encoding. */
    drawEncoding() {
      const { name, rows, products, largest } = this.data.encodings[this.encoding];
      const [height, width] = [rows.length, rows[0].length];
      const cells = rows.flatMap((row, y) =>
        row.map((value, x) =>
          draw("rect", {
            x,
            y,
            width: 1,
            height: 1,
            class: value < 0 ? "pe-negative" : "pe-positive",
            "fill-opacity": (Math.abs(value) / largest).toFixed(2),
          }),
        ),
      );
      this.markers = ["first", "second"].map((which) => draw("rect", { class: `pe-row pe-${which}`, x: 0, width, height: 1 }));
      const picture = draw(
        "svg",
        {
          viewBox: `-0.3 -0.3 ${width + 0.6} ${height + 0.6}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${name}: ${height} positions from top to bottom, ${width} columns. Blue is positive, orange negative.`,
        },
        ...cells,
        ...this.markers,
      );
      const title = (text) => make("p", { className: "pe-column" }, text);
      this.matrix.replaceChildren(title("one row a position, one column a feature"), picture);

      const all = products.flat();
      const [low, high] = [Math.min(0, ...all), Math.max(...all)];
      this.at = (distance, value) => [50 + (46 * distance) / (height - 1 || 1), 4 + (92 * (high - value)) / (high - low || 1)];
      const line = (values, position) => values.map((value, j) => this.at(j - position, value).map((c) => c.toFixed(2)).join(",")).join(" ");
      const others = products.map((values, position) => draw("polyline", { class: "pe-other", points: line(values, position) }));
      this.curve = draw("polyline", { class: "pe-curve" });
      this.line = (position) => line(products[position], position);
      this.dot = draw("path", { class: "pe-dot" });
      const zero = this.at(0, 0)[1];
      const axes = [
        draw("line", { class: "pe-axis", x1: 2, x2: 98, y1: zero, y2: zero }),
        draw("line", { class: "pe-axis", x1: 50, x2: 50, y1: 2, y2: 98 }),
      ];
      const plot = draw(
        "svg",
        {
          viewBox: "0 0 100 100",
          preserveAspectRatio: "none",
          role: "img",
          "aria-label":
            `${name}: dot product of position m with every position n, against the distance n minus m, ` +
            `from ${1 - height} to ${height - 1}; values from ${decimal(low)} to ${decimal(high)}.`,
        },
        ...axes,
        ...others,
        this.curve,
        this.dot,
      );
      const scale = make(
        "p",
        { className: "pe-scale", "aria-hidden": "true" },
        make("span", {}, `\u2212${height - 1}`),
        make("span", {}, "distance n \u2212 m"),
        make("span", {}, `${height - 1}`),
      );
      this.chart.replaceChildren(
        title(`dot products with m, up to ${decimal(high)}; faint: other m`),
        plot,
        scale,
      );
    }

    /** What the figure shows, in two sentences. */
    describe() {
      const { name, products } = this.data.encodings[this.encoding];
      const { first, second } = this;
      const distance = Math.abs(second - first);
      const alike = products.slice(distance).map((row, index) => row[index]);
      const [low, high] = [Math.min(...alike), Math.max(...alike)];
      const here = `${name}: positions ${first} and ${second} have the dot product ${decimal(products[first][second])}.`;
      let rest;
      if (alike.length === 1) rest = "No other two are as far apart.";
      else if (high - low < 0.005) rest = `So have all ${alike.length} pairs ${distance} apart: only the distance counts.`;
      else rest = `Among the ${alike.length} pairs ${distance} apart it goes from ${decimal(low)} to ${decimal(high)}.`;
      return `${here} ${rest}`;
    }
  }

  define("position-explorer", PositionExplorer);
})();
