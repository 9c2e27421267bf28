// Which moves go up, down, left or right? Arrow keys play them, and swipes on the board.

import { byId, isForPage } from "./dom.js";

const KEYS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const SWIPE = 24; // pixels

/** Whether a position, or that before a roll, has no other moves. */
export function hasWays(position) {
  const { player = null, actions = [] } = position?.shown ?? {};
  if (player === null) return position !== null && position.children.length === 0 && hasWays(position.parent);
  return actions.length > 0 && actions.every(({ name }) => Object.values(KEYS).includes(name));
}

export function bindWays(play, canPlay) {
  const [board, from] = [byId("board"), { x: 0, y: 0, isDown: false }];
  const go = (way) => {
    const isOpen = canPlay() && play.isOpen && play.game.current.shown?.actions.some(({ name }) => name === way);
    if (isOpen) play.play(way);
  };
  // Before the keys that go through the moves; a key held down waits until the next tile is there.
  document.addEventListener("keydown", (event) => {
    if (!isForPage(event) || !Object.hasOwn(KEYS, event.key) || !hasWays(play.game.current)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    go(KEYS[event.key]);
  }, true);
  board.addEventListener("pointerdown", ({ clientX, clientY, button }) => {
    Object.assign(from, { x: clientX, y: clientY, isDown: button === 0 && hasWays(play.game.current) });
  });
  board.addEventListener("pointerup", ({ clientX, clientY }) => {
    const [across, down] = [clientX - from.x, clientY - from.y];
    const isFar = Math.max(Math.abs(across), Math.abs(down)) > SWIPE;
    if (!from.isDown || !isFar) return;
    from.isDown = false;
    if (Math.abs(across) > Math.abs(down)) go(across < 0 ? "left" : "right");
    else go(down < 0 ? "up" : "down");
  });
}
