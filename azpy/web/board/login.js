// May this page ask the server? If the server has a token, the person types it once.

import { byId } from "./dom.js";

const ABOUT = new URL("../about", import.meta.url); // of a page without a server beside its scripts

/** What the server says of itself, once it lets the page in. */
export async function enter() {
  let answer = await fetch(ABOUT);
  while (answer.status === 401) {
    await askForToken();
    answer = await fetch(ABOUT);
  }
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  return answer.json();
}

/** Resolves once the server took the token. */
function askForToken() {
  const dialog = byId("login");
  const field = byId("token");
  const said = byId("login_said");
  dialog.onclose = () => dialog.showModal(); // Escape lets nobody in
  dialog.showModal();
  return new Promise((resolve) => {
    byId("login_form").onsubmit = async (event) => {
      event.preventDefault();
      const sent = { "Content-Type": "application/json" };
      const body = JSON.stringify({ token: field.value });
      const answer = await fetch("login", { method: "POST", headers: sent, body }).catch(() => null);
      field.value = "";
      if (answer === null) {
        said.textContent = "The server cannot be reached.";
      } else if (answer.ok) {
        dialog.onclose = null;
        dialog.close();
        resolve();
      } else {
        said.textContent = answer.status === 401 ? "The token is wrong." : `The server answers ${answer.status}.`;
        field.focus();
      }
    };
  });
}
