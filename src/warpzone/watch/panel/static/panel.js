import { Chart, duration, percent, short } from "./charts.js";

const $ = (id) => document.getElementById(id);
const make = (tag, text = "", cls = "") => { const e = document.createElement(tag); e.textContent = text; if (cls) e.className = cls; return e; };
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const PALETTE = ["#f78166", "#d2a8ff", "#79c0ff", "#ffa657", "#7ee787", "#ff9bce"];
const STAGES = [...Array(8).keys()].flatMap((w) => [1, 2, 3, 4].map((s) => `${w + 1}-${s}`));

const view = { run: "", curves: {}, total: 0, epoch: -1, status: {}, bounds: {}, axis: "global_step", others: new Map(), live: null, play: null };
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.get("token")) sessionStorage.setItem(`token:${fragment.get("run")}`, fragment.get("token"));
if (location.hash) history.replaceState(null, "", location.pathname + (fragment.get("run") ? `#run=${encodeURIComponent(fragment.get("run"))}` : ""));

// ---- curves ----

const one = (key, name, tint, extra = {}) => (c) => [{ label: name, color: color(tint), values: c[key] ?? [], main: true, ...extra }];
// Only the first series is there in every run; the others where they are ever more or less than nothing.
const many = (...list) => (c) => list.map(([key, name, tint], i) => ({ label: name, color: color(tint), values: c[key] ?? [], main: i === 0 }))
  .filter((s) => s.main || s.values.some((v) => v));
const stageHue = (i, n) => `hsl(${(15 + (360 * i) / n) % 360} 60% 55%)`;
const clearRates = (c) => {
  const rows = c.clear_rate ?? [], seen = new Set(rows.flatMap((r) => Object.keys(r ?? {})));
  const stages = STAGES.filter((s) => seen.has(s));
  const each = stages.map((s, i) => ({ label: s, color: stageHue(i, stages.length), values: rows.map((r) => r?.[s] ?? null), width: stages.length > 1 ? 1 : 2, main: stages.length === 1 }));
  const mean = { label: "mean", color: color("--text"), values: c.clear_rate_mean ?? [], width: 2, main: true };
  const noisy = { label: "with noise", color: color("--dim"), values: c.clear_rate_noisy ?? [] };
  const shown = stages.length > 1 ? [mean, ...each] : each;
  return noisy.values.some((v) => v !== null) ? [...shown, noisy] : shown;
};
const charts = [
  { id: "return", title: "Return", series: many(["avg_return", "mean", "--accent"], ["recent_return_p50", "median", "--blue"], ["recent_return_p90", "p90", "--violet"]) },
  { id: "clear", title: "Clear rate per stage", series: clearRates, format: percent, low: 0, high: 1 },
  { id: "speed", title: "Decisions per second", series: one("env_steps_per_sec", "decisions/s", "--teal"), low: 0 },
  { id: "entropy", title: "Entropy", series: one("entropy", "entropy", "--gold"), low: 0 },
  { id: "loss", title: "Losses", series: many(["loss_total", "total", "--text"], ["loss_policy", "policy", "--red"], ["loss_value", "value", "--blue"], ["loss_per", "replay", "--violet"], ["loss_teacher", "teachers", "--teal"]) },
  { id: "split", title: "Share of time", series: many(["collect_share", "collecting", "--teal"], ["learn_share", "learning", "--violet"]), format: percent, low: 0 },
  { id: "x", title: "Position", series: many(["env_max_x_pos", "furthest", "--accent"], ["env_mean_x_pos", "mean", "--blue"]), low: 0 },
  { id: "rate", title: "Learning rate", series: one("learning_rate", "learning rate", "--gold"), low: 0 },
  { id: "kl", title: "KL divergence", series: one("approx_kl", "KL", "--red") },
  { id: "gradient", title: "Gradient norm", series: one("grad_norm", "norm", "--violet"), low: 0 },
  { id: "lag", title: "Policy lag, updates", series: one("policy_lag", "lag", "--blue"), low: 0 },
  { id: "variance", title: "Explained variance", series: one("explained_variance", "explained", "--accent"), high: 1 },
].map((settings) => new Chart($("charts"), settings));

const drawCharts = () => { for (const chart of charts) chart.show(view.curves, view.axis, [...view.others.values()]); };

