/*
 * <gradient-explorer>: how large is a gradient on its way back through time? Made by tfcourse.lessons.explorers.gradients.
 *
 * Keyboard: one tab stop for the cells (arrows choose), and two native sliders, for the setting and for the step.
 */
(() => {
  "use strict";

  const { Explorer, choice, clamp, define, draw, make, slider } = globalThis.tfcourse;

  const HEIGHT = 300;
  const MARGIN = { top: 14, right: 14, bottom: 40, left: 56 };
  const DECADES = 24; // more powers of ten would squeeze what there is to see
  const SHAPES = [
    (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z`,
    (x, y) => `M${x - 4} ${y - 4}h8v8h-8z`,
    (x, y) => `M${x} ${y - 5}l5 9h-10z`,
    (x, y) => `M${x} ${y - 5}l5 5l-5 5l-5 -5z`,
  ];

  /** A norm or a ratio as text: a plain decimal where it is short, a power of ten elsewhere. */
  function figure(value) {
    if (value === 0) return "0";
    if (value >= 0.001 && value < 10000) return String(Number(value.toPrecision(2)));
    const [digits, power] = value.toExponential(1).split("e");
    return `${digits} \u00d7 10${superscript(Number(power))}`;
  }

  function superscript(power) {
    const signs = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
    return (power < 0 ? "\u207b" : "") + [...String(Math.abs(power))].map((digit) => signs[digit]).join("");
  }

  class GradientExplorer extends Explorer {
    static tables = "All norms as tables";

    build() {
      const { cells, norms, settings, settingName, start } = this.data;
      Object.assign(this, start);
      this.steps = norms[0][0].length;
      this.measureAxis();
      this.cells = choice({
        label: "Cell",
        options: cells.map((name, cell) => [name, this.drawMark(cell)]),
        onChoose: (cell) => this.choose({ cell }),
      });
      this.chart = draw("svg", { class: "ge-chart", "aria-hidden": "true" });
      const point = (event) => this.point(event);
      this.stage = make("div", { className: "ge-stage", pointerdown: point, pointermove: (event) => event.buttons && point(event) }, this.chart);
      this.dial = slider({ label: settingName, max: settings.length - 1, onInput: (setting) => this.choose({ setting }) });
      this.cursor = slider({ label: "Step", max: this.steps - 1, onInput: (step) => this.choose({ step }) });
      new ResizeObserver(() => this.drawChart()).observe(this.stage);
      return [this.cells.element, this.stage, make("div", { className: "ge-dials" }, this.dial.element, this.cursor.element)];
    }

    /** A piece of a cell's line, as it looks in the chart. */
    drawMark(cell) {
      const line = draw("path", { class: `ge-line ge-line-${cell}`, d: "M1 6H27" });
      const dot = draw("path", { class: `ge-dot ge-dot-${cell}`, d: SHAPES[cell](14, 6) });
      return draw("svg", { class: "ge-mark", viewBox: "0 0 28 12", "aria-hidden": "true" }, line, dot);
    }

    /** One axis for all settings: only so does turning the dial show what changes. */
    measureAxis() {
      const powers = this.data.norms.flat(2).filter((norm) => norm > 0).map(Math.log10);
      this.high = powers.length ? Math.ceil(Math.max(...powers)) : 1;
      this.low = powers.length ? Math.floor(Math.min(...powers)) : 0;
      this.low = Math.max(this.low, this.high - DECADES);
      if (this.low === this.high) this.low -= 1;
    }

    /** A click or a drag in the chart chooses the step under it. */
    point(event) {
      const { left, width } = this.chart.getBoundingClientRect();
      const inside = width - MARGIN.left - MARGIN.right;
      const share = (event.clientX - left - MARGIN.left) / inside;
      this.choose({ step: clamp(Math.round(share * (this.steps - 1)), 0, this.steps - 1) });
    }

    render() {
      this.cells.mark(this.cell);
      this.dial.mark(this.setting, String(this.data.settings[this.setting]));
      this.cursor.mark(this.step, `${this.step + 1}`, `${this.step + 1} of ${this.steps}`);
      this.drawChart();
      this.say(this.describe());
    }

    drawChart() {
      const width = Math.max(this.stage.clientWidth, 220);
      const x = (step) => MARGIN.left + ((width - MARGIN.left - MARGIN.right) * step) / (this.steps - 1);
      const y = (norm) => {
        const power = norm > 0 ? clamp(Math.log10(norm), this.low, this.high) : this.low;
        return MARGIN.top + ((HEIGHT - MARGIN.top - MARGIN.bottom) * (this.high - power)) / (this.high - this.low);
      };
      this.chart.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      this.chart.setAttribute("height", HEIGHT);
      const order = this.data.cells.map((_, cell) => cell).filter((cell) => cell !== this.cell);
      this.chart.replaceChildren(
        ...this.drawAxes(width, x, y),
        draw("path", { class: "ge-cursor", d: `M${x(this.step)} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}` }),
        ...[...order, this.cell].flatMap((cell) => this.drawLine(cell, width, x, y)),
      );
    }

    drawAxes(width, x, y) {
      const every = Math.ceil((this.high - this.low) / 6);
      const powers = Array.from({ length: this.high - this.low + 1 }, (_, index) => this.low + index).filter((power) => power % every === 0);
      const ticks = [0, Math.floor((this.steps - 1) / 2), this.steps - 1];
      const text = (attributes, content) => draw("text", attributes, document.createTextNode(content));
      return [
        ...powers.flatMap((power) => [
          draw("path", { class: "ge-grid", d: `M${MARGIN.left} ${y(10 ** power)}H${width - MARGIN.right}` }),
          text({ class: "ge-tick", x: MARGIN.left - 8, y: y(10 ** power) + 4, "text-anchor": "end" }, power === 0 ? "1" : `10${superscript(power)}`),
        ]),
        ...ticks.map((step) => text({ class: "ge-tick", x: x(step), y: HEIGHT - MARGIN.bottom + 17, "text-anchor": "middle" }, `${step + 1}`)),
        text({ class: "ge-tick", x: (width + MARGIN.left - MARGIN.right) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "step (the loss is at the last one)"),
      ];
    }

    /** One cell's norms as a line, with its mark at some of the steps and a larger one under the cursor. */
    drawLine(cell, width, x, y) {
      const row = this.data.norms[cell][this.setting];
      const chosen = cell === this.cell ? " ge-chosen" : "";
      const path = row.map((norm, step) => `${step ? "L" : "M"}${x(step).toFixed(1)} ${y(norm).toFixed(1)}`).join("");
      const every = Math.max(1, Math.round(this.steps / 8));
      const dots = row.flatMap((norm, step) => (step % every === 0 ? [SHAPES[cell](x(step), y(norm))] : [])).join("");
      const parts = [
        draw("path", { class: `ge-line ge-line-${cell}${chosen}`, d: path }),
        draw("path", { class: `ge-dot ge-dot-${cell}${chosen}`, d: dots }),
      ];
      if (chosen) parts.push(draw("circle", { class: "ge-ring", cx: x(this.step), cy: y(row[this.step]), r: 8 }));
      return parts;
    }

    /** What the figure shows, in one sentence. */
    describe() {
      const { cells, settings, settingName, norms } = this.data;
      const row = norms[this.cell][this.setting];
      const last = row[row.length - 1];
      const where = `${cells[this.cell]}, ${settingName} ${settings[this.setting]}: at step ${this.step + 1} the gradient has the norm ${figure(row[this.step])}`;
      if (this.step === this.steps - 1) return `${where}; the loss is here.`;
      const back = this.steps - 1 - this.step;
      const ago = `${back} ${back === 1 ? "step" : "steps"} before the loss`;
      if (last === 0) return `${where}, ${ago}.`;
      return `${where}, ${figure(row[this.step] / last)} times what it is at the last step, ${ago}.`;
    }
  }

  define("gradient-explorer", GradientExplorer);
})();
