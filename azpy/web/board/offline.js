// What does a player's page do without a network? This service worker answers with the files that it kept.

const NAME = "azpy player";
const LIST = new URL("azpy.json", location.href);

/** Keeps all files of the player, and drops those of an older one. */
async function keep() {
  const answer = await fetch(LIST, { cache: "no-store" });
  const { all } = await answer.json();
  const kept = await caches.open(`${NAME} ${location.pathname}`);
  const files = new Set(all.map((name) => new URL(name, LIST).href));
  const old = new Set((await kept.keys()).map(({ url }) => url));
  const missing = [...files].filter((url) => !old.has(url) || !isFixed(url));
  await Promise.all(missing.map(async (url) => {
    const found = await fetch(url, { cache: "no-cache" });
    if (!found.ok) throw new Error(`${url}: the host answered ${found.status}`);
    // A new response, as browsers refuse to show a page that was redirected.
    await kept.put(url, new Response(await found.blob(), { headers: found.headers }));
  }));
  await Promise.all([...old].filter((url) => !files.has(url)).map((url) => kept.delete(url)));
}

/** Whether a file's folder is named by its content. */
const isFixed = (url) => /\/[0-9a-f]{16}\/[^?#]*$/.test(url);

async function answer(request) {
  const kept = await (await caches.open(`${NAME} ${location.pathname}`)).match(request, { ignoreSearch: true });
  if (kept !== undefined && isFixed(request.url)) return kept;
  return fetch(request).catch((error) => kept ?? Promise.reject(error));
}

addEventListener("install", (event) => event.waitUntil(keep()));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET") event.respondWith(answer(event.request));
});
