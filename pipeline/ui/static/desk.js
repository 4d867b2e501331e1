/* The desk's own script. Pages work without it. */
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  /* The connection word. Buttons and figures stay as they are: only the word changes. */
  const word = $("#connection");
  const main = $("#main");
  let last = +main.dataset.seq;
  let lost = 0;
  const tell = (text, bad) => {
    if (word.textContent !== text) word.textContent = text;
    word.classList.toggle("lost", !!bad);
  };
  const live = () => {
    lost = clearTimeout(lost);
    tell("Live" + (last ? `, record ${last.toLocaleString("en")}` : ""));
  };
  const followed = main.hasAttribute("hx-sse:connect");
  const dropped = () => {
    const text = `Connection lost${last ? ` at record ${last}` : ""}${followed ? "; trying again" : ""}`;
    lost ||= setTimeout(tell, 2000, text, 1);
  };
  const on = (event, does) => document.addEventListener(`htmx:${event}`, ({ detail }) => does(detail || {}));
  on("error", dropped);
  on("response:error", ({ ctx: { response } }) => {
    if (response.status === 403 || response.status >= 500) tell("This page is not kept up to date: reload it", 1);
  });
  if (!followed) {
    on("after:swap", () => {
      lost = clearTimeout(lost);
      tell("");
      /* A reload shows the plan of what is typed. */
      const fields = $("#new") && [...new FormData($("#new"))].filter(([, value]) => value);
      if (fields) history.replaceState(history.state, "", `?${new URLSearchParams(fields)}`);
    });
  } else {
    on("sse:after:connection", live);
    on("sse:after:message", ({ message }) => {
      last = +message.id || last;
      if (message.event !== "end") live();
    });
    on("sse:before:connection", ({ connection }) => connection.attempt && dropped());
    on("sse:error", dropped);
    on("sse:close", ({ reason }) => {
      lost = clearTimeout(lost);
      if (reason === "message") tell("Ended");
    });
  }

  /* Copying, where a page may. */
  const offer = () => navigator.clipboard && all("[data-copy]").forEach((button) => (button.hidden = false));
  offer();
  document.addEventListener("htmx:after:swap", offer);
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });

  /* What opens is typed into; what was typed into a form with `data-draft` is kept until it is sent. */
  document.addEventListener("toggle", ({ target }) => target.open && $("[data-focus]", target)?.focus(), true);
  for (const form of all("form[data-draft]")) {
    const name = `draft ${form.dataset.draft}`;
    const kept = JSON.parse(sessionStorage[name] || "{}");
    const untouched = all("textarea, [name=note], [name^='at:']", form).filter(({ value, defaultValue }) => value === defaultValue);
    untouched.forEach((field) => (field.value = kept[field.name] ?? field.value));
    form.addEventListener("input", () => {
      sessionStorage[name] = JSON.stringify(Object.fromEntries(new FormData(form)));
    });
  }

  /* What was typed before the scripts ran, or is put back by the browser, is answered too. */
  const touched = ({ value, defaultValue, checked, defaultChecked, options }) =>
    value !== (defaultValue ?? value) || checked !== defaultChecked || [...(options || [])].some((each) => each.selected !== each.defaultSelected);
  const answer = () => {
    const forms = all("form[hx-trigger^=input]").filter(({ elements }) => [...elements].some(touched));
    forms.forEach((form) => form.dispatchEvent(new Event("input")));
  };
  addEventListener("load", () => setTimeout(answer));

  /* Keys. `data-key` on a button or link is its key; rows are `[data-row]`; `[data-help]` is the button that helps. */
  const panel = $("#keys");
  const off = $("[data-keys-off]");
  const opener = $("[data-keys]");
  const rows = () => all("[data-row]");
  let at = -1;
  let went = 0;
  const list = () => {
    panel.hidden = !panel.hidden;
    (panel.hidden ? opener : panel).focus();
  };
  const move = (step) => {
    const now = rows().findIndex((row) => row.contains(document.activeElement));
    at = Math.max(0, Math.min(rows().length - 1, (now < 0 ? at : now) + step));
    if (rows()[at]) ($("a", rows()[at]) || $("button, input", rows()[at]) || rows()[at]).focus();
  };
  const focus = (element) => {
    element?.closest("details")?.setAttribute("open", "");
    element?.focus();
  };
  const KEYS = {
    "?": list,
    j: () => move(1),
    k: () => move(-1),
    x: () => document.activeElement.closest("[data-row]")?.querySelector("[type=checkbox]")?.click(),
    f: () => {
      const found = all("[data-finding]");
      found[(found.indexOf(document.activeElement) + 1) % found.length]?.focus();
    },
    g: () => (went = Date.now()),
    "/": () => focus($("input[type=search]")),
    ".": () => focus($("[data-help]")),
  };
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey && key === "Enter") ($("[data-send]", target.form || document) || $("[data-send]"))?.click();
    const typed = target.matches("input:not([type=checkbox], [type=radio]), textarea, select");
    if (typed && key === "Escape") target.blur();
    if (typed || event.ctrlKey || event.metaKey || event.altKey || (off.checked && key !== "?")) return;
    const place = Date.now() - went < 1500 && $(`[data-go="${CSS.escape(key)}"]`);
    const own = all("[data-key]").find((each) => each.dataset.key === key && each.offsetParent);
    went = 0;
    if (!place && !own && !KEYS[key]) return;
    event.preventDefault();
    if (place || own) (place || own).click();
    else KEYS[key]();
  });
  off.checked = localStorage.keysOff === "1";
  off.addEventListener("change", () => (localStorage.keysOff = off.checked ? "1" : ""));
  opener.hidden = false;
  opener.addEventListener("click", list);

  /* Runs that are selected, kept over pages. */
  const chosen = $("#chosen");
  if (chosen) {
    const kept = new Set(JSON.parse(sessionStorage.chosen || "[]"));
    const boxes = () => all('[name="run"][form="chosen"]');
    const every = $("[data-choose-all]");
    if (location.hash === "#done" || /runs\/(stop|resume|delete)$/.test(location.pathname)) {
      kept.clear();
      history.replaceState(null, "", location.pathname + location.search);
    }
    /* What was chosen before this ran. */
    boxes().forEach((box) => (box.checked || every?.checked) && kept.add(box.value));
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
    const said = inside.replace(/(\d+):(\d+)/g, (_, word, n) => `${n} ${words.split(";")[word]}`).replaceAll(",", ", ");
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