const append = (more) => {
  for (const [key, values] of Object.entries(more)) (view.curves[key] ??= []).push(...values);
  const n = view.curves.update?.length ?? 0;
  if (n > 1800) for (const key of Object.keys(view.curves)) view.curves[key] = view.curves[key].filter((_, i) => i % 2 === (n - 1) % 2);
};

// ---- everything else that the run reports ----

const pairs = (into, rows) => into.replaceChildren(...rows.filter(([, v]) => v !== null && v !== undefined).flatMap(([k, v]) => {
  const cell = make("dd", String(v));
  return [make("dt", k), cell];
}));

const showStatus = (status) => {
  view.status = status;
  const { last, heartbeat: beat, control } = status;
  $("state").textContent = status.state;
  $("state").className = `pill ${status.state}`;
  $("tiles").replaceChildren(...[
    ["update", short(last.update)], ["decisions", short(last.global_step)], ["decisions/s", short(last.env_steps_per_sec)],
    ["return", short(last.avg_return)], ["clear rate", percent(last.clear_rate_mean)], ["trained for", duration(last.elapsed_s)],
    ["first flag", duration(last.time_to_first_flag)],
  ].map(([name, value]) => { const d = make("div"); d.append(make("dt", name), make("dd", value)); return d; }));
  const age = beat.timestamp ? Date.now() / 1000 - beat.timestamp : null;
  pairs($("health"), [
    ["phase", beat.phase], ["last sign of life", age === null ? null : `${duration(age)} ago`], ["memory", beat.rss_mb ? `${short(beat.rss_mb)} MB` : null],
    ["processor", beat.cpu_percent === undefined ? null : `${Math.round(beat.cpu_percent)} %`], ["threads", beat.threads], ["open files", beat.open_files],
    ["machine's memory", last.memory_percent ? `${Math.round(last.memory_percent)} %` : null],
    ["GPU", last.gpu_util_last === null || last.gpu_util_last === undefined ? "none" : `${short(last.gpu_util_last)} %, ${short(last.gpu_mem_used_mb)} MB`],
    ["replay", last.replay_capacity ? `${percent(last.replay_fill_rate)} full, ${percent(last.replay_avg_unique_ratio)} unique` : "off"],
    ["replay priority p50 / p99", last.replay_capacity ? `${short(last.replay_priority_p50)} / ${short(last.replay_priority_p99)}` : null],
    ["replay sampling", last.replay_capacity ? `${short(last.replay_sample_time_ms)} ms` : null],
    ["policy lag", last.policy_lag === null || last.policy_lag === undefined ? null : `${short(last.policy_lag)} updates`],
    ["stagnating", last.stagnation_envs === undefined ? null : `${last.stagnation_envs} environments`],
    ["checkpoint", status.checkpoint.global_update ? `update ${status.checkpoint.global_update}` : "none yet"],
  ]);
  showHosts(last);
  showBoard(status.clear_rate, status.stage_share);
  showControls(control ?? {});
};

const showHosts = (last) => {
  const hosts = last.hosts ?? [];
  $("hosts-card").hidden = !hosts.length;
  $("hosts-note").textContent = `${last.host_restarts} restarts, ${last.episodes_lost} episodes lost, ${short(last.bytes_per_decision)} bytes a decision`;
  $("hosts").replaceChildren(...hosts.map((host, i) => {
    const row = make("tr");
    row.append(...[i, host.node, short(host.decisions_per_s), short(host.mb_per_s), `${short(host.round_trip_ms)} ms`, `${short(host.lag_ms)} ms`, host.restarts].map((t) => make("td", t)));
    return row;
  }));
};

const board = new Map(STAGES.map((stage) => {
  const tile = make("div", "", "tile");
  tile.dataset.stage = stage;
  tile.append(make("b", stage), make("span", "–"), make("i"));
  $("board").append(tile);
  return [stage, tile];
}));
const showBoard = (rates, shares) => {
  const largest = Math.max(...Object.values(shares), 1e-9);
  for (const [stage, tile] of board) {
    const rate = rates[stage];
    const seen = rate !== undefined && rate !== null;
    tile.classList.toggle("seen", seen);
    tile.children[1].textContent = seen ? percent(rate) : "–";
    tile.title = shares[stage] === undefined ? "" : `${stage} is sampled for ${percent(shares[stage])} of the episodes`;
    tile.children[2].style.width = `${100 * (shares[stage] ?? 0) / largest}%`;
    tile.style.background = seen ? `hsl(${2 + 128 * rate} ${60 - 5 * rate}% ${38 - 4 * rate}%)` : "";
  }
};

