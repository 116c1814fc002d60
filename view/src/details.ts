/** Figures and history of what is chosen on the machine. */

import {
  type EndpointDetails,
  get,
  type History,
  type LinkRow,
  type MachinePath,
  type MessageList,
  type PairPieces,
  type Quantity,
} from "./api";
import { h, row } from "./dom";
import { bytes, column, columnName, count, percent, time } from "./format";
import type { MachineMap, Thing } from "./map";
import { share } from "./pieces";
import { history } from "./plot";
import type { State } from "./state";

interface ResultMap {
  result: number;
  map: MachineMap;
}

/** Columns of a link that are always shown; others only where they are not 0. */
const ALWAYS = ["utilization", "packets", "packet_bytes", "busy_ps", "rate_bits_per_second"];
const NEVER = [
  "run",
  "class",
  "from_endpoint",
  "from_switch",
  "from_port",
  "to_endpoint",
  "to_switch",
  "to_port",
];

export class Details {
  readonly element = h("aside", { class: "details", id: "details", "aria-live": "polite" });
  private asked = 0;
  private redraw: (() => void) | null = null;
  private interval: number | null = null;

  constructor(
    private readonly state: State,
    private readonly choose: (thing: Thing) => void,
  ) {}

  /** Another interval is shown. */
  at(interval: number | null): void {
    this.interval = interval;
    this.redraw?.();
  }

  private hint(): void {
    const keys = [
      ["click", "figures and history of a link, switch or endpoint"],
      ["shift-click", "a second endpoint: the path, and where the time goes"],
      ["wheel, + − 0", "zoom; the whole machine"],
      ["drag, shift-arrows", "move"],
      ["space, ← →", "play telemetry; step"],
      ["q, a, w", "quantity; highest or mean; whole run"],
      ["/", "find by name or number"],
      ["1 … 5, t, ?", "tabs, theme, all keys"],
    ];
    this.element.replaceChildren(
      h("h2", {}, "Nothing chosen"),
      h("table", { class: "keys" }, ...keys.map(([key, what]) => row([h("kbd", {}, key), what]))),
    );
  }

  /** Shows a thing of every result that has it. */
  async show(
    maps: ResultMap[],
    thing: Thing | null,
    quantity: Quantity,
    interval: number | null,
  ): Promise<void> {
    this.asked += 1;
    const asked = this.asked;
    this.redraw = null;
    this.interval = interval;
    if (!thing || maps.length === 0) {
      this.hint();
      return;
    }
    const parts = await Promise.all(
      maps.map(async ({ result, map }) => {
        const heading = maps.length > 1 ? [h("h3", {}, this.state.results[result].name)] : [];
        try {
          return [...heading, ...(await this.figures(result, map, thing))];
        } catch (error) {
          return [...heading, h("p", { class: "empty" }, (error as Error).message)];
        }
      }),
    );
    if (asked !== this.asked) return;
    const plots = h("div", { class: "histories" });
    this.element.replaceChildren(h("h2", {}, headingOf(maps[0].map, thing)), plots, ...parts.flat());
    this.element.dataset.thing = `${thing.kind} ${thing.number}`;
    if (quantity.over_time) await this.histories(plots, maps, thing, quantity, asked);
  }

  private async figures(result: number, map: MachineMap, thing: Thing): Promise<HTMLElement[]> {
    const of = { result, run: this.state.runOf(result) };
    if (thing.kind === "part") return [partFigures(map, thing.number)];
    if (thing.kind === "link") {
      const numbers = [thing.number, map.reverse[thing.number]];
      const rows = await Promise.all(
        numbers.map((number) => get<{ row: LinkRow | null }>("link", { ...of, number })),
      );
      return [
        this.linkTable(
          map,
          numbers,
          rows.map((answer) => answer.row),
        ),
      ];
    }
    if (thing.kind === "switch") return this.switchFigures(of, map, thing.number);
    return this.endpointFigures(of, map, thing.number);
  }

  private linkTable(map: MachineMap, numbers: number[], rows: (LinkRow | null)[]): HTMLElement {
    const names = Object.keys(rows[0] ?? rows[1] ?? {}).filter(
      (name) => !NEVER.includes(name) && (ALWAYS.includes(name) || rows.some((one) => one?.[name])),
    );
    const cell = (one: LinkRow | null, name: string, side: number) =>
      h(
        "td",
        { "data-column": name, "data-side": side, "data-value": one ? String(one[name]) : "" },
        one ? column(name, one[name]) : "–",
      );
    const directions = numbers.map((number) => this.link(map.linkName(number), { kind: "link", number }));
    return h(
      "div",
      {},
      h("p", { class: "subtitle" }, `${map.className(numbers[0])} link; both directions`),
      h("ol", { class: "directions" }, ...directions.map((direction) => h("li", {}, direction))),
      h(
        "table",
        { class: "figures" },
        row(["", "1", "2"], "th"),
        ...names.map((name) =>
          h("tr", {}, h("th", {}, columnName(name)), ...rows.map((one, side) => cell(one, name, side))),
        ),
      ),
    );
  }

