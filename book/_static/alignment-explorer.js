/*
 * <alignment-explorer>: alignments of several pairs of sentences to look into, made by tfcourse.lessons.explorers.alignments. In its place for
 * tables it has one section for each pair, with a <head-explorer> whose heads are the aligners; this script shows one section at a time,
 * and keeps the chosen aligner from pair to pair.
 */
(() => {
  "use strict";

  const { Explorer, define, make } = globalThis.tfcourse;

  class AlignmentExplorer extends Explorer {
    build() {
      this.pair = 0;
      this.sections = [...this.plain.querySelectorAll(":scope > .ae-pair")];
      const options = this.data.titles.map((title, index) => new Option(title, index));
      this.select = make("select", { change: () => this.choose({ pair: this.select.selectedIndex }) }, ...options);
      const label = make("label", {}, "Pair of sentences", this.select);
      return [make("div", { className: "ae-choice" }, label, this.live), ...this.sections];
    }

    /** The sections are part of the figure: nothing is left to fold away. */
    fold() {
      this.plain.remove();
    }

    /** Show another pair, by the aligner that the pair before it was shown by. */
    choose({ pair }) {
      const explorer = (index) => this.sections[index].querySelector("head-explorer");
      const { head } = explorer(this.pair);
      super.choose({ pair });
      explorer(pair).choose({ head });
    }

    render() {
      this.sections.forEach((section, index) => {
        section.hidden = index !== this.pair;
      });
      this.say(this.data.crossings[this.pair]);
    }
  }

  define("alignment-explorer", AlignmentExplorer);
})();