const showEpisodes = (episodes) => $("episodes").replaceChildren(...episodes.map((e) => {
  const row = make("tr", "", e.cleared ? "cleared" : "");
  row.append(...[e.stage, e.cleared ? "cleared" : e.end || "–", short(e.x_max), short(e.return), short(e.length), short(e.update)].map((t) => make("td", t)));
  return row;
}));

const showVideos = (videos) => {
  if (!videos.length) { $("videos").replaceChildren(make("li", "None yet. Training records them with --video-interval; warpzone record makes one of the best checkpoint.", "none")); return; }
  $("videos").replaceChildren(...videos.map((video) => {
    const item = make("li"), link = make("button", video.name);
    link.type = "button";
    link.addEventListener("click", () => {
      const film = make(video.name.endsWith(".gif") ? "img" : "video");
      film.src = `api/runs/${encodeURIComponent(view.run)}/videos/${encodeURIComponent(video.name)}`;
      if (film.tagName === "VIDEO") { film.controls = film.autoplay = film.loop = film.muted = true; } else film.alt = video.name;
      $("player").replaceChildren(film);
    });
    item.append(link, make("span", `${(video.bytes / 1e6).toFixed(1)} MB`));
    return item;
  }));
};

const showLog = (text) => {
  const box = $("log"), atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 30;
  box.textContent = text || "Nothing logged yet.";
  if (atEnd) box.scrollTop = box.scrollHeight;
};

// ---- controls ----

const NAMES = { learning_rate: "learning rate", entropy_coef: "entropy bonus", reward_distance_weight: "reward per pixel", reward_score_weight: "reward per point", reward_flag: "completion reward", reward_death: "death penalty", reward_time_weight: "time penalty", reward_wrong_turn: "wrong-turn penalty", reward_coin_weight: "reward per coin" };
const inputs = new Map();
const buildSettings = (bounds) => {
  $("settings").replaceChildren();
  inputs.clear();
  for (const name of [...Object.keys(bounds), "stage_mix"]) {
    const label = make("label", NAMES[name] ?? "stages, as 1-1:1 1-2:3"), input = make("input");
    input.id = `set-${name}`; label.htmlFor = input.id;
    input.inputMode = name === "stage_mix" ? "text" : "decimal";
    input.autocomplete = "off";
    if (name === "stage_mix") input.className = "wide";
    if (bounds[name]) input.title = `from ${bounds[name][0]} to ${bounds[name][1]}`;
    input.addEventListener("input", () => input.classList.toggle("changed", input.value !== input.dataset.now));
    inputs.set(name, input);
    $("settings").append(label, input);
  }
};
const mixText = (mix) => Object.entries(mix ?? {}).filter(([, share]) => share > 0).map(([s, share]) => `${s}:${Number(share.toPrecision(2))}`).join(" ");
let seenResult = "";
const showControls = (control) => {
  const alive = ["running", "paused", "stalled"].includes(view.status.state);
  for (const id of ["pause", "checkpoint", "stop", "apply"]) $(id).disabled = !alive;
  $("pause").textContent = control.paused ? "Resume" : "Pause";
  $("control-note").textContent = alive ? "" : "the run is not training";
  for (const [name, input] of inputs) {
    const now = name === "stage_mix" ? mixText(control.stage_mix) : control.values?.[name] === undefined ? "" : String(Number(control.values[name].toPrecision(4)));
    if (input.value === (input.dataset.now ?? "") || input.value === now) { input.value = now; input.classList.remove("changed"); }
    input.dataset.now = now;
  }
  const result = control.results?.at(-1);
  if (result && result.id !== seenResult && seenResult !== "") answer(result.text, result.accepted);
  if (result) seenResult = result.id; else if (seenResult === "") seenResult = "none";
};
const answer = (text, good = true) => { $("answer").textContent = text; $("answer").classList.toggle("bad", !good); };
const send = async (body) => {
  const token = $("token").value.trim();
  sessionStorage.setItem(`token:${view.run}`, token);
  try {
    const reply = await fetch(`api/runs/${encodeURIComponent(view.run)}/control`, { method: "POST", headers: { "content-type": "application/json", "x-run-token": encodeURIComponent(token) }, body: JSON.stringify(body) });
    const said = await reply.json();
    if (!reply.ok) answer(said.detail ?? "refused", false); else answer("requested: takes effect after this update");
    return reply.ok;
  } catch { answer("the page's server does not answer", false); return false; }
};
$("pause").addEventListener("click", () => send({ command: $("pause").textContent === "Pause" ? "pause" : "resume" }));
$("checkpoint").addEventListener("click", () => send({ command: "checkpoint" }));
let sure = 0;
$("stop").addEventListener("click", () => {
  clearTimeout(sure);
  if ($("stop").textContent === "Stop") { $("stop").textContent = "Really stop?"; sure = setTimeout(() => { $("stop").textContent = "Stop"; }, 4000); return; }
  $("stop").textContent = "Stop";
  send({ command: "stop" });
});
$("apply").addEventListener("click", async () => {
  const values = {};
  for (const [name, input] of inputs) {
    if (input.value === (input.dataset.now ?? "") || !input.value.trim()) continue;
    if (name === "stage_mix") values[name] = Object.fromEntries(input.value.trim().split(/[\s,]+/).map((p) => p.split(":")).map(([s, share]) => [s, Number(share ?? 1)]));
    else values[name] = Number(input.value);
  }
  if (!Object.keys(values).length) { answer("nothing was changed", false); return; }
  if (await send({ command: "set", values })) for (const input of inputs.values()) input.dataset.now = input.value;
});

