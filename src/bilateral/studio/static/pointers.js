// Mouse, pen and touch: one finger or the pen paints, two fingers move and zoom.

/** @typedef {import("./view.js").View} View */
/**
 * @typedef {object} Painter
 * @property {() => boolean} ready whether there is something to paint on
 * @property {(x: number, y: number, pressure: number, erase: boolean) => void} begin
 * @property {(x: number, y: number, pressure: number) => void} move
 * @property {() => void} end
 * @property {() => void} cancel
 * @property {(x: number, y: number) => void} pick
 * @property {(clientX: number, clientY: number, visible: boolean) => void} hover
 */

const ERASER_BUTTON = 32;

export class Pointers {
  /**
   * @param {HTMLElement} stage
   * @param {View} view
   * @param {Painter} painter
   */
  constructor(stage, view, painter) {
    this.stage = stage;
    this.view = view;
    this.painter = painter;
    /** @type {Map<number, { x: number, y: number }>} Fingers on the stage. */
    this.touches = new Map();
    /** @type {number | null} The pointer that paints. */
    this.painting = null;
    /** @type {number | null} The pointer that moves the picture. */
    this.panning = null;
    this.space = false;
    this.picks = false;
    this.penUntil = 0;
    this.gesture = false;
    stage.addEventListener("pointerdown", (event) => this.down(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    stage.addEventListener("pointerup", (event) => this.up(event, false));
    stage.addEventListener("pointercancel", (event) => this.up(event, true));
    stage.addEventListener("pointerleave", () => painter.hover(0, 0, false));
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.target instanceof HTMLElement && event.target.closest("button, a, input, section")) return;
    if (!this.painter.ready()) return;
    event.preventDefault();
    this.stage.focus({ preventScroll: true });
    this.capture(event.pointerId);
    if (event.pointerType === "pen") this.penUntil = performance.now() + 700;
    if (event.pointerType === "touch") {
      this.touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (this.touches.size === 2) {
        if (this.painting !== null) this.painter.cancel();
        this.painting = null;
        this.gesture = true;
      }
      // The palm of a hand that holds a pen does not paint.
      if (this.gesture || performance.now() < this.penUntil) return;
    } else if (event.button === 1 || this.space) {
      this.panning = event.pointerId;
      this.stage.classList.add("pans");
      this.touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      return;
    } else if (event.button === 2 || this.painting !== null) return;
    const place = this.view.toPicture(event.clientX, event.clientY);
    if (event.altKey || this.picks) {
      this.painter.pick(place.x, place.y);
      return;
    }
    this.painting = event.pointerId;
    const erase = event.pointerType === "pen" && (event.buttons & ERASER_BUTTON) !== 0;
    this.painter.begin(place.x, place.y, pressure(event), erase);
    this.painter.hover(event.clientX, event.clientY, true);
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (event.pointerId === this.painting) {
      const all = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
      for (const part of all.length ? all : [event]) {
        const place = this.view.toPicture(part.clientX, part.clientY);
        this.painter.move(place.x, place.y, pressure(part));
      }
    } else if (event.pointerId === this.panning || this.gesture) {
      this.moveView(event);
    }
    if (event.pointerType === "pen") this.penUntil = performance.now() + 700;
    if (event.pointerType !== "touch" || event.pointerId === this.painting) {
      this.painter.hover(event.clientX, event.clientY, true);
    }
  }

  /** @param {PointerEvent} event */
  moveView(event) {
    const last = this.touches.get(event.pointerId);
    if (!last) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...this.touches].find(([id]) => id !== event.pointerId);
    if (this.gesture && other) {
      const anchor = other[1], box = this.stage.getBoundingClientRect();
      const before = Math.hypot(last.x - anchor.x, last.y - anchor.y);
      const after = Math.hypot(now.x - anchor.x, now.y - anchor.y);
      const middle = { x: (last.x + anchor.x) / 2 - box.left, y: (last.y + anchor.y) / 2 - box.top };
      if (before > 0) this.view.zoomTo((this.view.zoom * after) / before, middle.x, middle.y);
      this.view.pan((now.x - last.x) / 2, (now.y - last.y) / 2);
    } else if (!this.gesture) this.view.pan(now.x - last.x, now.y - last.y);
    this.touches.set(event.pointerId, now);
  }

  /**
   * @param {PointerEvent} event
   * @param {boolean} cancelled
   */
  up(event, cancelled) {
    this.touches.delete(event.pointerId);
    if (event.pointerId === this.painting) {
      this.painting = null;
      if (cancelled) this.painter.cancel();
      else this.painter.end();
    }
    if (event.pointerId === this.panning) {
      this.panning = null;
      this.stage.classList.remove("pans");
    }
    if (![...this.touches].length) this.gesture = false;
    if (event.pointerType === "touch") this.painter.hover(0, 0, false);
  }

  /** @param {number} id */
  capture(id) {
    try {
      this.stage.setPointerCapture(id);
    } catch {
      // A synthetic pointer cannot be captured; its events reach the stage anyway.
    }
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    if (!this.painter.ready()) return;
    const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
    if (event.shiftKey) {
      this.view.pan(-(event.deltaX || event.deltaY) * unit, 0);
      return;
    }
    const box = this.stage.getBoundingClientRect();
    const speed = event.ctrlKey ? 0.01 : 0.0016;
    const factor = Math.exp(-event.deltaY * unit * speed);
    this.view.zoomTo(this.view.zoom * factor, event.clientX - box.left, event.clientY - box.top);
    this.painter.hover(event.clientX, event.clientY, true);
  }
}

/**
 * @param {PointerEvent} event
 * @returns {number} from 0 to 1; 1 for a mouse and for fingers
 */
function pressure(event) {
  return event.pointerType === "pen" && event.pressure > 0 ? event.pressure : 1;
}
