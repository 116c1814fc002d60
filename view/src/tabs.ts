/** The tabs beside the machine: plots, ranks, messages, the overview. */

import {
  get,
  type MessageList,
  type MessageRow,
  type Picture,
  type PieceRow,
  type RankRow,
  type Report,
  type ResultInfo,
  type Trace,
} from "./api";
import { seriesColour } from "./colours";
import { h, row, sortable } from "./dom";
import { apart, bytes, columnName, count, measured, percent, short, time } from "./format";
import { share } from "./pieces";
import { pictureOf } from "./plot";
import type { State } from "./state";
import { Timeline } from "./timeline";

/** A tab. It is filled when it is first looked at, and again when the run or the theme has changed. */
export abstract class Tab {
  readonly element: HTMLElement;
  /** Whether it is filled again each time that a run has written more. */
  protected readonly follows: boolean = true;
  /** Whether a run that goes on has nothing for it yet: then it is looked at again. */
  protected lacks = false;
  private isFresh = false;

  constructor(
    protected readonly state: State,
    readonly name: string,
  ) {
    this.element = h("section", { class: name, id: `tab-${name}` });
    state.onChange(() => {
      this.isFresh = false;
      if (!this.element.hidden && (this.follows || this.lacks || !state.isLive)) void this.show();
    });
  }

  async show(): Promise<void> {
    if (this.isFresh) return;
    this.isFresh = true;
    this.lacks = false;
    // What takes long leaves no empty page.
    if (!this.element.hasChildNodes()) this.element.append(h("p", { class: "empty" }, "reading …"));
    try {
      await this.fill();
    } catch (error) {
      this.lacks = true;
      this.element.replaceChildren(h("p", { class: "empty" }, (error as Error).message));
    }
    document.documentElement.dataset.ready = this.name;
  }

  key(_event: KeyboardEvent): boolean {
    return false;
  }

  protected abstract fill(): Promise<void>;
}

/** The pictures of `weft plot`. */
export class PlotsTab extends Tab {
  private kind: string | null = null;

  protected async fill(): Promise<void> {
    const { kinds } = this.state.results[0];
    const place = h("div", { class: "place" });
    const list = h("nav", { class: "kinds", "aria-label": "Pictures" });
    const results = this.state.results.map((_result, number) => number).join(",");
    const before = this.kind;
    const old = this.element.querySelector(".place > *");
    const show = async (kind: string) => {
      this.kind = kind;
      for (const button of list.children)
        button.classList.toggle("on", (button as HTMLElement).dataset.kind === kind);
      // The picture stays until the next one is there, where it is the same of a run that goes on.
      place.replaceChildren(kind === before && old ? old : h("p", { class: "empty" }, "…"));
      try {
        const run = this.state.runOf(0);
        const picture = await get<Picture>("picture", { kind, results, ...(isOfRuns(kind) ? {} : { run }) });
        if (this.kind === kind) place.replaceChildren(pictureOf(picture));
      } catch (error) {
        if (this.kind === kind) place.replaceChildren(h("p", { class: "empty" }, (error as Error).message));
      }
    };
    for (const kind of kinds) {
      list.append(h("button", { "data-kind": kind.name, onclick: () => void show(kind.name) }, kind.title));
    }
    this.element.replaceChildren(list, place);
    await show(this.kind ?? usual(this.state));
  }
}

/** Whether a picture is of all runs of a result together. */
function isOfRuns(kind: string): boolean {
  return ["load-curve", "fct-cdf", "slow-down", "throughput"].includes(kind);
}

/** The picture of a result that nobody has asked a certain one of, as `weft plot` chooses. */
function usual(state: State): string {
  const [first] = state.results;
  if (first.command === "traffic" && first.runs.length > 1) return "load-curve";
  if (first.tables.includes("queues")) return "queue-heat-map";
  return state.isLive ? "rates" : "link-utilization";
}

/** What ranks do. */
export class RanksTab extends Tab {
  protected override readonly follows = false;
  private timelines: Timeline[] = [];

  protected async fill(): Promise<void> {
    this.timelines = [];
    const parts = await Promise.all(
      this.state.results.slice(0, 2).map(async (info, result) => {
        const of = { result, run: this.state.runOf(result) };
        const part = h("div", { class: "ranks-of" });
        if (this.state.results.length > 1) part.append(h("h2", {}, info.name));
        await this.timeline(part, of, info.has_timeline);
        const ranks = info.tables.includes("ranks") ? await get<RankRow[]>("ranks", of) : [];
        if (ranks.length > 0) part.append(rankBars(ranks));
        return part;
      }),
    );
    this.element.replaceChildren(...parts);
  }

