/*
 * <dial-explorer>: a query and a key turned by their places, and their score by the difference, made by tfcourse.explorers.dials.
 *
 * Keyboard: a tab stop each for the ways and the pairs (arrows choose), and two native sliders for the places.
 */
(() => {
  "use strict";

  const { Explorer, choice, define, draw, make, slider } = globalThis.tfcourse;

  class DialExplorer extends Explorer {
    static tables = "Places to a full turn, as a table";

    build() {
      const { longest, ways } = this.data;
      Object.assign(this, { way: 0, pair: 1, query: 12, key: 9 });
      this.ways = choice({ label: "Turned", options: ways.map(({ name }) => name), onChoose: (way) => this.choose({ way }), legend: true });
      this.pairs = choice({
        label: "Pair",
        options: ways[0].turns.map((_, number) => `${number + 1}`),
        onChoose: (pair) => this.choose({ pair }),
        legend: true,
      });
      const place = (label, which) => slider({ label, max: longest, onInput: (value) => this.choose({ [which]: value }) });
      this.sliders = { query: place("query at m", "query"), key: place("key at n", "key") };
      this.dial = make("div", { className: "de-dial" });
      this.curve = make("div", { className: "de-curve" });
      return [
        this.ways.element,
        this.pairs.element,
        this.sliders.query.element,
        this.sliders.key.element,
        make("div", { className: "de-views" }, this.dial, this.curve),
      ];
    }

    /** The mean over all pairs of the cosine of the angle between query and key. */
    score(offset) {
      const { turns } = this.data.ways[this.way];
      return turns.reduce((sum, turn) => sum + Math.cos(offset * turn), 0) / turns.length;
    }

    render() {
      this.ways.mark(this.way);
      this.pairs.mark(this.pair);
      for (const which of ["query", "key"]) this.sliders[which].mark(this[which]);
      const turn = this.data.ways[this.way].turns[this.pair];
      const hand = (place, name) => {
        const angle = place * turn;
        return draw("line", { x1: 0, y1: 0, x2: (0.92 * Math.cos(angle)).toFixed(4), y2: (-0.92 * Math.sin(angle)).toFixed(4), class: `de-${name}` });
      };
      this.dial.replaceChildren(
        draw("svg", { viewBox: "-1.05 -1.05 2.1 2.1", "aria-hidden": "true" }, draw("circle", { r: 1, class: "de-face" }), hand(this.key, "key"), hand(this.query, "query")),
      );
      this.drawCurve();
      const offset = this.query - this.key;
      const degrees = ((((offset * turn * 180) / Math.PI) % 360) + 360) % 360;
      const beyond = Math.abs(offset) >= this.data.trained ? " No training text was as long as this difference." : "";
      this.say(
        `Difference ${offset < 0 ? "\u2212" : ""}${Math.abs(offset)}: the hands of pair ${this.pair + 1} are ${Math.round(degrees) % 360} degrees apart; ` +
          `all pairs together score ${this.score(offset).toFixed(2).replace("-", "\u2212")}.${beyond}`,
      );
    }

    /** The score by the difference, with the part that no training text has reached in grey. */
    drawCurve() {
      const { longest, trained } = this.data;
      const [width, height] = [320, 130];
      const x = (offset) => 4 + (offset / longest) * (width - 8);
      const y = (score) => height / 2 - score * (height / 2 - 6);
      const points = Array.from({ length: longest + 1 }, (_, offset) => `${x(offset).toFixed(1)},${y(this.score(offset)).toFixed(1)}`);
      const now = x(Math.abs(this.query - this.key));
      this.curve.replaceChildren(
        draw(
          "svg",
          { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
          draw("rect", { x: x(trained), y: 0, width: width - x(trained), height, class: "de-beyond" }),
          draw("line", { x1: 4, x2: width - 4, y1: y(0), y2: y(0), class: "de-face" }),
          draw("polyline", { points: points.join(" "), class: "de-sum" }),
          draw("line", { x1: now, x2: now, y1: 2, y2: height - 2, class: "de-now" }),
        ),
        make("p", { className: "explorer-legend" }, `score by difference, 0 to ${longest}; grey: longer than any training text`),
      );
    }
  }

  define("dial-explorer", DialExplorer);
})();
