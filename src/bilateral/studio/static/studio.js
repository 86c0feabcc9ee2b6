// The document of a page: photograph, strokes, options and results. The page has everything, so
// that nothing is lost when the server is started again.

import { History } from "./history.js";
import { Layer } from "./layer.js";
import { Link } from "./link.js";
import { context, rgba } from "./pixels.js";
import { TOOLS } from "./tools.js";

/** @typedef {import("./tools.js").ToolName} ToolName */
/** @typedef {import("./layer.js").Tile} Tile */
/** @typedef {import("./protocol.js").Message} Message */
/** @typedef {import("./document.js").Photo} Photo */
/** @typedef {import("./document.js").DepthFile} DepthFile */
/** @typedef {import("./document.js").MaskFile} MaskFile */
/** @typedef {import("./document.js").Options} Options */
/** @typedef {import("./document.js").Picture} Picture */
/** @typedef {import("./document.js").Picked} Picked */
/** @typedef {import("./document.js").Events} Events */

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
    /** @type {MaskFile | null} A rough mask. */
    this.maskFile = null;
    /** An example comes with its depth map. */
    this.ownDepth = false;
    this.maxBytes = Infinity;
    /** @type {{ seq: number, photo: Photo, after: (() => void) | null, canvas?: OffscreenCanvas } | null} The photograph that is being opened. */
    this.opening = null;
    /** @type {Map<number, () => void>} What to do once the server has accepted a file, by message. */
    this.pending = new Map();
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
    this.link = new Link((message) => this.receive(message), (up) => events.link(up));
  }

  get hasDepth() {
    return this.ownDepth || this.depthFile !== null;
  }

  get lacksDepth() {
    return (this.tool === "depth" || this.tool === "refocus") && !this.hasDepth;
  }

  /** @returns {Layer | null} The layer of the tool: made when the tool is first used. */
  get layer() {
    if (!this.original || this.tool === "refocus") return null;
    return (this.layers[this.tool] ??= new Layer(this.width, this.height));
  }

  /** @param {Message} message */
  receive({ header, payload }) {
    const { kind, seq } = header;
    if (kind === "hello") {
      this.maxBytes = header.limits.bytes;
      this.events.hello(header);
      this.sendAll();
    } else if (kind === "photo") this.receivePhoto(header, payload);
    else if (kind === "opened") this.opened(header);
    else if (kind === "picture") this.receivePicture(header, payload);
    else if (kind === "depth" || kind === "mask") {
      this.events.hint("", false);
      this.pending.get(seq)?.();
      this.pending.delete(seq);
      this.request();
    } else if (kind === "file") this.events.file(header.name, payload);
    else if (kind === "hint" || kind === "error" || kind === "full") {
      this.events.hint(header.text, kind !== "hint");
      this.pending.delete(seq);
      if (this.opening?.seq !== seq) return;
      this.opening = null;
      // Strokes waited, because they could have belonged to the new photograph.
      for (const layer of Object.values(this.layers)) if (layer.dirty) return this.request();
    }
  }

  /**
   * Whether a file is small enough to be sent; tell the person if it is not.
   * @param {string} name
   * @param {Uint8Array<ArrayBuffer> | undefined} bytes
   */
  fits(name, bytes) {
    // A message has a header, too.
    if (!bytes || bytes.length + 100000 <= this.maxBytes) return true;
    const size = Math.round(bytes.length / 1e6), most = Math.round(this.maxBytes / 1e6);
    this.events.hint(`${name} has ${size} MB; the studio takes files of up to ${most} MB.`, true);
    return false;
  }

  /**
   * Open another photograph. The one before stays until the server has accepted the new one.
   * @param {Photo} photo
   * @param {() => void} [after]
   */
  open(photo, after) {
    if (photo.kind === "file" && !this.fits(photo.name, photo.bytes)) return;
    this.opening = { seq: ++this.seq, photo, after: after ?? null };
    this.events.hint("Opening…", false);
    this.sendPhoto(photo, this.opening.seq);
  }

  /**
   * @param {Photo} photo
   * @param {number} seq
   */
  sendPhoto(photo, seq) {
    if (photo.kind === "example") this.link.send({ kind: "example", name: photo.name, seq });
    else this.link.send({ kind: "open", name: photo.name, seq }, photo.bytes);
  }

  /**
   * Load a depth map, or the right view of a stereo pair; one step of the history.
   * @param {DepthFile} file
   */
  loadDepth(file) {
    if (!this.fits(file.name, file.bytes)) return;
    const values = file.kind === "stereo" ? "disparity" : this.options.values;
    this.events.hint(file.kind === "stereo" ? "Matching both views…" : "Opening the depth map…", false);
    const seq = this.sendDepth(file);
    this.pending.set(seq, () => this.replace({ depthFile: file }, { values }));
  }

  /**
   * Load a rough mask; one step of the history.
   * @param {MaskFile} file
   */
  loadMask(file) {
    if (!this.fits(file.name, file.bytes)) return;
    const seq = this.sendMask(file);
    this.pending.set(seq, () => this.replace({ maskFile: file }, { mask: true }));
  }

  /**
   * The server has accepted a file: keep it, with the options that it needs.
   * @param {{ depthFile?: DepthFile | null, maskFile?: MaskFile | null }} files
   * @param {Partial<Options>} options
   */
  replace(files, options) {
    const before = { depthFile: this.depthFile, maskFile: this.maskFile }, after = { ...before, ...files };
    const old = { ...this.options }, now = { ...this.options, ...options };
    const set = (/** @type {typeof before} */ { depthFile, maskFile }, /** @type {Options} */ values) => {
      const sends = { depth: depthFile !== this.depthFile, mask: maskFile !== this.maskFile };
      Object.assign(this, { depthFile, maskFile, options: { ...values } });
      this.events.options();
      if (sends.depth) this.sendDepth(depthFile);
      if (sends.mask) this.sendMask(maskFile);
      this.events.picture();
    };
    Object.assign(this, after, { options: now });
    this.events.options();
    this.history.add({ bytes: 0, undo: () => set(before, old), redo: () => set(after, now) });
  }

  /**
   * @param {DepthFile | null} file null: that of the example, or none
   * @returns {number} the number of the message
   */
  sendDepth(file) {
    const seq = ++this.seq;
    if (!file) this.link.send({ kind: "forget", what: "depth", seq });
    else this.link.send({ kind: file.kind, name: file.name, disparities: file.disparities, seq }, file.bytes);
    return seq;
  }

  /**
   * @param {MaskFile | null} file
   * @returns {number} the number of the message
   */
  sendMask(file) {
    const seq = ++this.seq;
    if (!file) this.link.send({ kind: "forget", what: "mask", seq });
    else this.link.send({ kind: "mask", name: file.name, seq }, file.bytes);
    return seq;
  }

  /** Send everything to a server that knows nothing of this page. */
  sendAll() {
    if (this.photo) {
      this.sendPhoto(this.photo, this.openSeq);
      if (this.depthFile) this.sendDepth(this.depthFile);
      if (this.maskFile) this.sendMask(this.maskFile);
      for (const layer of Object.values(this.layers)) {
        if (!layer.empty) layer.dirty = { x: 0, y: 0, width: this.width, height: this.height };
      }
      this.sendStrokes();
    }
    if (this.opening) this.sendPhoto(this.opening.photo, this.opening.seq);
    this.request();
  }

  /**
   * Keep a strip of the photograph that is being opened.
   * @param {import("./protocol.js").Header} header
   * @param {Uint8Array<ArrayBuffer>} payload
   */
  receivePhoto({ seq, y, width, height }, payload) {
    if (!this.opening || seq !== this.opening.seq) return; // the server was started again
    if (y === 0) this.opening.canvas = new OffscreenCanvas(width, height);
    const { canvas } = this.opening;
    if (canvas) context(canvas).putImageData(new ImageData(rgba(payload, 3), width), 0, y);
  }

  /** @param {import("./protocol.js").Header} header */
  opened(header) {
    if (!this.opening || header.seq !== this.opening.seq) return; // the server was started again
    const { photo, after, seq, canvas: original } = this.opening;
    const before = this.picked();
    this.opening = null;
    this.pending.clear();
    this.openSeq = this.openedSeq = seq;
    const { name, width, height } = header;
    const options = { ...this.options, mask: false, x: width / 2, y: height / 2 };
    Object.assign(this, { photo, depthFile: null, maskFile: null, ownDepth: header.depth });
    Object.assign(this, { name, width, height, original, layers: {}, pictures: {}, options });
    if (before.original) this.addOpening(before);
    this.events.hint("", false);
    this.events.opened();
    if (after) after();
    this.request();
  }

  /** @returns {Picked} */
  picked() {
    const { photo, depthFile, maskFile, ownDepth, name, width, height, original, layers, options } = this;
    return { photo, depthFile, maskFile, ownDepth, name, width, height, original, layers, options };
  }

  /**
   * Remember the photograph before, with its strokes: the step of the history that opened another.
   * @param {Picked} before
   */
  addOpening(before) {
    let other = before;
    const swap = () => {
      const now = this.picked();
      Object.assign(this, other, { options: { ...other.options }, pictures: {}, opening: null });
      this.pending.clear();
      other = now;
      this.openSeq = this.openedSeq = ++this.seq;
      this.events.opened();
      this.sendAll();
    };
    const pixels = before.width * before.height, layers = Object.keys(before.layers).length;
    this.history.add({ bytes: (4 + 8 * layers) * pixels, undo: swap, redo: swap });
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
    const { full, preview } = (this.lacksDepth ? null : this.pictures[this.tool]) ?? {};
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
    if (!this.original || !this.link.up || this.opening) return;
    this.sendStrokes();
    if (this.lacksDepth) {
      this.events.hint("There is no depth map yet: load one, or open an example.", false);
      return;
    }
    const seq = ++this.seq;
    this.asked.set(seq, performance.now());
    this.link.send({ kind: "picture", tool: this.tool, seq, live, ...this.options });
  }

  sendStrokes() {
    for (const tool of TOOLS) {
      const layer = this.layers[tool], box = layer?.takeDirty();
      if (!layer || !box) continue;
      const values = layer.read(box);
      this.link.send({ kind: "paint", tool, ...box }, new Uint8Array(values.buffer));
    }
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
