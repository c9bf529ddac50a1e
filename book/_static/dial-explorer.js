/*
 * <dial-explorer>: a query and a key that are rotated by their positions, made by tfcourse.lessons.explorers.dials. On the left the hands of one pair
 * of columns, on the right the score of all pairs by distance; what training has not shown is grey.
 *
 * Keyboard: a tab stop with arrows for each choice, and native sliders.
 */
(() => {
  "use strict";

  const { Explorer, choice, clamp, define, draw, make, slider } = globalThis.tfcourse;
  const PAIRINGS = ["half-split", "interleaved"];

  /** A number with so many decimals and a proper minus, without one in front of zero. */
  function decimal(number, digits = 2) {
    const text = number.toFixed(digits);
    return (/^-0\.?0*$/.test(text) ? text.slice(1) : text).replace("-", "\u2212");
  }

  class DialExplorer extends Explorer {
    static tables = "Turns and scores as tables";

    build() {
      const { bases, start, query, longest } = this.data;
      Object.assign(this, { ...start, pair: Math.min(2, query.length / 2 - 1), base: 0, way: 0, pairing: 0 });
      const options = { legend: true };
      this.choices = {
        way: choice({ ...options, label: "Frequencies", options: bases[0].ways.map(({ name }) => name), onChoose: (way) => this.choose({ way }) }),
        base: choice({
          ...options,
          label: "Base \u03b8",
          options: bases.map(({ theta }) => theta.toLocaleString("en")),
          onChoose: (base) => this.choose({ base }),
        }),
        pairing: choice({ ...options, label: "Pairs", options: PAIRINGS, onChoose: (pairing) => this.choose({ pairing }) }),
      };
      this.sliders = {
        m: slider({ label: "query at m", max: longest, onInput: (m) => this.choose({ m }) }),
        n: slider({ label: "key at n", max: longest, onInput: (n) => this.choose({ n }) }),
        both: slider({ label: "move both", max: longest, onInput: (least) => this.moveBoth(least) }),
        pair: slider({ label: "pair shown", max: query.length / 2 - 1, onInput: (pair) => this.choose({ pair }) }),
      };
      const elements = (controls) => Object.values(controls).map(({ element }) => element);
      this.dial = make("div", { className: "de-dial" });
      this.chart = make("div", { className: "de-chart" });
      return [
        make("div", { className: "explorer-controls" }, ...elements(this.choices)),
        make("div", { className: "de-sliders" }, ...elements(this.sliders)),
        make("div", { className: "de-views" }, this.dial, this.chart),
      ];
    }

    /** Move the query and the key together: the one that is further in front comes to `least`, as far as there is room. */
    moveBoth(least) {
      const before = Math.min(this.m, this.n);
      const step = clamp(least - before, -before, this.data.longest - Math.max(this.m, this.n));
      this.choose({ m: this.m + step, n: this.n + step });
    }

    get clock() {
      return this.data.bases[this.base].ways[this.way];
    }

    /** The two columns of a pair. */
    columns(pair) {
      return this.pairing ? [2 * pair, 2 * pair + 1] : [pair, pair + this.data.query.length / 2];
    }

    /** What one pair adds to the score of the rotated query and the rotated key, `offset` positions apart. */
    term(pair, offset) {
      const { query, key } = this.data;
      const { frequencies, scale } = this.clock;
      const [a, b] = this.columns(pair);
      const angle = offset * scale * frequencies[pair];
      const along = query[a] * key[a] + query[b] * key[b];
      const across = query[a] * key[b] - query[b] * key[a];
      return along * Math.cos(angle) + across * Math.sin(angle);
    }

    /** The score of the rotated query and the rotated key, `offset` positions apart: the sum over the pairs. */
    score(offset) {
      return this.clock.frequencies.reduce((sum, _, pair) => sum + this.term(pair, offset), 0);
    }

    render() {
      for (const [name, { mark }] of Object.entries(this.choices)) mark(this[name]);
      const { m, n, pair } = this;
      this.sliders.m.mark(m);
      this.sliders.n.mark(n);
      this.sliders.pair.mark(pair);
      this.sliders.both.mark(Math.min(m, n), `${m}, ${n}`, `query at ${m}, key at ${n}`);
      this.drawDial();
      this.drawChart();
      this.say(this.describe());
    }

    /** The hands of the chosen pair, each as far round as its numbers and its position say. */
    drawDial() {
      const { query, key } = this.data;
      const { frequencies, scale } = this.clock;
      const [a, b] = this.columns(this.pair);
      const hand = (row, position, name) => {
        const angle = Math.atan2(row[b], row[a]) + position * scale * frequencies[this.pair];
        const [x, y] = [Math.cos(angle), -Math.sin(angle)];
        return draw("line", { class: `de-hand de-${name}`, x1: 0, y1: 0, x2: (40 * x).toFixed(2), y2: (40 * y).toFixed(2) });
      };
      const picture = draw(
        "svg",
        { viewBox: "-50 -50 100 100", role: "img", "aria-label": `Two hands on a dial: pair ${this.pair} of the query at position ${this.m} and of the key at position ${this.n}.` },
        draw("circle", { class: "de-face", r: 46 }),
        hand(query, this.m, "query"),
        hand(key, this.n, "key"),
      );
      const legend = make(
        "p",
        { className: "de-legend" },
        make("span", { className: "de-name de-query" }, "query, solid"),
        " \u00b7 ",
        make("span", { className: "de-name de-key" }, "key, dashed"),
      );
      this.dial.replaceChildren(make("p", { className: "de-title" }, `pair ${this.pair}: columns ${a} and ${b}`), picture, legend);
    }

    /** The score and the term of the chosen pair for every distance, grey where training has not been. */
    drawChart() {
      const { longest, trained } = this.data;
      const offsets = Array.from({ length: 2 * longest + 1 }, (_, i) => i - longest);
      const scores = offsets.map((offset) => this.score(offset));
      const terms = offsets.map((offset) => this.term(this.pair, offset));
      const low = Math.min(0, ...scores, ...terms);
      const high = Math.max(0, ...scores, ...terms);
      const at = (offset, value) => [50 + (48 * offset) / longest, 4 + (92 * (high - value)) / (high - low || 1)];
      const curve = (name, values) => {
        const points = offsets.map((offset, i) => at(offset, values[i]).map((c) => c.toFixed(2)).join(",")).join(" ");
        return draw("polyline", { class: `de-curve de-${name}`, points });
      };
      const edge = Math.min(trained / this.clock.scale, longest);
      const unseen = [-1, 1].map((side) => {
        const [from, to] = [at(side * edge, 0)[0], at(side * longest, 0)[0]];
        return draw("rect", { class: "de-unseen", x: Math.min(from, to).toFixed(2), width: Math.abs(to - from).toFixed(2), y: 0, height: 100 });
      });
      const offset = this.m - this.n;
      const [x, y] = at(offset, this.score(offset));
      const zero = at(0, 0)[1];
      const picture = draw(
        "svg",
        {
          viewBox: "0 0 100 100",
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `Score against m minus n, from ${-longest} to ${longest}; values from ${decimal(low)} to ${decimal(high)}.`,
        },
        ...unseen,
        draw("line", { class: "de-axis", x1: 2, x2: 98, y1: zero, y2: zero }),
        draw("line", { class: "de-axis", x1: 50, x2: 50, y1: 2, y2: 98 }),
        curve("score", scores),
        curve("term", terms),
        draw("path", { class: "de-dot", d: `M${x.toFixed(2)} ${y.toFixed(2)}h0` }),
      );
      const scale = make(
        "p",
        { className: "de-scale", "aria-hidden": "true" },
        make("span", {}, `\u2212${longest}`),
        make("span", {}, "m \u2212 n"),
        make("span", {}, `${longest}`),
      );
      const title = make(
        "p",
        { className: "de-title" },
        make("span", { className: "de-name de-score" }, "score, sum of all pairs, thin"),
        " \u00b7 ",
        make("span", { className: "de-name de-term" }, `pair ${this.pair} alone, thick`),
        " \u00b7 grey: distances that training has not shown",
      );
      this.chart.replaceChildren(title, picture, scale);
    }

    /** What the figure shows, in two or three sentences. */
    describe() {
      const { trained } = this.data;
      const { frequencies, scale } = this.clock;
      const offset = this.m - this.n;
      const turn = offset * scale * frequencies[this.pair];
      const unseen = Math.abs(offset) * scale >= trained ? " Training has never shown this distance." : "";
      return (
        `Query at ${this.m}, key at ${this.n}, so m \u2212 n = ${decimal(offset, 0)}. Pair ${this.pair} turns by ${decimal(turn)} radians ` +
        `between them and adds ${decimal(this.term(this.pair, offset))}; all ${frequencies.length} pairs together give the score ` +
        `${decimal(this.score(offset))}.${unseen}`
      );
    }
  }

  define("dial-explorer", DialExplorer);
})();
