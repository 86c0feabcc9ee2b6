// The document of a page: photograph, strokes, options and results. The page has everything, so
// that nothing is lost when the server is started again.

import { History } from "./history.js";
import { Layer } from "./layer.js";
import { Link } from "./link.js";
import { TOOLS } from "./tools.js";

/** @typedef {import("./tools.js").ToolName} ToolName */
/** @typedef {import("./layer.js").Tile} Tile */
/** @typedef {import("./protocol.js").Message} Message */
/** @typedef {{ kind: "file", name: string, bytes: Uint8Array<ArrayBuffer> } | { kind: "example", name: string }} Photo */
/** @typedef {{ kind: "depth" | "stereo", name: string, bytes: Uint8Array<ArrayBuffer>, disparities: number }} DepthFile */
/** @typedef {{ look: string, values: string, refine: boolean, mask: boolean, aperture: number, x: number, y: number }} Options */
/** @typedef {{ canvas: OffscreenCanvas, seq: number, factor: number }} Picture */
/**
 * @typedef {object} Events
 * @property {(hello: import("./protocol.js").Header) => void} hello
 * @property {(pixels: Uint8ClampedArray) => void} opened
 * @property {() => void} picture
 * @property {(text: string, bad: boolean) => void} hint
 * @property {(name: string, bytes: Uint8Array<ArrayBuffer>) => void} file
 * @property {(up: boolean) => void} link
 * @property {() => void} history
 * @property {() => void} options
 * @property {(milliseconds: number, seq: number, full: boolean) => void} timing
 */

const SEND_EVERY = 40;

export class Studio {
  /** @param {Events} events */
  constructor(events) {
    this.events = events;
    /** @type {ToolName} */
    this.tool = "colorize";
    /** @type {Photo | null} */
    this.photo = null;
    /** @type {DepthFile | null} */
    this.depthFile = null;
    /** @type {{ name: string, bytes: Uint8Array<ArrayBuffer> } | null} A rough mask. */
    this.maskFile = null;
    this.hasDepth = false;
    this.name = "";
    this.width = 0;
    this.height = 0;
    /** @type {OffscreenCanvas | null} */
    this.original = null;
    /** @type {Partial<Record<ToolName, Layer>>} */
    this.layers = {};
    /** @type {Partial<Record<ToolName, { full?: Picture, preview?: Picture }>>} */
    this.pictures = {};
    /** @type {Options} */
    this.options = { look: "color", values: "depth", refine: true, mask: false, aperture: 0.5, x: 0, y: 0 };
    this.seq = 0;
    this.openSeq = 0;
    /** @type {number | undefined} The photograph that the page shows. */
    this.openedSeq = undefined;
    this.lastSent = 0;
    this.previewTime = 0;
    this.timer = 0;
    /** @type {Map<number, number>} When each request was made. */
    this.asked = new Map();
    this.history = new History(() => events.history());
    /** @type {(() => void) | null} What to do once the photograph is open. */
    this.afterOpen = null;
    this.link = new Link((message) => this.receive(message), (up) => events.link(up));
  }

  /** @returns {Layer | null} The layer of the tool: made when the tool is first used. */
  get layer() {
    if (!this.original || this.tool === "refocus") return null;
    return (this.layers[this.tool] ??= new Layer(this.width, this.height));
  }

  /** @param {Message} message */
  receive({ header, payload }) {
    if (header.kind === "hello") {
      this.events.hello(header);
      this.sendAll();
    } else if (header.kind === "opened") this.opened(header, payload);
    else if (header.kind === "picture") this.receivePicture(header, payload);
    else if (header.kind === "depth") {
      this.hasDepth = true;
      this.pictures.depth = {};
      this.pictures.refocus = {};
      this.events.hint("", false);
      this.request();
    } else if (header.kind === "mask") {
      this.events.hint("", false);
      if (!this.options.mask) this.setOptions({ mask: true });
      else this.request();
    } else if (header.kind === "file") this.events.file(header.name, payload);
    else if (header.kind === "hint") this.events.hint(header.text, false);
    else if (header.kind === "error" || header.kind === "full") this.events.hint(header.text, true);
  }

