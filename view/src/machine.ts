/** The tab of the machine: one canvas per result, the slider of virtual time, and what is chosen. */

import { type Drawing, type FramesInfo, get, type MachinePath, numbers, type Quantity } from "./api";
import { isDark, Ramp } from "./colours";
import { Details } from "./details";
import { h } from "./dom";
import { count, time, valueText } from "./format";
import { MachineMap, type Thing } from "./map";
import { type Gathering, Pane } from "./pane";
import { keep, place } from "./place";
import type { State } from "./state";

/** Results that are drawn side by side. */
const MOST_PANES = 2;
/** Intervals of telemetry per second while it plays. */
const PLAYED_PER_SECOND = 12;
/** Intervals that are kept. */
const KEPT = 96;

/** A result on its canvas. */
interface Shown {
  result: number;
  pane: Pane;
  frames: FramesInfo | null;
  kept: Map<string, Float32Array>;
}

export class MachineTab {
  readonly element = h("section", { class: "machine", id: "tab-machine" });
  private shown: Shown[] = [];
  private quantity: Quantity;
  private interval: number | null = null;
  private chosen: Thing | null = null;
  private second: Thing | null = null;
  private playing = false;
  private asked = 0;
  private readonly details: Details;
  private readonly panes = h("div", { class: "panes" });
  private readonly status = h("p", { class: "status", role: "status" });
  private readonly legend = h("div", { class: "scale" });
  private readonly choice = h("select", { id: "quantity", title: "Quantity that colours the machine (q)" });
  private readonly gathering = h("select", {
    id: "gathering",
    title: "Value of a thing of several links (a)",
  });
  private readonly range = h(
    "select",
    { id: "range", title: "The share that has the last colour (m)" },
    h("option", { value: "whole" }, "100 %"),
    h("option", { value: "own" }, "run's own maximum"),
  );
  private readonly marks = h("div", { class: "marks", id: "marks" });
  private readonly slider = h("input", {
    type: "range",
    id: "time",
    min: "0",
    max: "0",
    step: "1",
    value: "0",
  });
  private readonly clock = h("output", { id: "clock" });
  private readonly play = h("button", { id: "play", title: "Play (space)" }, "▶");
  private readonly whole = h("button", { id: "whole", title: "Values of the whole run (w)" }, "whole run");
  private readonly find = h("input", {
    id: "find",
    type: "search",
    placeholder: "find: e 12, s 3, s 3 p 2, a name  ( / )",
    "aria-label": "Find an endpoint, a switch or a link",
  });

  constructor(private readonly state: State) {
    this.details = new Details(state, (thing) => this.choose(thing, false, true));
    this.quantity = this.known()[0];
    this.gathering.append(h("option", { value: "most" }, "highest"), h("option", { value: "mean" }, "mean"));
    const bar = h(
      "div",
      { class: "bar" },
      h("label", {}, "colour ", this.choice),
      h("label", {}, "several links: ", this.gathering),
      h("label", {}, "up to ", this.range),
      this.legend,
      this.find,
    );
    const track = h("div", { class: "track" }, this.slider, this.marks);
    const timeBar = h("div", { class: "time" }, this.play, track, this.clock, this.whole);
    const left = h("div", { class: "drawing" }, bar, this.panes, timeBar, this.status);
    this.element.append(left, this.details.element);
    this.choice.addEventListener("change", () => this.pick(this.choice.value));
    this.gathering.addEventListener("change", () => this.gather(this.gathering.value as Gathering));
    this.range.addEventListener("change", () => this.draw());
    this.slider.addEventListener("input", () => this.goTo(Number(this.slider.value)));
    this.play.addEventListener("click", () => this.toggle());
    this.whole.addEventListener("click", () => this.goTo(null));
    this.find.addEventListener("change", () => this.look(this.find.value));
    state.onChange(() => this.reload());
  }

  /** Fetches and draws the machines. */
  async open(): Promise<void> {
    const results = this.state.results.slice(0, MOST_PANES);
    const made = await Promise.all(
      results.map(async (info, result) => {
        try {
          return new MachineMap(await get<Drawing>("machine", { result }));
        } catch (error) {
          this.panes.append(h("p", { class: "empty" }, `${info.name}: ${(error as Error).message}`));
          return null;
        }
      }),
    );
    made.forEach((map, result) => {
      if (map) this.add(map, result);
    });
    this.restore();
    this.fillChoice();
    await this.reload();
  }

