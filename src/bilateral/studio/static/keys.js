// Keys of the page.

/** @typedef {import("./pointers.js").Pointers} Pointers */
/** @typedef {import("./studio.js").Studio} Studio */

/**
 * @param {Studio} studio
 * @param {HTMLElement} stage
 * @param {Pointers} pointers
 * @param {Record<string, () => void>} keys
 * @param {(event: KeyboardEvent) => boolean} moveByKey
 * @param {() => void} showCursor
 */
export function setUpKeys(studio, stage, pointers, keys, moveByKey, showCursor) {
  addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      event.preventDefault();
      if (event.shiftKey) studio.history.redo();
      else studio.history.undo();
    } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "y") {
      event.preventDefault();
      studio.history.redo();
    } else if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (event.key === " " && (target === stage || target === document.body)) {
      event.preventDefault();
      pointers.space = true;
      stage.classList.add("pans");
      showCursor();
    } else if (target === stage && studio.original && moveByKey(event)) {
      event.preventDefault();
    } else if (keys[event.key.toLowerCase()] && target.tagName !== "SELECT") {
      keys[event.key.toLowerCase()]();
    }
  });
  // After a click on a button, Space moves the picture and does not press the button again.
  addEventListener("click", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const pressed = target.closest("button, label.check") && document.activeElement !== stage;
    if (event.detail > 0 && pressed && !target.closest("#compare")) stage.focus({ preventScroll: true });
  });
  addEventListener("keyup", (event) => {
    if (event.key !== " ") return;
    pointers.space = false;
    if (pointers.panning === null) stage.classList.remove("pans");
    showCursor();
  });
}