  private async switchFigures(
    of: { result: number; run: number },
    map: MachineMap,
    number: number,
  ): Promise<HTMLElement[]> {
    const { leaving, arriving } = await get<{ leaving: LinkRow[]; arriving: LinkRow[] }>("switch", {
      ...of,
      number,
    });
    const into = new Map(arriving.map((one) => [one.to_port, one]));
    const first = map.drawing.links.first[number];
    const rows = leaving.map((one) => {
      const port = Number(one.from_port);
      const other = into.get(one.from_port);
      return h(
        "tr",
        { "data-port": port },
        h("td", {}, this.link(`port ${port}`, { kind: "link", number: first + port })),
        h("td", {}, one.class),
        h("td", { "data-column": "utilization", "data-value": one.utilization }, percent(one.utilization)),
        h("td", {}, other ? percent(other.utilization) : "–"),
        h("td", {}, one.stall_ps ? time(Number(one.stall_ps)) : "0"),
      );
    });
    const sum = leaving.reduce((so, one) => so + Number(one.packet_bytes), 0);
    return [
      h(
        "p",
        { class: "subtitle" },
        `${leaving.length} links, ${bytes(sum)} forwarded; part ${map.partName(map.drawing.switch_part[number])}`,
      ),
      h("table", { class: "figures" }, row(["", "class", "out", "in", "stall"], "th"), ...rows),
    ];
  }

  private async endpointFigures(
    of: { result: number; run: number },
    map: MachineMap,
    number: number,
  ): Promise<HTMLElement[]> {
    const details = await get<EndpointDetails>("endpoint", { ...of, number });
    const at = map.drawing.endpoint_switch[number];
    const parts: HTMLElement[] = [
      h(
        "p",
        { class: "subtitle" },
        "endpoint ",
        String(number),
        " at ",
        this.link(map.switchName(at), { kind: "switch", number: at }),
      ),
    ];
    if (details.leaving || details.arriving) {
      parts.push(this.linkTable(map, [number, map.reverse[number]], [details.leaving, details.arriving]));
    }
    if (details.ranks.length > 0) {
      const names = ["rank", "computation_share", "communication_share", "wait_share"];
      parts.push(
        h("h3", {}, "Ranks"),
        h(
          "table",
          { class: "figures" },
          row(["rank", "computes", "software", "waits"], "th"),
          ...details.ranks.map((rank) => row(names.map((name) => column(name, rank[name])))),
        ),
      );
    }
    if (details.flows.length > 0) {
      const shown =
        details.flows.length < details.flow_count
          ? `, the largest ${details.flows.length} of ${details.flow_count}`
          : "";
      const flow = (one: Record<string, number | null>) => {
        const isOut = one.source_endpoint === number;
        const other = isOut ? one.destination_endpoint : one.source_endpoint;
        const name = other === null ? "many" : map.endpointName(other);
        return row([
          isOut ? "to" : "from",
          other === null ? name : this.link(name, { kind: "endpoint", number: other }),
          bytes(Number(one.payload_bytes)),
          time(Number(one.completion_mean_ps)),
          time(Number(one.completion_p99_ps)),
        ]);
      };
      parts.push(
        h("h3", {}, `Flows${shown}`),
        h(
          "table",
          { class: "figures" },
          row(["", "", "bytes", "mean", "99 %"], "th"),
          ...details.flows.map(flow),
        ),
      );
    }
    return parts;
  }

  /** A name that chooses what it names. */
  private link(name: string, thing: Thing): HTMLElement {
    return h("button", { class: "name", onclick: () => this.choose(thing) }, name);
  }

  private async histories(
    place: HTMLElement,
    maps: ResultMap[],
    thing: Thing,
    quantity: Quantity,
    asked: number,
  ): Promise<void> {
    const known: { name: string; answer: History; labels: string[] }[] = [];
    for (const { result, map } of maps) {
      const { links, labels } = linksOf(map, thing);
      if (links.length === 0) continue;
      try {
        const of = { result, run: this.state.runOf(result), quantity: quantity.name };
        const answer = await get<History>("history", { ...of, links: links.join(",") });
        known.push({ name: this.state.results[result].name, answer, labels });
      } catch (error) {
        place.append(h("p", { class: "empty" }, (error as Error).message));
      }
    }
    if (asked !== this.asked) return;
    const draw = () => {
      place.replaceChildren(
        ...known.map(({ name, answer, labels }) => {
          const isShare = quantity.unit === "";
          // Bytes where not even the fullest holds a KiB.
          const isKib =
            quantity.unit === "bytes" && answer.links.some((values) => Math.max(...values) >= 1024);
          const inBytes = isKib ? "KiB" : "B";
          const scale = isShare ? 100 : isKib ? 1 / 1024 : 1;
          const unit = isShare ? "%" : quantity.unit === "bytes" ? inBytes : quantity.unit;
          const scaled = answer.links.map((values) => values.map((value) => value * scale));
          const label = maps.length > 1 ? `${name}: ${quantity.name}` : quantity.name;
          return history(label, unit, seriesOf(scaled, labels), [answer.interval_ps, this.interval]);
        }),
      );
    };
    draw();
    this.redraw = draw;
  }

