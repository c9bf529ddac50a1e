/*
 * <reach-explorer>: a picture under a grid of patches, made by tfcourse.lessons.explorers.reaches. The places that the chosen one has heard of after
 * some layers are lit, all others dimmed. In a line as in a column a place hears of an interval, so what it reaches is a rectangle.
 *
 * Keyboard: a tab stop with arrows for each choice, and native sliders; a click on the picture chooses a place.
 */
(() => {
  "use strict";

  const { Explorer, choice, clamp, define, draw, make, slider } = globalThis.tfcourse;

  class ReachExplorer extends Explorer {
    static tables = "Costs and reach as a table";

    build() {
      const { ways, sides, mostLayers } = this.data;
      Object.assign(this, { way: Math.min(2, ways.length - 1), side: Math.min(1, sides.length - 1), layers: 1 });
      this.row = Math.floor(this.count / 3);
      this.column = Math.floor(this.count / 2);
      const options = { legend: true };
      this.choices = {
        way: choice({ ...options, label: "Who looks at whom", options: ways, onChoose: (way) => this.choose({ way }) }),
        side: choice({ ...options, label: "Pixels of a patch", options: sides.map(String), onChoose: (side) => this.chooseSide(side) }),
      };
      this.places = make("div", { className: "re-sliders" });
      this.layerSlider = slider({ label: "layers", min: 1, max: mostLayers, onInput: (layers) => this.choose({ layers }) });
      this.makeSliders();
      this.picture = make("div", { className: "re-picture" });
      this.figures = make("dl", { className: "re-figures" });
      return [
        make("div", { className: "explorer-controls" }, ...Object.values(this.choices).map(({ element }) => element)),
        make("div", { className: "re-views" }, this.picture, make("div", {}, this.places, this.figures)),
      ];
    }

    /** Patches along a side. */
    get count() {
      return this.data.size / this.data.sides[this.side];
    }

    makeSliders() {
      const max = this.count;
      this.sliders = {
        row: slider({ label: "row", min: 1, max, onInput: (row) => this.choose({ row: row - 1 }) }),
        column: slider({ label: "column", min: 1, max, onInput: (column) => this.choose({ column: column - 1 }) }),
      };
      const all = [this.sliders.row, this.sliders.column, this.layerSlider];
      this.places.replaceChildren(...all.map(({ element }) => element));
    }

    /** Other patches: the place stays where it is on the picture. */
    chooseSide(side) {
      const before = this.count;
      this.side = side;
      const moved = (place) => clamp(Math.floor(((place + 0.5) * this.count) / before), 0, this.count - 1);
      this.row = moved(this.row);
      this.column = moved(this.column);
      this.makeSliders();
      this.choose({});
    }

    /** What an interval of places has heard of after one more layer. */
    spread([first, last], layer) {
      const n = this.count;
      const way = this.data.ways[this.way];
      if (way === "all to all") return [0, n - 1];
      if (way === "neighbours") return [Math.max(0, first - this.data.far), Math.min(n - 1, last + this.data.far)];
      const window = Math.min(this.data.window, n);
      const shift = way === "shifted windows" && layer % 2 && window < n ? Math.floor(window / 2) : 0;
      const group = (place) => Math.floor((place - shift) / window);
      return [Math.max(0, group(first) * window + shift), Math.min(n - 1, (group(last) + 1) * window + shift - 1)];
    }

    /** The interval that a place has heard of after so many layers. */
    heard(place, layers) {
      let interval = [place, place];
      for (let layer = 0; layer < layers; layer++) interval = this.spread(interval, layer);
      return interval;
    }

    /** Layers until everything has met everything, or null. */
    get untilAll() {
      const n = this.count;
      for (let layers = 0; layers <= 2 * n; layers++) {
        const done = Array.from({ length: n }, (_, place) => this.heard(place, layers)).every(([first, last]) => first === 0 && last === n - 1);
        if (done) return layers;
      }
      return null;
    }

    /** Pairs that a layer looks at. */
    get pairs() {
      let line = 0;
      for (let place = 0; place < this.count; place++) {
        const [first, last] = this.heard(place, 1);
        line += last - first + 1;
      }
      return line ** 2;
    }

    get reading() {
      const [rows, columns] = [this.heard(this.row, this.layers), this.heard(this.column, this.layers)];
      return {
        rows,
        columns,
        reached: (rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1),
        tokens: this.count ** 2,
        pairs: this.pairs,
        operations: 4 * this.data.width * this.pairs,
        untilAll: this.untilAll,
      };
    }

    render() {
      this.choices.way.mark(this.way);
      this.choices.side.mark(this.side);
      this.sliders.row.mark(this.row + 1);
      this.sliders.column.mark(this.column + 1);
      this.layerSlider.mark(this.layers);
      const seen = this.reading;
      this.drawPicture(seen);
      this.drawFigures(seen);
      this.say(this.describe(seen));
    }

    drawPicture({ rows, columns }) {
      const { picture, alt, size } = this.data;
      const n = this.count;
      const cell = size / n;
      const box = ([first, last], [left, right]) => ({
        x: left * cell,
        y: first * cell,
        width: (right - left + 1) * cell,
        height: (last - first + 1) * cell,
      });
      const lit = box(rows, columns);
      const around = `M0 0H${size}V${size}H0Z M${lit.x} ${lit.y}v${lit.height}h${lit.width}v${-lit.height}Z`;
      const lines = Array.from({ length: n - 1 }, (_, i) => `M${(i + 1) * cell} 0V${size}M0 ${(i + 1) * cell}H${size}`).join("");
      const svg = draw(
        "svg",
        { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": `${alt} Under a grid of ${n} by ${n} patches; the patches on which the chosen one depends are lit.` },
        draw("image", { href: picture, width: size, height: size }),
        draw("path", { class: "re-lines", d: lines }),
        draw("path", { class: "re-dim", d: around, "fill-rule": "evenodd" }),
        draw("rect", { class: "re-lit", ...lit }),
        draw("rect", { class: "re-place", ...box([this.row, this.row], [this.column, this.column]) }),
      );
      svg.addEventListener("click", (event) => {
        const frame = svg.getBoundingClientRect();
        const at = (position, length) => clamp(Math.floor((n * position) / length), 0, n - 1);
        this.choose({ row: at(event.clientY - frame.top, frame.height), column: at(event.clientX - frame.left, frame.width) });
      });
      this.picture.replaceChildren(svg);
    }

    drawFigures({ reached, tokens, pairs, operations, untilAll }) {
      const rows = [
        ["tokens", tokens.toLocaleString("en")],
        ["depends on", reached.toLocaleString("en")],
        ["pairs in a layer", pairs.toLocaleString("en")],
        [`operations in a layer, D = ${this.data.width}`, `${(operations / 1e9).toPrecision(3)} \u00b7 10\u2079`],
        ["layers until every patch depends on every other", untilAll === null ? "never" : String(untilAll)],
      ];
      this.figures.replaceChildren(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
    }

    /** What the figure shows, in two or three sentences. */
    describe({ reached, tokens, pairs, untilAll }) {
      const { ways, sides } = this.data;
      const layers = this.layers === 1 ? "one layer" : `${this.layers} layers`;
      const met = untilAll === null ? "Not every patch ever depends on every other." : `Layers until every patch depends on every other: ${untilAll}.`;
      return (
        `Patches of ${sides[this.side]} pixels, ${ways[this.way]}: after ${layers} the patch in row ${this.row + 1}, column ${this.column + 1} ` +
        `depends on ${reached.toLocaleString("en")} of ${tokens.toLocaleString("en")}. ${pairs.toLocaleString("en")} pairs in a layer. ${met}`
      );
    }
  }

  define("reach-explorer", ReachExplorer);
})();
