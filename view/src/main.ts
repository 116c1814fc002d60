/** The page of weft view. */

import "./style.css";
import { get, type Live, type ResultInfo } from "./api";
import { isDark } from "./colours";
import { h, row } from "./dom";
import { MachineTab } from "./machine";
import type { Thing } from "./map";
import { keep, place } from "./place";
import { State } from "./state";
import { MessagesTab, OverviewTab, PlotsTab, RanksTab, type Tab } from "./tabs";

const KEYS: [string, string][] = [
  ["1 … 5", "machine, plots, ranks, messages, overview"],
  ["t", "dark or light"],
  ["[ ]", "the run before, the next run"],
  ["?", "these keys"],
  ["/", "find an endpoint, a switch, a link"],
  ["click, shift-click", "choose; the other end of a path"],
  ["Escape", "choose nothing"],
  ["q", "the next quantity"],
  ["a", "of several links: the highest value, or the mean"],
  ["m", "colours of shares: 0 to 100 %, or up to the run's own maximum"],
  ["space", "play telemetry"],
  ["← →, with Ctrl ten", "the interval before, the next; on ranks: move"],
  ["Home, End", "the first interval, the last"],
  ["w", "the whole run"],
  ["+ − 0", "zoom; all of it"],
  ["shift ← →, ↑ ↓", "move"],
];

/** Milliseconds between two looks at whether a run has written more. */
const LOOK = 1_000;

declare global {
  interface Window {
    /** For tests: where a thing is drawn, and what it shows. */
    weftView: {
      at: (thing: Thing, pane?: number) => { x: number; y: number };
      go: (thing: Thing) => void;
      mode: (pane?: number) => string;
      value: (thing: Thing, pane?: number) => number;
      zoom: (factor: number) => void;
      pan: (x: number, y: number) => void;
      fit: () => void;
    };
  }
}

class Page {
  private readonly state: State;
  private readonly machine: MachineTab;
  private readonly tabs: Tab[];
  private readonly buttons: HTMLButtonElement[] = [];
  private readonly runs = h("select", { id: "run", "aria-label": "Run", title: "Run ( [ ] )" });
  private readonly help: HTMLDialogElement;
  private shown = 0;
  private readonly heading = h("span", { class: "result" });

