// Short names for elements of the page.

/**
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export const get = (id) => /** @type {T} */ (document.getElementById(id));
/** @param {string} selector */
export const all = (selector) => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]);

/**
 * @param {HTMLElement} button
 * @param {boolean} pressed
 */
export function press(button, pressed) {
  button.setAttribute("aria-pressed", String(pressed));
}