  /**
   * @param {Photo} photo
   * @param {() => void} [afterOpen]
   */
  open(photo, afterOpen) {
    this.photo = photo;
    this.depthFile = null;
    this.maskFile = null;
    this.options.mask = false;
    this.afterOpen = afterOpen ?? null;
    this.openSeq = ++this.seq;
    this.events.hint("Opening…", false);
    this.sendPhoto();
  }

  sendPhoto() {
    const photo = this.photo, seq = this.openSeq;
    if (!photo) return;
    if (photo.kind === "example") this.link.send({ kind: "example", name: photo.name, seq });
    else this.link.send({ kind: "open", name: photo.name, seq }, photo.bytes);
  }

  sendDepth() {
    const file = this.depthFile;
    if (!file) return;
    const { kind, name, disparities } = file;
    this.link.send({ kind, name, disparities, seq: ++this.seq }, file.bytes);
  }

  sendMask() {
    if (this.maskFile) this.link.send({ kind: "mask", name: this.maskFile.name, seq: ++this.seq }, this.maskFile.bytes);
  }

  /** Send everything to a server that knows nothing of this page. */
  sendAll() {
    if (!this.photo) return;
    this.sendPhoto();
    if (!this.original || this.openedSeq !== this.openSeq) return;
    this.sendDepth();
    this.sendMask();
    for (const tool of TOOLS) {
      const layer = this.layers[tool];
      if (layer && !layer.empty) layer.dirty = { x: 0, y: 0, width: this.width, height: this.height };
    }
    this.request();
  }

  /**
   * @param {import("./protocol.js").Header} header
   * @param {Uint8Array<ArrayBuffer>} payload
   */
  opened(header, payload) {
    if (header.seq !== this.openSeq) return;
    this.hasDepth = header.depth || this.depthFile !== null;
    if (this.openedSeq === header.seq) return; // the server was started again
    this.openedSeq = header.seq;
    this.name = header.name;
    this.width = header.width;
    this.height = header.height;
    const bytes = new Uint8ClampedArray(payload.buffer, payload.byteOffset, payload.byteLength);
    this.original = canvasOf(bytes, this.width, this.height);
    this.layers = {};
    this.pictures = {};
    this.options = { ...this.options, x: this.width / 2, y: this.height / 2 };
    this.history.clear();
    this.events.hint("", false);
    this.events.opened(bytes);
    const after = this.afterOpen;
    this.afterOpen = null;
    if (after) after();
    this.request();
  }

  /**
   * @param {import("./protocol.js").Header} header
   * @param {Uint8Array<ArrayBuffer>} payload
   */
  receivePicture(header, payload) {
    const { tool, seq, factor, y, width, height, rows, channels, last, ms } = header;
    if (seq <= (this.openedSeq ?? 0)) return;
    const pictures = (this.pictures[/** @type {ToolName} */ (tool)] ??= {});
    const slot = factor === 1 ? "full" : "preview";
    let picture = pictures[slot];
    if (!picture || picture.canvas.width !== width || picture.canvas.height !== height) {
      picture = { canvas: new OffscreenCanvas(width, height), seq: -1, factor };
      pictures[slot] = picture;
    }
    if (rows) {
      context(picture.canvas).putImageData(new ImageData(rgba(payload, channels), width, rows), 0, y);
    }
    if (!last) return;
    picture.seq = seq;
    if (factor !== 1) this.previewTime = Math.min(200, ms);
    const started = this.asked.get(seq);
    if (started !== undefined) this.events.timing(performance.now() - started, seq, factor === 1);
    if (factor === 1) {
      for (const old of this.asked.keys()) if (old <= seq) this.asked.delete(old);
      this.events.hint("", false);
    }
    this.events.picture();
  }

  /** The newest picture of the tool, and whether it is a preview. */
  get newest() {
    const { full, preview } = this.pictures[this.tool] ?? {};
    const isPreview = preview !== undefined && preview.seq > (full ? full.seq : -1);
    return { picture: isPreview ? preview : full, isPreview, full };
  }

