// Types of what a page holds, and of what it tells.

/** @typedef {import("./tools.js").ToolName} ToolName */
/** @typedef {import("./layer.js").Layer} Layer */
/** @typedef {{ kind: "file", name: string, bytes: Uint8Array<ArrayBuffer> } | { kind: "example", name: string }} Photo */
/** @typedef {{ kind: "depth" | "stereo", name: string, bytes: Uint8Array<ArrayBuffer>, disparities: number }} DepthFile */
/** @typedef {{ look: string, values: string, refine: boolean, mask: boolean, aperture: number, x: number, y: number }} Options */
/** @typedef {{ canvas: OffscreenCanvas, seq: number, factor: number }} Picture */
/** @typedef {{ name: string, bytes: Uint8Array<ArrayBuffer> }} MaskFile */
/**
 * @typedef {object} Picked everything that belongs to one photograph, without its results
 * @property {Photo | null} photo
 * @property {DepthFile | null} depthFile
 * @property {MaskFile | null} maskFile
 * @property {boolean} ownDepth
 * @property {string} name
 * @property {number} width
 * @property {number} height
 * @property {OffscreenCanvas | null} original
 * @property {Partial<Record<ToolName, Layer>>} layers
 * @property {Options} options
 */
/**
 * @typedef {object} Events
 * @property {(hello: import("./protocol.js").Header) => void} hello
 * @property {() => void} opened
 * @property {() => void} picture
 * @property {(text: string, bad: boolean) => void} hint
 * @property {(name: string, bytes: Uint8Array<ArrayBuffer>) => void} file
 * @property {(up: boolean) => void} link
 * @property {() => void} history
 * @property {() => void} options
 * @property {(milliseconds: number, seq: number, full: boolean) => void} timing
 */

export {};
