// May this page ask the server? If the server has a token, the person types it once.

import { fetched } from "./connection.js";
import { byId } from "./dom.js";
import { upper } from "./seats.js";

const ABOUT = new URL("../about", import.meta.url); // of a page without a server beside its scripts

/** What the server says of itself, once it lets the page in. */
export async function enter() {
  const answer = await fetch(ABOUT);
  if (answer.ok) return answer.json();
  if (answer.status !== 401) throw new Error(`the server answers ${answer.status}`);
  await askForToken();
  return enter();
}

/** Resolves once the server took the token. */
function askForToken() {
  const [dialog, field, said] = [byId("login"), byId("token"), byId("login_said")];
  dialog.onclose = () => dialog.showModal(); // Escape lets nobody in
  dialog.showModal();
  return new Promise((resolve) => {
    byId("login_form").onsubmit = async (event) => {
      event.preventDefault();
      const body = JSON.stringify({ token: field.value });
      field.value = "";
      try {
        await fetched("login", body);
      } catch (error) {
        said.textContent = `${upper(error.message)}.`;
        return field.focus();
      }
      dialog.onclose = null;
      dialog.close();
      resolve();
    };
  });
}
