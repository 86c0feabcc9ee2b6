// Undo and redo of everything: strokes and options.

/** @typedef {{ undo: () => void, redo: () => void }} Step */

const MOST_STEPS = 300;

export class History {
  /** @param {() => void} onChange */
  constructor(onChange) {
    /** @type {Step[]} */
    this.done = [];
    /** @type {Step[]} */
    this.undone = [];
    this.onChange = onChange;
  }

  /** @param {Step} step */
  add(step) {
    this.done.push(step);
    if (this.done.length > MOST_STEPS) this.done.shift();
    this.undone = [];
    this.onChange();
  }

  undo() {
    const step = this.done.pop();
    if (!step) return;
    step.undo();
    this.undone.push(step);
    this.onChange();
  }

  redo() {
    const step = this.undone.pop();
    if (!step) return;
    step.redo();
    this.done.push(step);
    this.onChange();
  }

  clear() {
    this.done = [];
    this.undone = [];
    this.onChange();
  }
}
