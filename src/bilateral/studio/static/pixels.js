// Canvases, and the pixels that the server sends.

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
export function rgba(bytes, channels) {
  if (channels === 4) return new Uint8ClampedArray(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pixels = new Uint32Array(bytes.length / 3);
  for (let i = 0, at = 0; i < pixels.length; i++, at += 3) {
    pixels[i] = (255 << 24) | (bytes[at + 2] << 16) | (bytes[at + 1] << 8) | bytes[at];
  }
  return new Uint8ClampedArray(pixels.buffer);
}
