import { readFile } from "node:fs/promises";

const files = {
  "/": ["public/index.html", "text/html"],
  "/page.css": ["public/page.css", "text/css"],
  "/page.js": ["public/page.js", "text/javascript"],
  "/card.js": ["public/card.js", "text/javascript"],
  "/bucket.js": ["public/bucket.js", "text/javascript"],
  "/journal.js": ["public/journal.js", "text/javascript"],
  "/nodes.js": ["public/nodes.js", "text/javascript"],
  "/words.js": ["public/words.js", "text/javascript"],
  "/icon.svg": ["public/icon.svg", "image/svg+xml"],
  "/rules.mjs": ["rules.mjs", "text/javascript"],
};

/** Serves the page: these files, and nothing else. */
export async function servePage(request, response) {
  const path = request.url.split("?", 1)[0];
  if (!Object.hasOwn(files, path)) {
    response.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
    return;
  }
  const [name, type] = files[path];
  const body = await readFile(new URL(name, import.meta.url));
  response.writeHead(200, {
    "content-type": `${type}; charset=utf-8`,
    // Read anew on every request, so that an edit shows on reload.
    "cache-control": "no-store",
    // The page needs nothing from elsewhere, and the browser holds it to that.
    "content-security-policy": "default-src 'self'",
  });
  response.end(body);
}