  /** Takes up what the address says. */
  private restore(): void {
    const { quantity, several, colours, at, chosen, second } = place();
    this.quantity = this.known().find((one) => one.name === quantity) ?? this.quantity;
    if (several) this.gather(several as Gathering);
    if (colours) this.range.value = colours;
    if (at && Number.isInteger(Number(at))) this.interval = Number(at);
    const map = this.shown[0]?.pane.map;
    const thing = (text: string | undefined) => {
      const found = text && map ? named(map, text) : null;
      return found && map && isIn(map, found) ? found : null;
    };
    if (thing(chosen)) this.choose(thing(chosen), false);
    if (thing(second)) this.choose(thing(second), true);
  }

  /** Writes what is shown into the address. */
  private keepPlace(): void {
    const map = this.shown[0]?.pane.map;
    const text = (thing: Thing | null) => (thing && map ? shortName(map, thing) : "");
    keep({
      quantity: this.quantity.name,
      several: this.gathering.value === "mean" ? "mean" : "",
      colours: this.range.value === "own" ? "own" : "",
      at: this.interval === null || this.state.isLive ? "" : String(this.interval),
      chosen: text(this.chosen),
      second: text(this.second),
    });
  }

  private add(map: MachineMap, result: number): void {
    const info = this.state.results[result];
    const pane = new Pane(map, new Ramp(isDark()), `The machine ${map.drawing.name} of ${info.name}`);
    const shown: Shown = { result, pane, frames: null, kept: new Map() };
    pane.onChoose = (thing, isSecond) => this.choose(thing, isSecond);
    pane.onHover = (thing) => this.tell(shown, thing);
    pane.onView = (view) => {
      for (const other of this.shown) {
        if (other.pane === pane || other.pane.map.switches !== map.switches) continue;
        Object.assign(other.pane.view, view);
        other.pane.due();
      }
    };
    if (this.state.results.length > 1) pane.element.append(h("h3", { class: "pane-name" }, info.name));
    this.shown.push(shown);
    this.panes.append(pane.element);
    const { drawing } = map;
    const counts = `${count(map.endpoints)} endpoints, ${count(map.switches)} switches`;
    pane.element.title = "";
    this.status.textContent = `${drawing.name}: ${counts}`;
  }

  get panesShown(): Pane[] {
    return this.shown.map((shown) => shown.pane);
  }

  /** Quantities that a result has. */
  private known(): Quantity[] {
    const quantities = this.state.results[0].quantities.filter((one) => one.whole || one.over_time);
    return quantities.length > 0 ? quantities : [this.state.results[0].quantities[0]];
  }

  private fillChoice(): void {
    this.choice.replaceChildren(
      ...this.known().map((one) =>
        h("option", { value: one.name }, one.over_time ? `${one.name} ◷` : one.name),
      ),
    );
    this.choice.value = this.quantity.name;
  }

  private pick(name: string): void {
    this.quantity = this.known().find((one) => one.name === name) ?? this.quantity;
    this.choice.value = this.quantity.name;
    void this.reload();
  }

  private gather(gathering: Gathering): void {
    this.gathering.value = gathering;
    for (const { pane } of this.shown) pane.gathering = gathering;
    void this.draw();
  }

  /** Fetches what depends on run, quantity and theme. */
  private async reload(): Promise<void> {
    // A run that goes on has more tables than it had.
    this.quantity = this.known().find((one) => one.name === this.quantity.name) ?? this.known()[0];
    this.fillChoice();
    const quantity = this.quantity.name;
    const before = this.shown[0]?.frames?.interval_ps;
    const follows = this.state.isLive && (this.interval === null || this.interval >= Number(this.slider.max));
    for (const shown of this.shown) {
      shown.frames = null;
      shown.kept.clear();
      shown.pane.ramp = new Ramp(isDark());
    }
    // The whole run first: telemetry takes longer. Of a run that goes on there is none.
    if (!this.state.isLive) await this.draw();
    if (this.quantity.over_time) {
      await Promise.all(
        this.shown.map(async (shown) => {
          const { result } = shown;
          const run = this.state.runOf(result);
          try {
            const frames = await get<FramesInfo>("frames", { result, run, quantity });
            if (this.quantity.name === quantity) shown.frames = frames;
          } catch (error) {
            this.status.textContent = (error as Error).message;
          }
        }),
      );
    }
    const frames = this.shown[0]?.frames;
    this.slider.disabled = !frames;
    this.play.disabled = !frames;
    this.slider.max = String(Math.max((frames?.count ?? 1) - 1, 0));
    this.slider.title = frames ? "" : "No telemetry of this quantity: run it again with --telemetry";
    if (!frames) this.stop();
    if (follows && frames) this.interval = frames.count - 1;
    else if (this.interval !== null && before && frames && frames.interval_ps !== before) {
      // A longer run is shown in longer intervals: the time stays.
      this.interval = Math.floor(((this.interval + 0.5) * before) / frames.interval_ps);
    }
    if (this.interval !== null) this.interval = frames ? Math.min(this.interval, frames.count - 1) : null;
    await this.draw();
    await this.tellChosen();
    document.documentElement.dataset.ready = "machine";
  }

