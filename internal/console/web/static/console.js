// Keeps the page current: fetches it again and swaps the parts that have changed.
// What the reader has opened, typed or focused stays. Without this script the page
// is the same and is loaded anew by itself.
"use strict";

const every = 4000;
const served = new Map(); // id of a part -> its HTML as the server last gave it

const parts = (doc) => [...doc.querySelectorAll("[data-live]")];

for (const part of parts(document)) served.set(part.id, part.outerHTML);

function swap(old, fresh) {
  const open = [...old.querySelectorAll("details[open]")].map((d) => d.id);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const typed = [...old.querySelectorAll("input:not([type=hidden]), select")].map((field) => field.value);
  for (const id of open) fresh.querySelector("#" + CSS.escape(id))?.setAttribute("open", "");
  const fields = [...fresh.querySelectorAll("input:not([type=hidden]), select")];
  if (fields.length === typed.length) fields.forEach((field, i) => { field.value = typed[i]; });
  const place = focused ? order(old, focused) : -1;
  old.replaceWith(fresh);
  if (!focused) return;
  const again = focused.id ? document.getElementById(focused.id) : all(fresh)[place];
  again?.focus({ preventScroll: true });
}

// A part that is swapped is not read out; the word of the verdict is, when it changes.
let said = document.getElementById("word")?.textContent;

function say(word) {
  if (!word || word === said) return;
  said = word;
  document.getElementById("said").textContent = word;
}

const all = (part) => [...part.querySelectorAll("a, button, summary, input, select, [tabindex]")];
const order = (part, element) => all(part).indexOf(element);

async function refresh() {
  const stale = document.getElementById("stale");
  try {
    const answer = await fetch(location.pathname, { signal: AbortSignal.timeout(15000) });
    if (!answer.ok) throw new Error(answer.status);
    const doc = new DOMParser().parseFromString(await answer.text(), "text/html");
    const known = new Set(served.keys());
    for (const part of [...doc.querySelectorAll("section, [data-live]")]) {
      if (!known.has(part.id) || served.get(part.id) === part.outerHTML) continue;
      const old = document.getElementById(part.id);
      if (part.hasAttribute("data-live")) served.set(part.id, part.outerHTML);
      else served.delete(part.id);
      if (old) swap(old, document.importNode(part, true));
    }
    document.title = doc.title;
    say(doc.getElementById("word")?.textContent);
    const icon = doc.getElementById("icon");
    if (icon) document.getElementById("icon").setAttribute("href", icon.getAttribute("href"));
    stale.hidden = true;
  } catch {
    stale.hidden = false;
  }
}

async function loop() {
  while (served.size > 0) {
    await new Promise((wake) => setTimeout(wake, document.querySelector(".busy") ? 1000 : every));
    if (!document.hidden) await refresh();
  }
}

document.addEventListener("visibilitychange", () => { if (!document.hidden && served.size > 0) refresh(); });
loop();