  constructor(results: ResultInfo[], isLive: boolean) {
    this.state = new State(results);
    this.state.isLive = isLive;
    this.machine = new MachineTab(this.state);
    this.tabs = [
      new PlotsTab(this.state, "plots"),
      new RanksTab(this.state, "ranks"),
      new MessagesTab(this.state, "messages"),
      new OverviewTab(this.state, "overview"),
    ];
    this.help = h(
      "dialog",
      { id: "help" },
      h("h2", {}, "Keys"),
      h("table", { class: "keys" }, ...KEYS.map(([key, what]) => row([h("kbd", {}, key), what]))),
      h("form", { method: "dialog" }, h("button", {}, "close")),
    );
    this.help.querySelector("form")?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.help.close();
    });
  }

  async open(): Promise<void> {
    const { results } = this.state;
    document.title = `${results.map((result) => result.name).join(", ")} – weft`;
    const names = ["machine", ...this.tabs.map((tab) => tab.name)];
    names.forEach((name, number) => {
      this.buttons.push(
        h(
          "button",
          { role: "tab", id: `show-${name}`, onclick: () => this.show(number) },
          `${number + 1} ${name}`,
        ),
      );
    });
    this.fillRuns();
    const theme = h("button", { id: "theme", title: "Dark or light (t)", onclick: () => this.turn() }, "◐");
    const help = h("button", { title: "Keys (?)", onclick: () => this.help.showModal() }, "?");
    this.tellResults();
    document.body.append(
      h(
        "header",
        {},
        h("strong", {}, "weft"),
        this.heading,
        this.runs,
        h("nav", { role: "tablist" }, ...this.buttons),
        theme,
        help,
      ),
      h("main", {}, this.machine.element, ...this.tabs.map((tab) => tab.element)),
      this.help,
    );
    const { tab, theme: kept } = place();
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
    this.show(Math.max(names.indexOf(tab ?? ""), 0));
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.state.changed());
    const panes = () => this.machine.panesShown;
    window.weftView = {
      at: (thing, pane = 0) => panes()[pane].at(thing),
      go: (thing) =>
        panes().forEach((pane) => {
          pane.goTo(thing);
        }),
      mode: (pane = 0) => panes()[pane].mode,
      value: (thing, pane = 0) => panes()[pane].valueOf(thing),
      zoom: (factor) => panes()[0].zoom(factor),
      pan: (x, y) => panes()[0].pan(x, y),
      fit: () =>
        panes().forEach((pane) => {
          pane.fit();
        }),
    };
    await this.machine.open();
  }

  /** Names the results, and how they ended. */
  private tellResults(): void {
    const told = this.state.results
      .map((result) => {
        const changes = result.changes.length > 0 ? ` with ${result.changes.join(", ")}` : "";
        return `${result.name}: weft ${result.command} on ${result.machine}${changes}, ${result.ended}`;
      })
      .join("   ·   ");
    this.heading.textContent = told;
    this.heading.title = told;
  }

  /** The run has written more, or has ended. */
  update(results: ResultInfo[], isLive: boolean): void {
    this.state.results = results;
    this.state.isLive = isLive;
    this.tellResults();
    this.listRuns();
    this.state.changed();
  }

  private listRuns(): void {
    const { runs } = this.state.results[0];
    const options = runs.map((run) => h("option", { value: run.run }, run.label || `run ${run.run}`));
    this.runs.replaceChildren(...options);
    this.runs.hidden = runs.length < 2;
    this.runs.value = String(this.state.runOf(0));
  }

  private fillRuns(): void {
    const { run } = place();
    const { runs } = this.state.results[0];
    this.state.run = runs.find((one) => String(one.run) === run)?.run ?? runs[0]?.run ?? 0;
    this.listRuns();
    this.runs.addEventListener("change", () => {
      this.state.run = Number(this.runs.value);
      keep({ run: this.runs.value });
      this.state.changed();
    });
  }

  /** Shows a tab by its number. */
  private show(number: number): void {
    this.shown = number;
    keep({ tab: number > 0 ? this.tabs[number - 1].name : "" });
    delete document.documentElement.dataset.ready;
    this.machine.element.hidden = number !== 0;
    this.tabs.forEach((tab, place) => {
      tab.element.hidden = place + 1 !== number;
    });
    this.buttons.forEach((button, place) => {
      button.setAttribute("aria-selected", String(place === number));
    });
    if (number > 0) void this.tabs[number - 1].show().then(() => this.told(number));
  }

  private told(number: number): void {
    document.documentElement.dataset.ready = this.tabs[number - 1].name;
  }

  private turn(): void {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    keep({ theme: document.documentElement.dataset.theme });
    this.state.changed();
  }

  private changeRun(by: number): void {
    const { options } = this.runs;
    const next = this.runs.selectedIndex + by;
    if (next < 0 || next >= options.length) return;
    this.runs.selectedIndex = next;
    this.runs.dispatchEvent(new Event("change"));
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.altKey || event.metaKey || (event.ctrlKey && !event.key.startsWith("Arrow"))) return;
    if (event.key === "Escape" && target instanceof HTMLInputElement) target.blur();
    const isText = target instanceof HTMLInputElement && target.type !== "range";
    if (isText || target instanceof HTMLSelectElement || this.help.open) return;
    // A button takes the space bar itself.
    if (target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter")) return;
    const actions: Record<string, () => void> = {
      t: () => this.turn(),
      "?": () => this.help.showModal(),
      "[": () => this.changeRun(-1),
      "]": () => this.changeRun(1),
    };
    for (let number = 0; number <= this.tabs.length; number += 1) {
      actions[String(number + 1)] = () => this.show(number);
    }
    const action: (() => void) | undefined = actions[event.key];
    action?.();
    const isTaken =
      action !== undefined ||
      (this.shown === 0 ? this.machine.key(event) : this.tabs[this.shown - 1].key(event));
    if (isTaken) event.preventDefault();
  }
}

const later = () => new Promise((after) => setTimeout(after, LOOK));

/** Waits until a run has begun to write. */
async function begun(): Promise<Live> {
  const waits = h("p", { class: "empty" }, "weft view: the run has not begun");
  for (;;) {
    const live = await get<Live>("live");
    if (live.begun) {
      waits.remove();
      return live;
    }
    document.body.append(waits);
    await later();
  }
}

/** Shows more of a run as it goes, until it has ended. */
async function follow(page: Page, from: Live): Promise<void> {
  let last = from;
  while (last.live) {
    await later();
    const now = await get<Live>("live");
    if (now.generation !== last.generation || now.live !== last.live) {
      page.update(await get<ResultInfo[]>("results"), now.live);
    }
    last = now;
  }
}

async function begin(): Promise<void> {
  try {
    const live = await begun();
    const page = new Page(await get<ResultInfo[]>("results"), live.live);
    await page.open();
    await follow(page, live);
  } catch (error) {
    document.body.append(h("p", { class: "empty" }, `weft view: ${(error as Error).message}`));
  }
}

void begin();