  /** The interval of a result at the time of the slider. */
  private intervalOf(shown: Shown): number | null {
    const first = this.shown[0].frames;
    if (this.interval === null || !first || !shown.frames) return null;
    const at = Math.floor(((this.interval + 0.5) * first.interval_ps) / shown.frames.interval_ps);
    return Math.min(at, shown.frames.count - 1);
  }

  private async values(shown: Shown, interval: number | null): Promise<Float32Array> {
    const { result } = shown;
    const [run, quantity] = [this.state.runOf(result), this.quantity.name];
    const key = `${run} ${quantity} ${interval}`;
    const known = shown.kept.get(key);
    if (known) return known;
    const of = { result, run, quantity };
    const values =
      interval === null ? await numbers("totals", of) : await numbers("frame", { ...of, interval });
    if (shown.kept.size >= KEPT) shown.kept.delete(shown.kept.keys().next().value!);
    shown.kept.set(key, values);
    return values;
  }

  /** Draws the values of the quantity at the time of the slider. */
  private async draw(): Promise<void> {
    this.asked += 1;
    const asked = this.asked;
    const all = await Promise.all(
      this.shown.map(async (shown) => {
        try {
          return await this.values(shown, this.intervalOf(shown));
        } catch (error) {
          this.status.textContent = (error as Error).message;
          return new Float32Array(shown.pane.map.linkCount);
        }
      }),
    );
    // Another interval was asked for meanwhile.
    if (asked !== this.asked) return;
    let most = 0;
    this.shown.forEach((shown, number) => {
      const ofAll = this.interval !== null && shown.frames ? shown.frames.most : highest(all[number]);
      most = Math.max(most, ofAll);
    });
    // Shares look the same in every run, unless asked for otherwise.
    const isShare = this.quantity.unit === "";
    this.range.disabled = !isShare;
    if (isShare && this.range.value === "whole") most = 1;
    this.shown.forEach((shown, number) => {
      shown.pane.values = { of: all[number], most };
      shown.pane.due();
    });
    this.showScale(most);
    const frames = this.shown[0]?.frames;
    const now = this.interval;
    this.clock.textContent =
      now === null || !frames
        ? frames
          ? `of ${time(frames.count * frames.interval_ps)}`
          : "no telemetry"
        : `${time(now * frames.interval_ps)} – ${time((now + 1) * frames.interval_ps)}`;
    this.whole.classList.toggle("on", now === null);
    this.slider.value = String(now ?? 0);
    this.mark();
    this.keepPlace();
    document.documentElement.dataset.interval = now === null ? "whole" : String(now);
  }

  /** Marks the warm-up and planned outages along the slider. */
  private mark(): void {
    const [first] = this.shown;
    const frames = first?.frames;
    const all = frames ? frames.count * frames.interval_ps : 0;
    if (!first || all <= 0) {
      this.marks.replaceChildren();
      return;
    }
    const run = this.state.results[first.result].runs.find(
      (one) => one.run === this.state.runOf(first.result),
    );
    const span = (kind: string, from: number, until: number, title: string) => {
      const mark = h("span", { class: kind, title });
      mark.style.left = `${(100 * from) / all}%`;
      mark.style.width = `max(3px, ${(100 * Math.max(Math.min(until, all) - from, 0)) / all}%)`;
      return mark;
    };
    const warmUp = (run?.warm_up_us ?? 0) * 1e6;
    const outages = first.pane.map.drawing.outages.filter((one) => one.from_ps < all);
    this.marks.replaceChildren(
      ...(warmUp > 0 ? [span("warm-up", 0, warmUp, `warm-up, not measured: until ${time(warmUp)}`)] : []),
      ...outages.map(({ of, from_ps, until_ps }) => {
        const until = until_ps === null ? "for good" : `until ${time(until_ps)}`;
        return span("outage", from_ps, until_ps ?? all, `${of}: off from ${time(from_ps)} on, ${until}`);
      }),
    );
  }