// ---- the agent playing ----

$("play-stage").append(new Option("the run's own", ""), ...STAGES.map((s) => new Option(s, s)));
$("play-stage").addEventListener("change", () => view.play?.readyState === 1 && view.play.send(JSON.stringify({ stage: $("play-stage").value })));
const bars = [];
const usedTerms = new Set();  // rewards that were ever different from 0: the others are not listed
const showThoughts = (facts) => {
  if (bars.length !== facts.actions.length) {
    bars.length = 0;
    $("probabilities").replaceChildren(...facts.actions.flatMap((name) => {
      const label = make("span", name.replaceAll("+", " ").toLowerCase()), track = make("i"), fill = make("b"), value = make("em");
      track.append(fill);
      bars.push([label, fill, value]);
      return [label, track, value];
    }));
  }
  bars.forEach(([label, fill, value], i) => {
    label.classList.toggle("on", i === facts.action);
    fill.style.width = `${100 * facts.probabilities[i]}%`;
    value.textContent = percent(facts.probabilities[i]);
  });
  const terms = Object.entries(facts.reward_terms);
  for (const [name, value] of terms) if (value) usedTerms.add(name);
  pairs($("facts"), [
    ["stage", facts.stage], ["value", facts.value.toFixed(2)], ["return so far", facts.return.toFixed(2)],
    facts.reward_note ? ["rewards", facts.reward_note] : ["rewards now, scaled", ""],
    ...terms.filter(([name]) => usedTerms.has(name)).map(([name, value]) => [`reward: ${name}`, value.toFixed(3)]),
    ["x", facts.x], ["furthest x", facts.x_max], ["time", facts.time], ["score", facts.score],
  ]);
  $("play-note").textContent = `checkpoint of update ${facts.checkpoint_update}`;
  $("screen-text").textContent = facts.cleared ? "cleared!" : facts.end ? facts.end.replaceAll("_", " ") : "";
};
const showPicture = async (data) => {
  if (typeof data === "string") { $("screen-text").textContent = JSON.parse(data).waiting ?? ""; return; }
  const length = new DataView(data).getUint32(0);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const { run } = view, picture = await createImageBitmap(new Blob([new Uint8Array(data, 4 + length)], { type: "image/jpeg" }));
  if (view.run !== run) { picture.close(); return; } // another run has been chosen meanwhile
  $("screen").getContext("2d").drawImage(picture, 0, 0);
  picture.close();
  $("screen").dataset.pictures = String(1 + Number($("screen").dataset.pictures ?? 0));
  showThoughts(facts);
};

// ---- connections ----

