const $ = (id) => document.getElementById(id);
const make = (tag, text = "", cls = "") => { const e = document.createElement(tag); e.textContent = text; if (cls) e.className = cls; return e; };
const KEYS = { ArrowRight: 128, ArrowLeft: 64, ArrowDown: 32, ArrowUp: 16, Enter: 8, ShiftLeft: 4, ShiftRight: 4, KeyZ: 2, KeyA: 2, KeyX: 1, KeyS: 1 };
const OPPOSITE = { 128: 64, 64: 128, 16: 32, 32: 16 };

const view = { socket: null, player: false, viewers: 0, facts: null };
const send = (message) => view.socket?.readyState === 1 && view.socket.send(JSON.stringify(message));
const ask = (what, more = {}) => send({ do: what, ...more });
const answer = (text, good = true) => { $("answer").textContent = text; $("answer").classList.toggle("bad", !good); };

// ---- buttons: from keys and from pads ----

const down = new Map();
let told = 0;
const held = () => {
  let bits = 0;
  // The newer of two opposite directions counts: a real pad can't press both.
  for (const bit of down.values()) bits = (bits & ~(OPPOSITE[bit] ?? 0)) | bit;
  return bits;
};
const tell = () => {
  const bits = held();
  if (bits !== told && view.player) { told = bits; send({ held: bits }); }
};
const press = (source, bit) => { down.delete(source); down.set(source, bit); tell(); };
const release = (source) => { if (down.delete(source)) tell(); };
const releaseAll = () => { down.clear(); tell(); };
// Held buttons are sent repeatedly: silence means released.
setInterval(() => { if (told && view.player) send({ held: told }); }, 500);

const over = () => Boolean(view.facts?.end);
const goOn = () => (view.facts.cleared ? ask("restart", { stage: view.facts.next }) : ask("restart"));
const togglePause = () => ask(view.facts?.paused ? "resume" : "pause");
const COMMANDS = { KeyP: togglePause, KeyR: () => ask("restart"), KeyN: () => view.facts && ask("restart", { stage: view.facts.next }) };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches?.("input, select")) return;
  const bit = KEYS[event.code], command = COMMANDS[event.code];
  if (!bit && !command) return;
  event.preventDefault();
  if (event.repeat) return;
  if (command) command();
  else if (event.code === "Enter" && over()) goOn();
  else press(event.code, bit);
}, { capture: true });
addEventListener("keyup", (event) => release(event.code), { capture: true });
addEventListener("blur", releaseAll);
document.addEventListener("visibilitychange", () => { if (document.hidden) releaseAll(); });

const pads = [...document.querySelectorAll("#pad button")];
for (const pad of pads) {
  const source = `pad ${pad.dataset.button}`;
  pad.tabIndex = -1;
  pad.addEventListener("pointerdown", (event) => { event.preventDefault(); pad.setPointerCapture(event.pointerId); press(source, Number(pad.dataset.button)); });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) pad.addEventListener(end, () => release(source));
}

// ---- what can be clicked ----

const click = (id, action) => $(id).addEventListener("click", () => { action(); $(id).blur(); });
click("pause", togglePause);
click("restart", () => ask("restart"));
click("next", () => view.facts && ask("restart", { stage: view.facts.next }));
const save = (kind) => { answer("saving"); ask("save", { kind, name: $("name").value.trim() }); };
click("save-replay", () => save("replay"));
click("save-start", () => save("start"));
$("stage").addEventListener("change", () => { ask("restart", { stage: $("stage").value }); $("stage").blur(); });
$("name").addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "Escape") $("name").blur(); });

// ---- messages from the emulator ----

const showFacts = (facts) => {
  view.facts = facts;
  const tiles = [["stage", facts.stage], ["x", facts.x], ["time", facts.time], ["score", facts.score], ["coins", facts.coins], ["lives", facts.lives], ["frames/s", facts.paused || facts.end ? "–" : facts.pace]];
  $("tiles").replaceChildren(...tiles.map(([name, value]) => { const tile = make("div"); tile.append(make("dt", name), make("dd", String(value))); return tile; }));
  for (const pad of pads) pad.classList.toggle("on", Boolean(facts.buttons & Number(pad.dataset.button)) && !facts.paused && !facts.end);
  $("pause").textContent = facts.paused ? "Resume" : "Pause";
  $("recorded").textContent = `${facts.frames} frames since the start of ${facts.start}`;
  if (document.activeElement !== $("stage")) $("stage").value = facts.start;
  const ended = facts.cleared ? `cleared! Enter: ${facts.next}` : `${facts.end.replaceAll("_", " ")} – Enter: again`;
  $("screen-text").textContent = facts.end ? ended : facts.paused ? "paused – P resumes" : "";
  $("save-start").disabled = !view.player || Boolean(facts.end);
  showState();
};
const showState = () => {
  const state = !view.player ? "watching" : view.facts.paused ? "paused" : "playing";
  $("state").textContent = view.viewers > 1 ? `${state}, ${view.viewers} pages open` : state;
  $("state").className = `pill ${{ playing: "running", paused: "paused", watching: "finished" }[state]}`;
};
const showPicture = async (data) => {
  const length = new DataView(data).getUint32(0);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const picture = await createImageBitmap(new Blob([new Uint8Array(data, 4 + length)], { type: "image/jpeg" }));
  $("screen").getContext("2d").drawImage(picture, 0, 0);
  picture.close();
  $("screen").dataset.pictures = String(1 + Number($("screen").dataset.pictures ?? 0));
  if (view.socket.readyState === 1) showFacts(facts);
};
const showSaves = (saves) => $("saves").replaceChildren(...saves.map(({ name }) => {
  const item = make("li"), open = make("button", name), download = make("a", "download");
  open.type = "button"; open.title = "Continue from here";
  open.addEventListener("click", () => { ask("open", { name }); open.blur(); });
  download.href = `saves/${encodeURIComponent(name)}`; download.download = name;
  item.append(open, download);
  return item;
}));
const HEARD = {
  console: ({ stages }) => $("stage").replaceChildren(...stages.map((s) => new Option(s === "game" ? "the whole game" : s, s))),
  place: ({ player, viewers }) => {
    Object.assign(view, { player, viewers });
    told = 0; tell();
    for (const id of ["stage", "pause", "restart", "next", "save-replay", "save-start"]) $(id).disabled = !player;
    if (view.facts) showState(); // before the first picture: still connecting
  },
  saves: ({ saves, folder }) => { showSaves(saves); if (folder) $("folder").textContent = `in ${folder}; click one to continue from there`; },
  said: ({ text, good }) => answer(text, good),
};

const connect = () => {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/play`);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }) => {
    if (typeof data !== "string") { showPicture(data); return; }
    const message = JSON.parse(data);
    HEARD[message.type]?.(message);
  });
  socket.addEventListener("close", () => {
    Object.assign(view, { player: false, viewers: 0, facts: null });
    told = 0;
    $("state").textContent = "connection lost"; $("state").className = "pill lost";
    setTimeout(() => { view.socket = connect(); }, 1500);
  });
  return socket;
};
view.socket = connect();