  private showScale(most: number): void {
    const ramp = new Ramp(isDark());
    const bar = h("span", { class: "ramp" });
    const stops = [0, 0.25, 0.5, 0.75, 1].map((at) => ramp.css(at));
    bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
    this.legend.replaceChildren("0 ", bar, ` ${valueText(most, this.quantity.unit)}`);
  }

  /** Shows an interval of telemetry; null: the whole run. */
  goTo(interval: number | null): void {
    if (interval !== null && !this.shown[0]?.frames) return;
    const last = Number(this.slider.max);
    this.interval = interval === null ? null : Math.min(Math.max(interval, 0), last);
    void this.draw();
    this.details.at(this.interval);
  }

  step(by: number): void {
    this.goTo(this.interval === null ? (by > 0 ? 0 : Number(this.slider.max)) : this.interval + by);
  }

  toggle(): void {
    if (this.playing) {
      this.stop();
      return;
    }
    if (!this.shown[0]?.frames) return;
    this.playing = true;
    this.play.textContent = "⏸";
    if (this.interval === null || this.interval >= Number(this.slider.max)) this.interval = -1;
    const next = async () => {
      if (!this.playing) return;
      const begin = performance.now();
      this.interval = (this.interval ?? -1) + 1;
      await this.draw();
      if (this.interval >= Number(this.slider.max)) {
        this.stop();
        this.details.at(this.interval);
        return;
      }
      setTimeout(next, Math.max(1000 / PLAYED_PER_SECOND - (performance.now() - begin), 0));
    };
    void next();
  }

  private stop(): void {
    this.playing = false;
    this.play.textContent = "▶";
  }

  /** Tells what the pointer is on. */
  private tell(shown: Shown, thing: Thing | null): void {
    const { pane } = shown;
    if (!thing) {
      const left =
        pane.leftOut > 0 ? `; ${count(Math.round(pane.leftOut))} links are not drawn: zoom in` : "";
      const what = { parts: "by parts: zoom in for switches", switches: "by switches", endpoints: "" }[
        pane.mode
      ];
      const counts = `${count(pane.map.endpoints)} endpoints, ${count(pane.map.switches)} switches`;
      this.status.textContent =
        [`${pane.map.drawing.name}: ${counts}`, what].filter(Boolean).join(", ") + left;
      return;
    }
    const value = valueText(pane.valueOf(thing), this.quantity.unit);
    const several =
      thing.kind === "link"
        ? ""
        : ` (${pane.gathering === "most" ? "highest of its links" : "mean of its links"})`;
    this.status.textContent = `${nameOf(pane.map, thing)}: ${this.quantity.name} ${value}${several}`;
  }

  /** Chooses a thing, or with `isSecond` the other end of a path. */
  choose(thing: Thing | null, isSecond: boolean, moves = false): void {
    const map = this.shown[0]?.pane.map;
    if (thing?.kind === "part") {
      for (const { pane } of this.shown) pane.zoom(1);
    }
    const isPair = isSecond && this.chosen?.kind === "endpoint" && thing?.kind === "endpoint";
    if (isPair) this.second = thing;
    else [this.chosen, this.second] = [thing, null];
    const chosen = [this.chosen, this.second].filter((one): one is Thing => one !== null);
    for (const { pane } of this.shown) {
      pane.chosen = chosen.filter((one) => isIn(pane.map, one));
      pane.path = [];
      if (moves && thing && isIn(pane.map, thing)) pane.goTo(thing);
      pane.due();
    }
    if (map) void this.tellChosen();
    this.keepPlace();
  }

  /** Figures of what is chosen, beside the machine. */
  private async tellChosen(): Promise<void> {
    const maps = this.shown.map((shown) => ({ result: shown.result, map: shown.pane.map }));
    if (this.second && this.chosen) {
      const paths = await this.details.showPath(maps, this.chosen.number, this.second.number);
      paths.forEach((path: MachinePath | null, number) => {
        this.shown[number].pane.path = path?.links ?? [];
        this.shown[number].pane.due();
      });
      return;
    }
    await this.details.show(maps, this.chosen, this.quantity, this.interval);
  }

