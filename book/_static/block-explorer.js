/*
 * <block-explorer>: a Transformer layer with every tensor's shape, made by tfcourse.lessons.explorers.blocks. Its parts stand from top to bottom,
 * with arrows that tell shapes between them and the residual connections around them.
 *
 * Keyboard: sizes are native fields; layer, norm and the parts of the layer are one tab stop each, in which the arrows move.
 */
(() => {
  "use strict";

  const { Explorer, RadioGroup, choice, define, make, radio } = globalThis.tfcourse;

  const LARGEST = { B: 4096, T: 1000000, S: 1000000, D: 65536, H: 1024, F: 262144 };
  const MEANING = {
    B: "batch",
    T: "target length, the decoder's",
    S: "source length, the encoder's",
    D: "model width",
    H: "heads",
    F: "feed-forward width",
  };
  const LAYERS = ["encoder", "decoder"];
  const NORMS = ["post", "pre"];

  const grouped = (number) => number.toLocaleString("en-GB");
  const product = (numbers) => numbers.reduce((all, number) => all * number, 1);
  const plural = (number, one) => `${grouped(number)} ${one}${number === 1 ? "" : "s"}`;

  class BlockExplorer extends Explorer {
    build() {
      this.sizes = { ...this.data.sizes };
      Object.assign(this, this.data.start, { chosen: 0 });
      const kind = (label, name, options, ending = "") =>
        choice({ label, legend: true, options: options.map((option) => option + ending), onChoose: (index) => this.choose({ [name]: options[index] }) });
      this.layers = kind("Layer", "layer", LAYERS);
      this.norms = kind("Layer norm", "norm", NORMS, "-norm");
      this.fields = Object.fromEntries(Object.keys(this.sizes).map((letter) => [letter, this.buildField(letter)]));
      const fields = Object.values(this.fields).map((field) => field.label);
      const sizes = make("fieldset", { className: "be-sizes" }, make("legend", { className: "explorer-legend" }, "Sizes"), ...fields);
      this.complaint = make("p", { className: "be-complaint", role: "alert" });
      this.flow = make("div");
      this.details = make("div", { className: "be-details" });
      const controls = make("div", { className: "explorer-controls" }, this.layers.element, this.norms.element, sizes);
      return [controls, this.complaint, make("div", { className: "be-panels" }, this.flow, this.details)];
    }

    buildField(letter) {
      const input = make("input", {
        type: "number",
        min: 1,
        max: LARGEST[letter],
        step: 1,
        value: this.sizes[letter],
        "aria-label": `${letter}, ${MEANING[letter]}`,
        input: () => this.read(),
      });
      const name = make("span", { "aria-hidden": "true" }, letter);
      return { input, label: make("label", { className: "be-size", "data-tip": MEANING[letter] }, name, input) };
    }

    /** Take the sizes from their fields if they make a layer; else say why not, and keep the last ones. */
    read() {
      const asked = Object.fromEntries(Object.entries(this.fields).map(([letter, { input }]) => [letter, Number(input.value)]));
      const odd = Object.entries(asked).find(([letter, size]) => !Number.isInteger(size) || size < 1 || size > LARGEST[letter]);
      let complaint = "";
      if (odd) complaint = `${odd[0]} is a whole number from 1 to ${grouped(LARGEST[odd[0]])}.`;
      else if (asked.D % asked.H) complaint = `A width of ${asked.D} cannot be divided into ${plural(asked.H, "head")}.`;
      for (const [letter, { input }] of Object.entries(this.fields)) {
        const wrong = odd ? letter === odd[0] : complaint !== "" && (letter === "D" || letter === "H");
        if (wrong) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
      if (this.complaint.textContent !== complaint) this.complaint.textContent = complaint;
      if (complaint) return;
      this.choose({ sizes: asked });
    }

    size(letter) {
      if (letter === "1") return 1;
      return letter === "Dh" ? this.sizes.D / this.sizes.H : this.sizes[letter];
    }

    numbers(shape) {
      return `(${shape.map((letter) => grouped(this.size(letter))).join(", ")})`;
    }

    letters(shape) {
      return `(${shape.join(", ")})`;
    }

    count(part) {
      return part.weights.reduce((sum, [, shape]) => sum + product(shape.map((letter) => this.size(letter))), 0);
    }

    get stretches() {
      return this.data.layers[`${this.kind.layer} ${this.kind.norm}`];
    }

    get parts() {
      return this.stretches.flatMap((stretch) => stretch.parts);
    }

    get stretches() {
      return this.data.layers[`${this.layer} ${this.norm}`];
    }

    get parts() {
      return this.stretches.flatMap((stretch) => stretch.parts);
    }

    render() {
      this.layers.mark(LAYERS.indexOf(this.layer));
      this.norms.mark(NORMS.indexOf(this.norm));
      this.fields.T.input.disabled = this.layer === "encoder"; // which has never heard of a target
      this.chosen = Math.min(this.chosen, this.parts.length - 1);
      this.renderFlow();
      this.renderPart();
    }

    renderFlow() {
      const output = (part) => part.tensors[part.tensors.length - 1][1];
      const arrow = (shape) => {
        const texts = [make("span", { className: "be-letters" }, this.letters(shape)), make("span", {}, this.numbers(shape))];
        return make("div", { className: "be-arrow", "aria-hidden": "true" }, ...texts);
      };
      const rows = [];
      const whole = this.stretches.map((stretch) => {
        const inside = stretch.parts.flatMap((part) => {
          rows.push([this.buildPart(part, rows.length, output(part))]);
          const side = part.name === "Cross-attention" ? [this.buildSide(part.also[0])] : [];
          return [...side, ...rows.at(-1), arrow(output(part))];
        });
        if (!stretch.bypass) return make("div", {}, ...inside);
        // The arrow that leaves the sum stands outside of the bracket that closes at the sum.
        const after = inside.pop();
        const bracket = make("div", { className: "be-bypass" }, ...inside, make("span", { className: "be-carried", "aria-hidden": "true" }));
        return make("div", {}, bracket, after);
      });
      const onChoose = (part) => {
        this.chosen = part;
        this.renderPart();
      };
      const label = "Part of the layer";
      const first = arrow(["B", this.layer === "encoder" ? "S" : "T", "D"]);
      this.radios = new RadioGroup({ label, className: "be-flow", rows, onChoose }, first, ...whole);
      this.flow.replaceChildren(this.radios.element);
    }

    buildSide([name, shape]) {
      return make("div", { className: "be-side", "aria-hidden": "true" }, `${name} `, make("b", {}, this.letters(shape)), ` ${this.numbers(shape)} \u2193`);
    }

    buildPart(part, place, shape) {
      return radio(
        `${part.name}, part ${place + 1} of ${this.parts.length}, output ${this.numbers(shape)}`,
        { className: `be-part be-${part.name.toLowerCase().replace(/[^a-z]+/g, "-")}` },
        part.name === "Add" ? "+" : part.name,
      );
    }

    /** The chosen part: what comes in, what is made on the way, and what it has learned. */
    renderPart() {
      this.radios.mark(this.chosen);
      const part = this.parts[this.chosen];
      const row = ([label, shape]) => {
        const cells = [this.letters(shape), this.numbers(shape)].map((text) => make("td", {}, text));
        return make("tr", {}, make("th", { scope: "row" }, label), ...cells);
      };
      const table = (title, rows) =>
        rows.length ? [make("table", {}, make("caption", {}, title), make("tbody", {}, ...rows.map(row)))] : [];
      this.details.replaceChildren(
        make("p", { className: "explorer-heading" }, part.name),
        make("p", { className: "be-about" }, `It ${part.about}.`),
        ...table("also comes in", part.also),
        ...table("tensors on the way", part.tensors),
        ...table("parameters", part.weights.map(([name, shape]) => [name.slice(name.indexOf(".") + 1), shape])),
      );
      this.say(this.describe(part));
    }

    /** What the figure shows, in a few words. */
    describe(part) {
      const scores = part.tensors.find(([label]) => label === "scores");
      const own = this.count(part);
      const total = this.parts.reduce((sum, each) => sum + this.count(each), 0);
      const holds = scores ? ` Its attention weights are ${grouped(product(scores[1].map((letter) => this.size(letter))))} numbers.` : "";
      const parameters = own ? `has ${plural(own, "parameter")}` : "has no parameters";
      return `${part.name} ${parameters} of the layer\u2019s ${grouped(total)}.${holds}`;
    }
  }

  define("block-explorer", BlockExplorer);
})();