  /** Strokes changed: send them now, or soon if the last message was just sent. */
  changed() {
    // At least the time of a preview lies between two: the browser needs the cores, too.
    const wait = this.lastSent + Math.max(SEND_EVERY, 2 * this.previewTime) - performance.now();
    if (wait <= 0) this.request(true);
    else if (!this.timer) this.timer = window.setTimeout(() => this.request(true), wait);
  }

  /**
   * Send what changed, and ask for the picture of the tool.
   * @param {boolean} [live] in the middle of a stroke or a drag: a preview is enough
   */
  request(live = false) {
    clearTimeout(this.timer);
    this.timer = 0;
    this.lastSent = performance.now();
    if (!this.original || !this.link.up) return;
    for (const tool of TOOLS) {
      const layer = this.layers[tool], box = layer?.takeDirty();
      if (!layer || !box) continue;
      const values = layer.read(box);
      this.link.send({ kind: "paint", tool, ...box }, new Uint8Array(values.buffer));
    }
    if ((this.tool === "depth" || this.tool === "refocus") && !this.hasDepth) {
      this.events.hint("There is no depth map yet: load one, or open an example.", false);
      return;
    }
    const seq = ++this.seq;
    this.asked.set(seq, performance.now());
    this.link.send({ kind: "picture", tool: this.tool, seq, live, ...this.options });
  }

  /** A stroke ended: remember it for undo. */
  endStroke() {
    const layer = this.layer;
    if (!layer) return;
    const tool = this.tool, tiles = layer.endStroke();
    if (tiles.length) {
      this.history.add({
        bytes: tiles.reduce((sum, tile) => sum + 2 * tile.before.byteLength, 0),
        undo: () => this.restore(tool, tiles, "before"),
        redo: () => this.restore(tool, tiles, "after"),
      });
    }
    this.request();
  }

  /**
   * @param {ToolName} tool
   * @param {Tile[]} tiles
   * @param {"before" | "after"} side
   */
  restore(tool, tiles, side) {
    const layer = this.layers[tool];
    if (!layer) return;
    for (const tile of tiles) layer.write(layer.tileBox(tile.index), tile[side]);
    this.events.picture();
    this.request();
  }

  /**
   * Change options; one step of the history.
   * @param {Partial<Options>} change
   * @param {Partial<Options>} [from] what to return to, if the options already changed on the way
   */
  setOptions(change, from) {
    const before = { ...this.options, ...from }, after = { ...this.options, ...change };
    const set = (/** @type {Options} */ options) => {
      this.options = { ...options };
      this.events.options();
      this.request();
    };
    set(after);
    if (JSON.stringify(before) !== JSON.stringify(after)) {
      this.history.add({ bytes: 0, undo: () => set(before), redo: () => set(after) });
    }
  }

  /**
   * Change options while a person drags: no step of the history.
   * @param {Partial<Options>} change
   */
  previewOptions(change) {
    this.options = { ...this.options, ...change };
    this.events.options();
    this.changed();
  }

  /** @param {string} what */
  save(what) {
    this.request();
    this.link.send({ kind: "save", tool: this.tool, what, ...this.options, seq: ++this.seq });
  }
}

/**
 * @param {OffscreenCanvas} canvas
 * @returns {OffscreenCanvasRenderingContext2D}
 */
export function context(canvas) {
  return /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes of pixels with 3 channels, which are opaque, or 4
 * @param {number} channels
 */
function rgba(bytes, channels) {
  if (channels === 4) return new Uint8ClampedArray(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pixels = new Uint32Array(bytes.length / 3);
  for (let i = 0, at = 0; i < pixels.length; i++, at += 3) {
    pixels[i] = (255 << 24) | (bytes[at + 2] << 16) | (bytes[at + 1] << 8) | bytes[at];
  }
  return new Uint8ClampedArray(pixels.buffer);
}

/**
 * @param {Uint8ClampedArray<ArrayBuffer>} bytes
 * @param {number} width
 * @param {number} height
 */
export function canvasOf(bytes, width, height) {
  const canvas = new OffscreenCanvas(width, height);
  context(canvas).putImageData(new ImageData(bytes, width, height), 0, 0);
  return canvas;
}
