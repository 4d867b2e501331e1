/* The desk's own script: the connection word, keys, copying, what was typed. Pages work without it. */
"use strict";
(() => {
  const root = document.body.dataset.root || "./";
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  /* The connection word. Buttons and figures stay as they are: only the word changes. */
  const word = $("#connection");
  const main = $("#main");
  let last = main?.dataset.seq || "";
  let lost = 0;
  const say = (text, bad = false) => {
    if (!word || word.textContent === text) return;
    word.textContent = text;
    word.classList.toggle("lost", bad);
  };
  const record = () => (Number(last) > 0 ? `, record ${Number(last).toLocaleString("en")}` : "");
  const live = () => {
    clearTimeout(lost);
    lost = 0;
    say(`Live${record()}`);
  };
  const dropped = () => {
    lost ||= setTimeout(() => say(`Connection lost${record() && " at record " + last}; trying again`, true), 2000);
  };
  if (main?.hasAttribute("hx-sse:connect")) {
    document.addEventListener("htmx:sse:after:connection", live);
    document.addEventListener("htmx:sse:after:message", (event) => {
      const id = event.detail?.message?.id;
      if (id) last = id;
      if (event.detail?.message?.event !== "end") live();
    });
    document.addEventListener("htmx:sse:error", dropped);
    document.addEventListener("htmx:sse:before:connection", (event) => {
      if (event.detail?.connection?.attempt > 0) dropped();
    });
    document.addEventListener("htmx:sse:close", (event) => {
      clearTimeout(lost);
      if (event.detail?.reason === "message") say("Ended");
    });
    // The first connection has no one to try again: the server may just be starting again.
    document.addEventListener("htmx:error", dropped);
  }

  /* Copying. */
  const offer = (from) => all("[data-copy][hidden]", from).forEach((button) => (button.hidden = !navigator.clipboard));
  offer(document);
  document.addEventListener("htmx:after:swap", () => offer(document));
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });

  /* What opens is typed into; what was typed into a form with `data-draft` is kept until it is sent. */
  document.addEventListener("toggle", (event) => event.target.open && $("[data-focus]", event.target)?.focus(), true);
  const draft = $("form[data-draft]");
  if (draft) {
    const name = `draft ${draft.dataset.draft}`;
    const fields = () => all("[name^='at:']", draft);
    const kept = JSON.parse(sessionStorage.getItem(name) || "{}");
    for (const field of fields()) field.value = kept[field.name] ?? field.value;
    draft.addEventListener("input", () => sessionStorage.setItem(name, JSON.stringify(Object.fromEntries(fields().map((field) => [field.name, field.value])))));
  }

  /* Keys. `data-key` on a button or link is its key; rows are `[data-row]`; `[data-help]` is the button that helps. */
  const OFF = "desk-keys-off";
  const isOff = () => localStorage.getItem(OFF) === "1";
  const keys = $("[data-keys]");
  const FIXED = [
    ["j k", "next, previous row"], ["Enter", "open it"], ["x", "select it"], ["/", "search"],
    ["g r", "runs"], ["g n", "new run"], ["g c", "costs"], ["g q", "questions"], [".", "the button that helps"],
    ["?", "this list"],
  ];
  const PLACES = { r: "", n: "new", c: "costs", q: "questions" };
  const rows = () => all("[data-row]");
  let at = -1;
  let went = 0;
  const move = (step) => {
    const found = rows();
    if (!found.length) return false;
    const now = found.findIndex((row) => row.contains(document.activeElement));
    at = Math.max(0, Math.min(found.length - 1, (now < 0 ? at : now) + step));
    ($("a, button, input", found[at]) || found[at]).focus();
    return true;
  };
  const press = (element) => {
    if (!element || element.disabled) return false;
    element.click();
    return true;
  };
  const row = () => document.activeElement?.closest("[data-row]");
  const act = (key) => {
    if (went && Date.now() - went < 1500 && key in PLACES) {
      location.href = root + PLACES[key];
      return true;
    }
    went = 0;
    const own = all("[data-key]").find((each) => each.dataset.key === key && each.offsetParent !== null);
    if (own) return press(own);
    if (key === "j") return move(1);
    if (key === "k") return move(-1);
    if (key === "f") {
      const found = all("[data-finding]");
      const next = found[(found.indexOf(document.activeElement) + 1) % found.length];
      next?.focus();
      return Boolean(next);
    }
    if (key === "x") return press(row() && $("input[type=checkbox]", row()));
    if (key === "g") return Boolean((went = Date.now()));
    if (key === "/" || key === ".") {
      const found = $(key === "/" ? "input[type=search]" : "[data-help]");
      found?.closest("details")?.setAttribute("open", "");
      found?.focus();
      return Boolean(found);
    }
    if (key === "?") return list();
    return false;
  };
  const inField = (element) => element?.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) {
      const send = event.ctrlKey && event.key === "Enter" && event.target.form?.querySelector("[data-send]");
      if (send) press(send);
      return;
    }
    if (event.key === "Escape") {
      if (inField(event.target)) event.target.blur();
      return;
    }
    if (inField(event.target) || (isOff() && event.key !== "?")) return;
    if (act(event.key)) event.preventDefault();
  });
  const list = () => {
    const there = $("#keys");
    if (there) {
      there.remove();
      keys?.focus();
      return true;
    }
    const panel = document.createElement("section");
    panel.id = "keys";
    panel.tabIndex = -1;
    panel.setAttribute("aria-labelledby", "keys-head");
    const head = document.createElement("h2");
    head.id = "keys-head";
    head.textContent = "Keys";
    const own = all("[data-key]").map((each) => [each.dataset.key, each.dataset.keyName || each.textContent.replace(each.dataset.key, "").trim()]);
    const names = document.createElement("dl");
    for (const [key, meaning] of [...FIXED, ...own]) {
      const term = document.createElement("dt");
      for (const each of key.split(" ")) term.append(Object.assign(document.createElement("kbd"), { textContent: each }), " ");
      names.append(term, Object.assign(document.createElement("dd"), { textContent: meaning }));
    }
    const off = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: isOff() });
    box.addEventListener("change", () => localStorage.setItem(OFF, box.checked ? "1" : "0"));
    off.append(box, " Keys off");
    panel.append(head, names, off);
    (keys?.parentElement || document.body).append(panel);
    panel.focus();
    return true;
  };
  if (keys) {
    keys.hidden = false;
    keys.addEventListener("click", list);
  }

  /* Runs that are selected, kept over pages. */
  const chosen = $("#chosen");
  if (chosen) {
    const kept = new Set(JSON.parse(sessionStorage.chosen || "[]"));
    const boxes = () => all('[name="run"][form="chosen"]');
    const every = $("[data-choose-all]");
    const show = () => {
      const here = boxes().filter((box) => (box.checked = kept.has(box.value))).length;
      const away = kept.size - here;
      if (every) every.checked = here && here === boxes().length;
      chosen.hidden = !kept.size;
      $("[data-chosen]").textContent = `${kept.size} selected${away ? ` (${away} on other pages)` : ""}`;
      sessionStorage.chosen = JSON.stringify([...kept]);
    };
    document.addEventListener("change", ({ target }) => {
      const changed = target === every ? boxes() : target.form === chosen ? [target] : [];
      changed.forEach(({ value }) => kept[target.checked ? "add" : "delete"](value));
      show();
    });
    chosen.addEventListener("reset", () => (kept.clear(), setTimeout(show)));
    chosen.addEventListener("formdata", ({ formData }) => {
      formData.delete("run");
      kept.forEach((run) => formData.append("run", run));
    });
    $("[data-clears]")?.addEventListener("submit", () => delete sessionStorage.chosen);
    document.addEventListener("htmx:after:swap", show);
    show();
  }
  /* The map of items: arrows move a frame, Enter or a click lists the cell. */
  const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -100, ArrowDown: 100, Home: -1e6, End: 1e6 };
  let cell = 0;
  const point = (map, to, open) => {
    const { each, held, words, count } = map.dataset;
    cell = Math.max(0, Math.min(map.ariaValueMax - 1, to));
    let rest = cell;
    const inside = held.split(";").find((run) => (rest -= run.includes("*") ? parseInt(run) : 1) < 0).split("*").pop();
    const said = inside.replace(/(\d+):(\d+)/g, (_, word, n) => `${n} ${words.split(";")[word]}`).replace(",", ", ");
    const first = cell * each + 1;
    const text = `Items ${first} to ${Math.min(first + +each - 1, count)}: ${said}`;
    map.ariaValueNow = cell + 1;
    map.ariaValueText = $("strong", map).textContent = text;
    const frame = $("rect", map);
    frame.setAttribute("visibility", "visible");
    frame.setAttribute("x", (cell % 100) * 10 - 1);
    frame.setAttribute("y", Math.floor(cell / 100) * 10 - 1);
    if (open) location.href = `${map.dataset.map}&from=${first}#items`;
  };
  const onMap = (event) => {
    const map = event.target.closest?.("[data-map]");
    if (!map) return;
    const box = $("svg", map).getBoundingClientRect();
    const at = (axis, from) => Math.floor(((event[axis] - box[from]) / box.width) * 100);
    if (event.type === "focusin") point(map, cell);
    else if (event.type === "click") at("clientY", "top") >= 0 && point(map, at("clientY", "top") * 100 + at("clientX", "left"), 1);
    else if (event.key in STEPS || event.key === "Enter") {
      event.preventDefault();
      point(map, cell + (STEPS[event.key] || 0), event.key === "Enter");
    }
  };
  for (const type of ["keydown", "click", "focusin"]) document.addEventListener(type, onMap);
  document.addEventListener("htmx:after:swap", () => {
    onMap({ type: "focusin", target: document.activeElement });
    document.title = $("[data-title]")?.dataset.title || document.title;
  });
})();
