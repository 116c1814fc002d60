/** Figures of the server, each as `crates/weft-view/src/api.rs` names them. */

export interface Quantity {
  name: string;
  unit: string;
  whole: boolean;
  over_time: boolean;
}

export interface ResultInfo {
  name: string;
  directory: string;
  command: string;
  machine: string;
  ended: string;
  weft_version: string;
  /** Values of the machine that --set changed. */
  changes: string[];
  runs: { run: number; label: string; warm_up_us?: number | null }[];
  tables: string[];
  quantities: Quantity[];
  has_timeline: boolean;
  kinds: { name: string; title: string }[];
}

/** Whether a run is still going on, and how often what it has written has changed. */
export interface Live {
  live: boolean;
  begun: boolean;
  generation: number;
}

export interface Drawing {
  name: string;
  title: string;
  switch_x: number[];
  switch_y: number[];
  switch_part: number[];
  parts: string[];
  has_hub: boolean;
  outline: "none" | "circle" | "rectangle";
  has_rings: boolean;
  spacing: number;
  endpoint_x: number[];
  endpoint_y: number[];
  endpoint_switch: number[];
  links: { endpoints: number; first: number[]; reverse: (number | null)[] };
  classes: string[];
  port_class: number[];
  endpoint_names: string[];
  switch_names: string[];
  /** Outages whose times the machine file says. */
  outages: { of: string; from_ps: number; until_ps: number | null }[];
}

export interface FramesInfo {
  level: number;
  interval_ps: number;
  count: number;
  most: number;
}

export interface History {
  interval_ps: number;
  links: number[][];
}

export type LinkRow = Record<string, number | string | null> & { class: string; utilization: number };
export type RankRow = Record<string, number>;

export interface MessageRow {
  run: number;
  delivered_ps: number;
  posted_ps: number;
  source_endpoint: number;
  destination_endpoint: number;
  sequence: number;
  source_rank: number | null;
  destination_rank: number | null;
  class: string;
  payload_bytes: number;
  hops: number;
}

export interface PieceRow {
  begin_ps: number;
  time_ps: number;
  leg: string;
  category: string;
  what: string;
  place: string;
}

export interface MessageList {
  count: number;
  payload_bytes: number;
  mean_ps: number;
  slowest: MessageRow[];
  histogram: { from_ps: number; to_ps: number; count: number }[];
}

export interface PairPieces {
  messages: number;
  mean_ps: number;
  pieces: { category: string; what: string; place: string; mean_ps: number }[];
}

export interface EndpointDetails {
  leaving: LinkRow | null;
  arriving: LinkRow | null;
  ranks: RankRow[];
  flows: Record<string, number | null>[];
  flow_count: number;
}

export interface MachinePath {
  from: number;
  to: number;
  links: number[];
  classes: string[];
  switches: string[];
  kind: string | null;
  is_only: boolean;
}

export interface Axis {
  label: string;
  unit: string;
  log: boolean;
  from_zero: boolean;
  names: string[];
}

export interface Series {
  label: string;
  points: [number, number][];
  interval: [number, number][];
  dashed: boolean;
  colour: number;
  marks: boolean;
}

export type Content =
  | { lines: Series[] }
  | { stacked: Series[] }
  | { segments: { label: string; segments: [number, number, number, number][] }[] }
  | { cells: { edges: number[]; values: number[][]; label: string; unit: string } };

export interface Panel {
  title: string;
  x: Axis;
  y: Axis;
  content: Content;
}

export interface Picture {
  kind: string;
  title: string;
  subtitle: string;
  panels: Panel[];
}

export interface HotLink {
  run: number;
  link: string;
  class: string;
  utilization: number;
  stall_us: number;
  paused_us: number;
  lost: number;
}

export interface Report {
  facts: [string, string][];
  totals: [string, string][];
  warnings: string[];
  rows: [string[], string[][]];
  hot_links: HotLink[] | null;
  assumed: { key: string; value: string; source: string }[];
}

export interface TraceEvent {
  ph: string;
  name: string;
  cat?: string;
  pid: number;
  tid?: number;
  id?: string | number;
  ts?: number;
  dur?: number;
  args?: { name?: string };
}

export interface Trace {
  traceEvents: TraceEvent[];
  messages_left_out?: number;
}

type Parameters = Record<string, string | number>;

async function answer(name: string, parameters: Parameters): Promise<Response> {
  const query = new URLSearchParams(Object.entries(parameters).map(([key, value]) => [key, String(value)]));
  const response = await fetch(`api/${name}?${query}`);
  if (response.ok) return response;
  const told = (await response.json().catch(() => ({}))) as { error?: string };
  throw new Error(told.error ?? `the server answered ${response.status}`);
}

/** An answer in JSON; throws the reason where the result has nothing of what is asked for. */
export async function get<T>(name: string, parameters: Parameters = {}): Promise<T> {
  const value = (await (await answer(name, parameters)).json()) as T & { absent?: string };
  if (value && typeof value.absent === "string") throw new Error(value.absent);
  return value;
}

/** An answer of numbers. */
export async function numbers(name: string, parameters: Parameters): Promise<Float32Array> {
  const response = await answer(name, parameters);
  if (response.headers.get("content-type") !== "application/json") {
    return new Float32Array(await response.arrayBuffer());
  }
  throw new Error(((await response.json()) as { absent: string }).absent);
}