  private async timeline(
    part: HTMLElement,
    of: { result: number; run: number },
    isOfRanks: boolean,
  ): Promise<void> {
    try {
      const trace = await get<Trace>("timeline", of);
      const timeline = new Timeline(trace);
      this.timelines.push(timeline);
      const left = trace.messages_left_out
        ? `; ${count(trace.messages_left_out)} more messages are left out`
        : "";
      const told = isOfRanks
        ? `What each rank does: ${count(timeline.count)} stretches of time`
        : `Messages by sender, from post to delivery${left}. With weft view DIR --timeline FILE: what each rank does`;
      part.append(
        h(
          "p",
          { class: "bar" },
          told,
          h("button", { onclick: () => save(trace, of.run) }, "export for Perfetto"),
        ),
        timeline.element,
      );
    } catch (error) {
      this.lacks = true;
      part.append(h("p", { class: "empty" }, (error as Error).message));
    }
  }

  override key(event: KeyboardEvent): boolean {
    return this.timelines.map((timeline) => timeline.key(event)).some(Boolean);
  }
}

/** Saves a timeline as a file that ui.perfetto.dev opens. */
function save(trace: Trace, run: number): void {
  const address = URL.createObjectURL(new Blob([JSON.stringify(trace)], { type: "application/json" }));
  const link = h("a", { href: address, download: `timeline-run-${run}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The shares of the time of every rank. */
function rankBars(ranks: RankRow[]): HTMLElement {
  const kinds = [
    ["computation_ps", "computes", 0],
    ["wait_ps", "waits", 1],
    ["communication_ps", "software of messages", 2],
  ] as const;
  const longest = ranks.reduce((so, rank) => Math.max(so, rank.end_ps), 1);
  const legend = h("p", { class: "legend" });
  for (const [, label, colour] of kinds) {
    const key = h("span", { class: "key" });
    key.style.background = seriesColour(colour);
    legend.append(key, `${label}  `);
  }
  const line = (rank: RankRow) => {
    const bar = h("div", { class: "share" });
    for (const [name, label, colour] of kinds) {
      const part = h("span", { title: `${label}: ${time(rank[name])}` });
      part.style.width = `${(100 * rank[name]) / longest}%`;
      part.style.background = seriesColour(colour);
      bar.append(part);
    }
    return row([
      `rank ${rank.rank}`,
      bar,
      time(rank.end_ps),
      count(rank.messages_sent),
      bytes(rank.sent_bytes),
    ]);
  };
  return h(
    "div",
    {},
    h("h3", {}, "Time of every rank"),
    legend,
    h(
      "table",
      { class: "figures rank-bars" },
      row(["rank", "time", "ends", "messages", "sent"], "th"),
      ...ranks.slice(0, 512).map(line),
    ),
  );
}

/** Messages and where their time goes. */
export class MessagesTab extends Tab {
  protected override readonly follows = false;
  private from = "";
  private to = "";

  protected async fill(): Promise<void> {
    const from = h("input", {
      type: "number",
      min: "0",
      value: this.from,
      id: "from",
      "aria-label": "source endpoint",
      placeholder: "any",
    });
    const to = h("input", {
      type: "number",
      min: "0",
      value: this.to,
      id: "to",
      "aria-label": "destination endpoint",
      placeholder: "any",
    });
    const lists = h("div", { class: "lists" });
    const load = async () => {
      [this.from, this.to] = [from.value, to.value];
      lists.replaceChildren(
        ...(await Promise.all(this.state.results.slice(0, 2).map((_info, result) => this.list(result)))),
      );
    };
    from.addEventListener("change", () => void load());
    to.addEventListener("change", () => void load());
    this.element.replaceChildren(
      h("p", { class: "bar" }, "The slowest messages from endpoint ", from, " to endpoint ", to),
      lists,
    );
    await load();
  }

  private async list(result: number): Promise<HTMLElement> {
    const info = this.state.results[result];
    const heading = this.state.results.length > 1 ? h("h2", {}, info.name) : null;
    const run = this.state.runOf(result);
    try {
      const ends = { ...(this.from ? { from: this.from } : {}), ...(this.to ? { to: this.to } : {}) };
      const list = await get<MessageList>("messages", { result, run, limit: 200, ...ends });
      const pieces = h("div", { class: "pieces-of" });
      const told = `${count(list.count)} messages, ${bytes(list.payload_bytes)}, mean time ${time(list.mean_ps)}; the slowest ${list.slowest.length}:`;
      const line = (message: MessageRow) => {
        const taken = message.delivered_ps - message.posted_ps;
        const end = (rank: number | null, endpoint: number) =>
          rank === null ? `endpoint ${endpoint}` : `rank ${rank} (endpoint ${endpoint})`;
        const cells = [
          end(message.source_rank, message.source_endpoint),
          end(message.destination_rank, message.destination_endpoint),
          bytes(message.payload_bytes),
          message.class,
          String(message.hops),
          time(message.posted_ps),
          time(taken),
        ];
        const choose = () => {
          for (const other of table.rows) other.classList.remove("on");
          told_.classList.add("on");
          void this.pieces(pieces, result, run, message);
        };
        const sorts = [
          message.source_endpoint,
          message.destination_endpoint,
          message.payload_bytes,
          message.class,
          message.hops,
          message.posted_ps,
          taken,
        ];
        const told_ = h(
          "tr",
          {
            tabindex: 0,
            "data-time": taken,
            onclick: choose,
            onkeydown: (event) => {
              if ((event as KeyboardEvent).key === "Enter") choose();
            },
          },
          ...cells.map((cell, column) => h("td", { "data-sort": sorts[column] }, cell)),
        );
        return told_;
      };
      const table = h("table", { class: "figures choosable" });
      table.append(
        row(["from", "to", "bytes", "class", "links", "posted at", "time"], "th"),
        ...list.slowest.map(line),
      );
      sortable(table);
      return h(
        "div",
        {},
        heading,
        histogram(list),
        h("p", { class: "subtitle" }, told),
        h("div", { class: "side" }, h("div", { class: "scroll" }, table), pieces),
      );
    } catch (error) {
      this.lacks = true;
      return h("div", {}, heading, h("p", { class: "empty" }, (error as Error).message));
    }
  }

  private async pieces(place: HTMLElement, result: number, run: number, message: MessageRow): Promise<void> {
    const { source_endpoint: source, sequence } = message;
    try {
      const pieces = await get<PieceRow[]>("pieces", { result, run, source, sequence });
      place.replaceChildren(h("h3", {}, "Where its time goes"), share(pieces));
    } catch (error) {
      place.replaceChildren(h("p", { class: "empty" }, (error as Error).message));
    }
  }
}

/** How many messages took how long: a bar for each stretch of time, longer ones longer. */
function histogram({ histogram: bars }: MessageList): HTMLElement | null {
  if (bars.length < 2) return null;
  const most = bars.reduce((so, bar) => Math.max(so, bar.count), 1);
  const bar = ({ from_ps, to_ps, count: messages }: MessageList["histogram"][number]) => {
    const title = `${count(messages)} messages took ${time(from_ps)} to ${time(to_ps)}`;
    const place = h("span", { title, "data-count": messages }, h("i", {}));
    const [filled] = place.children as unknown as [HTMLElement];
    // The few are seen beside the many.
    filled.style.height = messages > 0 ? `max(2px, ${(100 * messages) / most}%)` : "0";
    return place;
  };
  const [first, last] = [bars[0].from_ps, bars[bars.length - 1].to_ps];
  return h(
    "figure",
    { class: "histogram" },
    h("figcaption", {}, `Messages by time from post to delivery; the highest bar has ${count(most)}`),
    h("div", { class: "bars" }, ...bars.map(bar)),
    h("p", { class: "ends" }, h("span", {}, time(first)), h("span", {}, time(last))),
  );
}

/** What ran, and what came of it. */
export class OverviewTab extends Tab {
  protected async fill(): Promise<void> {
    const reports = await Promise.all(
      this.state.results.map((_info, result) => get<Report>("report", { result })),
    );
    this.element.replaceChildren(
      ...reports.map((report, result) => this.part(report, this.state.results[result])),
    );
  }

  private part(report: Report, { name, runs }: ResultInfo): HTMLElement {
    const pairs = (list: [string, string][]) =>
      h(
        "table",
        { class: "figures" },
        ...list.map(([key, value]) => h("tr", {}, h("th", {}, key), h("td", {}, value))),
      );
    const [names, rows] = report.rows;
    const hot = (report.hot_links ?? []).map((link) =>
      row([
        runs.find((one) => one.run === link.run)?.label || `run ${link.run}`,
        link.link,
        link.class,
        percent(link.utilization),
        short(link.stall_us),
        short(link.paused_us),
        count(link.lost),
      ]),
    );
    return h(
      "article",
      {},
      h("h2", {}, name),
      ...report.warnings.map((warning) => h("p", { class: "warning" }, warning)),
      h(
        "div",
        { class: "columns" },
        h("div", {}, h("h3", {}, "What ran"), pairs(report.facts)),
        h(
          "div",
          {},
          h("h3", {}, this.state.isLive ? "So far" : "Totals"),
          pairs(report.totals.map(([key, value]) => [key, apart(value)])),
        ),
      ),
      rows.length > 0 ? h("h3", {}, "Measured") : null,
      h(
        "div",
        { class: "scroll", ...(rows.length > 0 ? {} : { hidden: true }) },
        h(
          "table",
          { class: "figures" },
          row(names.map(columnName), "th"),
          ...rows.map((cells) => row(cells.map((cell, at) => measured(names[at], cell)))),
        ),
      ),
      hot.length > 0 ? h("h3", {}, "Busiest links") : null,
      hot.length > 0
        ? sortable(
            h(
              "table",
              { class: "figures", id: "hot-links" },
              row(["run", "link", "class", "utilization", "stall (µs)", "paused (µs)", "lost"], "th"),
              ...hot,
            ),
          )
        : null,
      report.assumed.length > 0 ? h("h3", {}, "Assumed constants") : null,
      report.assumed.length > 0
        ? h(
            "table",
            { class: "figures" },
            row(["key", "value", "why"], "th"),
            ...report.assumed.map((one) => row([one.key, one.value, one.source])),
          )
        : null,
    );
  }
}
