/*
 * <lookup-explorer>: a soft dictionary with a dial, made by tfcourse.lessons.explorers.lookups.
 *
 * Keyboard: the dial is a native slider.
 */
(() => {
  "use strict";

  const { Explorer, define, make, slider } = globalThis.tfcourse;

  class LookupExplorer extends Explorer {
    build() {
      const { names, largest } = this.data;
      this.c = 1;
      this.dial = slider({ label: "c", max: largest, step: 0.05, onInput: (c) => this.choose({ c }) });
      this.bars = names.map(() => ({ fill: make("span", { className: "le-fill" }), number: make("span", { className: "le-number" }) }));
      const rows = this.bars.flatMap(({ fill, number }, page) => [
        make("span", { className: "le-name", "data-tip": names[page] }, names[page]),
        make("span", {}, fill),
        number,
      ]);
      return [this.dial.element, make("div", { className: "le-bars", "aria-hidden": "true" }, ...rows)];
    }

    /** The softmax of the scores, multiplied by c. */
    weights() {
      const scores = this.data.scores.map((score) => this.c * score);
      const raised = scores.map((score) => Math.exp(score - Math.max(...scores)));
      const total = raised.reduce((sum, one) => sum + one, 0);
      return raised.map((one) => one / total);
    }

    render() {
      const { names, values, answer, unit } = this.data;
      const weights = this.weights();
      this.dial.mark(this.c, this.c.toFixed(2));
      this.bars.forEach(({ fill, number }, page) => {
        fill.style.width = `${100 * weights[page]}%`;
        number.textContent = weights[page].toFixed(2);
      });
      const result = weights.reduce((sum, weight, page) => sum + weight * values[page], 0);
      const shares = names.map((name, page) => `${name} ${weights[page].toFixed(2)}`);
      this.say(`Weights: ${shares.join(", ")}. ${`${answer} ${result.toFixed(2)} ${unit}`.trim()}.`);
    }
  }

  define("lookup-explorer", LookupExplorer);
})();
