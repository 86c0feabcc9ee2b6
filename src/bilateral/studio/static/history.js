// Undo and redo of everything: strokes and options.

/** @typedef {{ bytes: number, undo: () => void, redo: () => void }} Step */

const MOST_STEPS = 500;
const MOST_BYTES = 500e6;

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
    this.undone = [];
    let bytes = this.done.reduce((sum, { bytes }) => sum + bytes, 0);
    while (this.done.length > MOST_STEPS || (bytes > MOST_BYTES && this.done.length > 1)) {
      bytes -= this.done.shift()?.bytes ?? 0;
    }
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
