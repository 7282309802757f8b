// The section of a folder that `warpzone master` made: its phases, its stages, the time that is left.
import { duration, percent } from "./charts.js";

const $ = (id) => document.getElementById(id);
const make = (tag, text = "", cls = "") => { const e = document.createElement(tag); e.textContent = text; if (cls) e.className = cls; return e; };
const EVERY_MS = 2000, SILENT_S = 20;
const board = new Map();

const showPhases = (phases) => $("master-phases").replaceChildren(...Object.entries(phases).map(([name, phase]) => {
  const item = make("li", "", phase.status), track = make("i"), fill = make("b");
  fill.style.width = `${phase.status === "done" ? 100 : Math.min(100, (100 * phase.spent_s) / Math.max(1, phase.planned_s))}%`;
  track.append(fill);
  item.append(make("b", name), make("span", `${phase.status}, ${duration(phase.spent_s)} of ${duration(phase.planned_s)}${phase.note ? `; ${phase.note}` : ""}`), track);
  return item;
}));

const policyRate = (state, stage) => {
  const final = state.evaluations[state.chosen]?.sampled?.[stage]?.clear_rate;
  const newest = Object.values(state.policies).reverse().find((run) => run.clear_rate[stage] !== undefined);
  return final ?? newest?.clear_rate[stage];
};
const follow = (run) => {
  const select = $("run");
  if (![...select.options].some((option) => option.value === run)) return;
  select.value = run;
  select.dispatchEvent(new Event("change"));
};
const showStages = (state) => {
  for (const [name, one] of Object.entries(state.specialists)) for (const stage of one.stages) {
    if (!board.has(stage)) {
      const button = make("button");
      button.type = "button";
      button.dataset.stage = stage;
      button.append(make("b", stage), make("span"), make("span"), make("span"));
      button.addEventListener("click", () => follow(`specialist-${name}`));
      board.set(stage, button);
      $("master-board").append(button);
    }
    const button = board.get(stage), rate = one.clear_rate[stage], policy = policyRate(state, stage);
    button.className = one.status;
    button.children[1].textContent = one.status;
    button.children[2].textContent = `specialist ${rate === undefined ? "–" : percent(rate)}`;
    button.children[3].textContent = `policy ${policy === undefined ? "–" : percent(policy)}`;
    button.title = one.error || `trained for ${duration(one.spent_s)}; shows this run`;
  }
};
const show = (state) => {
  $("master").hidden = false;
  const spent = Object.values(state.phases).reduce((sum, phase) => sum + phase.spent_s, 0);
  const silent = state.status === "running" && Date.now() / 1000 - state.updated_unix_s > SILENT_S;
  const left = Math.max(0, 60 * state.settings.minutes - spent);
  $("master-note").textContent = state.status === "running" && !silent ? `${duration(left)} left` : `${silent ? "not running" : state.status}, after ${duration(spent)}`;
  showPhases(state.phases);
  showStages(state);
  $("master-short").replaceChildren(...Object.entries(state.short).map(([stage, why]) => make("li", `${stage} is short of the target: ${why}`)));
};
const refresh = async () => {
  const reply = await fetch("api/master").catch(() => null);
  const state = reply?.ok ? await reply.json().catch(() => ({})) : {};
  if (state.phases) show(state);
  setTimeout(refresh, EVERY_MS);
};
refresh();