  /** Shows the way between two endpoints, and where the time of their messages goes. */
  async showPath(maps: ResultMap[], from: number, to: number): Promise<(MachinePath | null)[]> {
    this.asked += 1;
    const asked = this.asked;
    this.redraw = null;
    const answers = await Promise.all(
      maps.map(async ({ result, map }) => {
        const of = { result, run: this.state.runOf(result), from, to };
        const heading = maps.length > 1 ? [h("h3", {}, this.state.results[result].name)] : [];
        try {
          const path = await get<MachinePath>("path", of);
          return { path, parts: [...heading, this.pathTable(map, path), await pairOf(of)] };
        } catch (error) {
          return { path: null, parts: [...heading, h("p", { class: "empty" }, (error as Error).message)] };
        }
      }),
    );
    if (asked === this.asked) {
      const { map } = maps[0];
      this.element.replaceChildren(
        h("h2", {}, `${map.endpointName(from)} → ${map.endpointName(to)}`),
        ...answers.flatMap((answer) => answer.parts),
      );
      this.element.dataset.thing = `path ${from} ${to}`;
    }
    return answers.map((answer) => answer.path);
  }

  private pathTable(map: MachineMap, path: MachinePath): HTMLElement {
    const only = path.is_only
      ? "The routing always takes this way"
      : "One of the ways that the routing may take, on the idle machine";
    const kind = path.kind ? `; ${path.kind}` : "";
    return h(
      "div",
      {},
      h(
        "p",
        { class: "subtitle" },
        `${path.links.length} links, ${path.switches.length} switches${kind}. ${only}.`,
      ),
      h(
        "ol",
        { class: "way" },
        ...path.links.map((number, hop) =>
          h("li", {}, this.link(map.linkName(number), { kind: "link", number }), ` ${path.classes[hop]}`),
        ),
      ),
    );
  }
}

/** Messages between two endpoints, and the pieces of their time. */
async function pairOf(of: { result: number; run: number; from: number; to: number }): Promise<HTMLElement> {
  try {
    const list = await get<MessageList>("messages", { ...of, limit: 1 });
    if (list.count === 0) return h("p", { class: "empty" }, "No message went this way.");
    const told = `${count(list.count)} messages, ${bytes(list.payload_bytes)}, mean time ${time(list.mean_ps)}`;
    try {
      const pair = await get<PairPieces>("pair", of);
      const pieces = pair.pieces.map((piece) => ({ ...piece, time_ps: piece.mean_ps }));
      return h(
        "div",
        {},
        h("h3", {}, "Where their time goes, in the mean"),
        h("p", { class: "subtitle" }, told),
        share(pieces),
      );
    } catch (error) {
      return h("div", {}, h("p", {}, told), h("p", { class: "empty" }, (error as Error).message));
    }
  } catch (error) {
    return h("p", { class: "empty" }, (error as Error).message);
  }
}

function headingOf(map: MachineMap, thing: Thing): string {
  if (thing.kind === "link") return `Link ${map.linkName(thing.number)}`;
  if (thing.kind === "switch") return map.switchName(thing.number);
  if (thing.kind === "part") return map.partName(thing.number);
  return map.endpointName(thing.number);
}

function partFigures(map: MachineMap, part: number): HTMLElement {
  let [switches, endpoints] = [0, 0];
  map.drawing.switch_part.forEach((of, at) => {
    if (of !== part) return;
    switches += 1;
    endpoints += map.endpointFirst[at + 1] - map.endpointFirst[at];
  });
  return h("p", {}, `${count(switches)} switches, ${count(endpoints)} endpoints. Zoom in to see them.`);
}

/** The links whose history tells that of a thing, and their names. */
function linksOf(map: MachineMap, thing: Thing): { links: number[]; labels: string[] } {
  if (thing.kind === "link" || thing.kind === "endpoint") {
    const labels = thing.kind === "link" ? ["1", "2"] : ["out", "in"];
    return { links: [thing.number, map.reverse[thing.number]], labels };
  }
  if (thing.kind === "part") return { links: [], labels: [] };
  const { first } = map.drawing.links;
  const links: number[] = [];
  for (let link = first[thing.number]; link < first[thing.number + 1]; link += 1) {
    if (map.reverse[link] >= 0) links.push(link);
  }
  return { links, labels: [] };
}

/** The series of a history: each link, or of many the highest and the mean. */
function seriesOf(values: number[][], labels: string[]): { label: string; values: number[] }[] {
  if (labels.length > 0) return values.map((of, number) => ({ label: labels[number], values: of }));
  const intervals = values[0].map((_value, at) => values.map((of) => of[at]));
  return [
    { label: "highest of its links", values: intervals.map((of) => Math.max(...of)) },
    { label: "mean", values: intervals.map((of) => of.reduce((so, value) => so + value, 0) / of.length) },
  ];
}
