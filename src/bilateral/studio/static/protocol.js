// Binary messages: the length of a JSON header, the header, then bytes. See messages.py.

/** @typedef {Record<string, any> & { kind: string }} Header */
/** @typedef {{ header: Header, payload: Uint8Array<ArrayBuffer> }} Message */

/**
 * @param {Header} header
 * @param {Uint8Array<ArrayBuffer>} [payload]
 * @returns {Blob | ArrayBuffer}
 */
export function pack(header, payload) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(4 + text.length + (payload ? payload.length : 0));
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  if (payload) bytes.set(payload, 4 + text.length);
  return bytes.buffer;
}

/**
 * @param {ArrayBuffer} data
 * @returns {Message}
 */
export function unpack(data) {
  const size = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
  return { header, payload: new Uint8Array(data, 4 + size) };
}