  /** Chooses what a text names: `e 12`, `s 3`, `s 3 p 2`, or the name of an endpoint or switch. */
  look(text: string): void {
    const map = this.shown[0]?.pane.map;
    if (!map || !text.trim()) return;
    const thing = named(map, text.trim());
    if (!thing || !isIn(map, thing)) {
      this.status.textContent = `Nothing is called ${text}: write e 12, s 3, s 3 p 2, or a name`;
      return;
    }
    this.choose(thing, false, true);
    this.shown[0].pane.element.querySelector<HTMLElement>("canvas[tabindex]")?.focus();
  }

  /** A key of the tab; whether it meant something. */
  key(event: KeyboardEvent): boolean {
    const panes = this.panesShown;
    const first = panes[0];
    const step = event.ctrlKey ? 10 : 1;
    const actions: Record<string, () => void> = {
      " ": () => this.toggle(),
      ArrowRight: () => (event.shiftKey ? first?.pan(-60, 0) : this.step(step)),
      ArrowLeft: () => (event.shiftKey ? first?.pan(60, 0) : this.step(-step)),
      ArrowUp: () => first?.pan(0, 60),
      ArrowDown: () => first?.pan(0, -60),
      Home: () => this.goTo(0),
      End: () => this.goTo(Number(this.slider.max)),
      w: () => this.goTo(null),
      "+": () => first?.zoom(1.4),
      "=": () => first?.zoom(1.4),
      "-": () => first?.zoom(1 / 1.4),
      "0": () => {
        for (const pane of panes) pane.fit();
      },
      q: () => {
        const known = this.known();
        const at = known.findIndex((one) => one.name === this.quantity.name);
        this.pick(known[(at + 1) % known.length].name);
      },
      m: () => {
        this.range.value = this.range.value === "whole" ? "own" : "whole";
        void this.draw();
      },
      a: () => this.gather(this.gathering.value === "most" ? "mean" : "most"),
      Escape: () => this.choose(null, false),
      "/": () => this.find.focus(),
    };
    const action = actions[event.key];
    if (!action) return false;
    action();
    return true;
  }
}

function highest(values: Float32Array): number {
  let most = 0;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/** Whether a machine has a thing. */
function isIn(map: MachineMap, { kind, number }: Thing): boolean {
  if (kind === "endpoint") return number < map.endpoints;
  if (kind === "switch") return number < map.switches;
  if (kind === "part") return number < map.boxes.length;
  return number < map.linkCount && map.reverse[number] >= 0;
}

export function nameOf(map: MachineMap, thing: Thing): string {
  if (thing.kind === "endpoint") return map.endpointName(thing.number);
  if (thing.kind === "switch") return map.switchName(thing.number);
  if (thing.kind === "part") return map.partName(thing.number);
  return map.linkName(thing.number);
}

/** The name by which a thing is found: `e 12`, `s 3`, `s 3 p 2`; of a part none. */
function shortName(map: MachineMap, { kind, number }: Thing): string {
  if (kind === "endpoint") return `e ${number}`;
  if (kind === "switch") return `s ${number}`;
  if (kind === "part") return "";
  if (number < map.endpoints) return `e ${number}`;
  const { first } = map.drawing.links;
  const at = first.findLastIndex((begin) => begin <= number);
  return `s ${at} p ${number - first[at]}`;
}

function named(map: MachineMap, text: string): Thing | null {
  const endpoint = text.match(/^e(?:ndpoint)?\s*(\d+)$/i);
  if (endpoint) return { kind: "endpoint", number: Number(endpoint[1]) };
  const port = text.match(/^s(?:w|witch)?\s*(\d+)\s*(?:p|port)\s*(\d+)$/i);
  if (port) {
    const { first } = map.drawing.links;
    const [at, number] = [Number(port[1]), Number(port[2])];
    if (at >= map.switches || first[at] + number >= first[at + 1]) return null;
    return { kind: "link", number: first[at] + number };
  }
  const one = text.match(/^s(?:w|witch)?\s*(\d+)$/i);
  if (one) return { kind: "switch", number: Number(one[1]) };
  const number = map.drawing.endpoint_names.indexOf(text);
  if (number >= 0) return { kind: "endpoint", number };
  const at = map.drawing.switch_names.indexOf(text);
  return at >= 0 ? { kind: "switch", number: at } : null;
}