const address = (run, what) => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/runs/${encodeURIComponent(run)}/${what}`;
const connect = (run, what, onMessage) => {
  const socket = new WebSocket(address(run, what));
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", (event) => { if (view.run === run) onMessage(event.data); });
  socket.addEventListener("close", () => {
    if (view.run !== run || view[what] !== socket) return;
    if (what === "live") { $("state").textContent = "connection lost"; $("state").className = "pill lost"; }
    setTimeout(() => { if (view.run === run && view[what] === socket) view[what] = document.hidden && what === "play" ? null : connect(run, what, onMessage); }, 2000);
  });
  return socket;
};
const onLive = (text) => {
  const news = JSON.parse(text);
  if (news.type === "all") { view.curves = news.curves; view.total = news.total; view.epoch = news.epoch; }
  else if (news.curves && news.epoch === view.epoch) {
    const late = Math.max(0, view.total - news.from);
    append(Object.fromEntries(Object.entries(news.curves).map(([k, v]) => [k, v.slice(late)])));
    view.total = Math.max(view.total, news.total);
  }
  if (news.curves) drawCharts();
  if (news.status) showStatus(news.status);
  if (news.episodes) showEpisodes(news.episodes);
  if (news.videos) showVideos(news.videos);
  if (news.log !== undefined) showLog(news.log);
};
const close = (what) => { const socket = view[what]; view[what] = null; socket?.close(); };
const follow = (run) => {
  close("live"); close("play");
  Object.assign(view, { run, curves: {}, total: 0, epoch: -1 });
  seenResult = "";
  usedTerms.clear();
  answer("");
  clearTimeout(sure); $("stop").textContent = "Stop";
  history.replaceState(null, "", `#run=${encodeURIComponent(run)}`);
  document.title = `${run} – Warpzone`;
  $("token").value = sessionStorage.getItem(`token:${run}`) ?? "";
  $("play-note").textContent = ""; $("screen-text").textContent = "waiting for the agent";
  for (const input of inputs.values()) { input.value = ""; delete input.dataset.now; }
  view.live = connect(run, "live", onLive);
  view.play = connect(run, "play", showPicture);
};
// A hidden page has no viewer, so nothing needs to be played for it.
document.addEventListener("visibilitychange", () => {
  if (!view.run) return;
  if (document.hidden) close("play"); else if (!view.play) view.play = connect(view.run, "play", showPicture);
});

const refreshOthers = async () => {
  for (const [name, other] of view.others) {
    const reply = await fetch(`api/runs/${encodeURIComponent(name)}/curves`).catch(() => null);
    if (reply?.ok) other.curves = (await reply.json()).curves;
  }
  if (view.others.size) drawCharts();
};
const listRuns = async () => {
  const reply = await fetch("api/runs").catch(() => null);
  if (!reply?.ok) return null;
  const listed = await reply.json();
  const names = listed.runs.map((r) => r.name);
  const select = $("run");
  if ([...select.options].map((o) => o.value).join("\n") !== names.join("\n")) {
    select.replaceChildren(...names.map((n) => new Option(n, n)));
    $("compare-list").replaceChildren(...names.map((name, i) => {
      const label = make("label"), box = make("input"), key = make("span", "", "key");
      box.type = "checkbox"; box.checked = view.others.has(name);
      key.style.background = PALETTE[i % PALETTE.length];
      box.addEventListener("change", () => {
        if (box.checked) view.others.set(name, { name, color: PALETTE[i % PALETTE.length], curves: {} }); else view.others.delete(name);
        refreshOthers().then(drawCharts);
      });
      label.append(box, key, name);
      return label;
    }));
  }
  select.value = view.run;
  return listed;
};

$("run").addEventListener("change", () => follow($("run").value));
$("axis").addEventListener("change", () => { view.axis = $("axis").value; drawCharts(); });
const start = async () => {
  const listed = await listRuns();
  if (listed) buildSettings(listed.bounds);
  const names = listed?.runs.map((r) => r.name) ?? [];
  const wanted = [fragment.get("run"), listed?.first].find((n) => n && names.includes(n)) ?? names[0];
  if (wanted) { $("run").value = wanted; follow(wanted); $("run").value = wanted; } else {
    $("state").textContent = "no run yet";
    drawCharts();
    setTimeout(start, 2000);
  }
};
start();
setInterval(listRuns, 5000);
setInterval(refreshOthers, 4000);
