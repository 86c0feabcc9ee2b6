// Project files: the photograph, the depth map, all strokes and options in one file.

import { Layer } from "./layer.js";
import { context } from "./pixels.js";
import { TEXTS, TOOLS } from "./tools.js";

/** @typedef {import("./studio.js").Studio} Studio */
/** @typedef {import("./tools.js").ToolName} ToolName */

const MAGIC = "bilateral studio 1\n";

/**
 * @param {Studio} studio
 * @returns {Promise<Blob>}
 */
export async function saveProject(studio) {
  /** @type {{ key: string, bytes: Uint8Array<ArrayBuffer> }[]} */
  const parts = [];
  if (studio.photo?.kind === "file") parts.push({ key: "photo", bytes: studio.photo.bytes });
  if (studio.depthFile) parts.push({ key: "depth", bytes: studio.depthFile.bytes });
  if (studio.maskFile) parts.push({ key: "mask", bytes: studio.maskFile.bytes });
  for (const tool of TOOLS) {
    const layer = studio.layers[tool];
    if (!layer || layer.empty) continue;
    const blob = await layer.canvas.convertToBlob({ type: "image/png" });
    parts.push({ key: tool, bytes: new Uint8Array(await blob.arrayBuffer()) });
  }
  const header = {
    tool: studio.tool,
    options: studio.options,
    photo: { ...studio.photo, bytes: undefined },
    mask: studio.maskFile ? studio.maskFile.name : null,
    depth: studio.depthFile ? { ...studio.depthFile, bytes: undefined } : null,
    parts: parts.map(({ key, bytes }) => ({ key, size: bytes.length })),
  };
  return new Blob([MAGIC, JSON.stringify(header), "\n", ...parts.map((part) => part.bytes)]);
}

/**
 * @param {Uint8Array} bytes
 * @returns {boolean}
 */
export function isProject(bytes) {
  return new TextDecoder().decode(bytes.subarray(0, MAGIC.length)) === MAGIC;
}

/**
 * @param {Studio} studio
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {(tool: ToolName) => void} selectTool
 * @returns {boolean} false if the file is damaged
 */
export function openProject(studio, bytes, selectTool) {
  const project = readProject(studio, bytes);
  if (!project) return false;
  const { header, parts, options } = project;
  const photo = header.photo.kind === "file" ? { ...header.photo, bytes: parts.photo } : header.photo;
  studio.open(photo, async () => {
    studio.options = { ...studio.options, ...options };
    if (header.depth) {
      studio.depthFile = { ...header.depth, bytes: parts.depth };
      studio.sendDepth(studio.depthFile);
    }
    if (header.mask) {
      studio.maskFile = { name: header.mask, bytes: parts.mask };
      studio.sendMask(studio.maskFile);
    }
    const { layers, width, height } = studio;
    for (const tool of TOOLS) {
      if (!parts[tool]) continue;
      const layer = (layers[tool] = new Layer(width, height));
      try {
        await readLayer(layer, parts[tool]);
      } catch {
        studio.events.hint(`The strokes of ${TEXTS[tool].title} are damaged: left out.`, true);
      }
    }
    studio.events.options();
    if (TOOLS.includes(header.tool)) selectTool(header.tool);
  });
  return true;
}

/**
 * @param {Studio} studio
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
function readProject(studio, bytes) {
  try {
    const end = bytes.indexOf(10, MAGIC.length);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(MAGIC.length, end)));
    /** @type {Record<string, Uint8Array<ArrayBuffer>>} */
    const parts = {};
    let at = end + 1;
    for (const { key, size } of header.parts) {
      parts[key] = bytes.slice(at, at + size);
      at += size;
    }
    /** @type {[string, any][]} */
    const known = Object.entries(studio.options).filter(([key, value]) => typeof header.options[key] === typeof value);
    const options = Object.fromEntries(known.map(([key]) => [key, header.options[key]]));
    const names = [header.photo.name, header.depth?.name ?? "", header.mask ?? ""];
    const whole = at === bytes.length && names.every((name) => typeof name === "string");
    const has = (/** @type {string} */ key, /** @type {any} */ used) => !used || key in parts;
    const complete = has("photo", header.photo.kind === "file") && has("depth", header.depth) && has("mask", header.mask);
    return whole && complete ? { header, parts, options } : null;
  } catch {
    return null;
  }
}

/**
 * @param {Layer} layer
 * @param {Uint8Array<ArrayBuffer>} png
 */
async function readLayer(layer, png) {
  const picture = await createImageBitmap(new Blob([png]), {
    colorSpaceConversion: "none",
    premultiplyAlpha: "none",
  });
  const scratch = context(new OffscreenCanvas(layer.width, layer.height));
  scratch.drawImage(picture, 0, 0);
  const data = scratch.getImageData(0, 0, layer.width, layer.height).data;
  layer.write({ x: 0, y: 0, width: layer.width, height: layer.height }, new Uint32Array(data.buffer));
}
