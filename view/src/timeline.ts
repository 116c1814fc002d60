/** Ranks over time on a canvas: what each does, with zoom. */

import type { Trace, TraceEvent } from "./api";
import { seriesColour } from "./colours";
import { h, styled } from "./dom";
import { short, tick, time } from "./format";

/** Height of a track in pixels. */
const TRACK = 18;
const LEFT = 92;
const TOP = 24;
/** Tracks of messages overlap: so many lie below each other in one. */
const LANES = 3;

/** A stretch of time of a track. */
interface Slice {
  track: number;
  begin: number;
  end: number;
  name: string;
  kind: number;
  lane: number;
}

/** Kinds in the order of their colours. */
const KNOWN = ["compute", "wait", "communicate", "collective", "point-to-point", "pattern", "one-sided"];
const COLLECTIVE = /Allreduce|Reduce|Bcast|Barrier|Allgather|Alltoall|Gather|Scatter|Scan/i;

/** The kind of an activity: a call of a collective is told apart. */
function kindOf(event: TraceEvent): string {
  const kind = event.cat ?? "other";
  return kind !== "compute" && COLLECTIVE.test(event.name) ? "collective" : kind;
}

export class Timeline {
  readonly element = h("div", { class: "timeline" });
  private readonly canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": "Ranks over time" });
  private readonly told = h("p", { class: "status" });
  private readonly legend = h("p", { class: "legend" });
  private readonly slices: Slice[][] = [];
  private readonly names: string[] = [];
  private readonly kinds: string[] = [];
  private begin = 0;
  private end = 1;
  private from = 0;
  private to = 1;
  private scroll = 0;
  private lanes = 1;

  constructor(trace: Trace) {
    this.read(trace);
    this.element.append(this.legend, this.canvas, this.told);
    for (const kind of this.kinds) {
      const key = h("span", { class: "key" });
      key.style.background = seriesColour(KNOWN.indexOf(kind) < 0 ? KNOWN.length : KNOWN.indexOf(kind));
      this.legend.append(key, `${kind}  `);
    }
    this.legend.append(
      h("span", { class: "hint" }, "wheel: zoom; drag: move; shift and wheel: other ranks; 0: all"),
    );
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  get count(): number {
    return this.slices.reduce((so, track) => so + track.length, 0);
  }

  private read(trace: Trace): void {
    const tracks = new Map<number, number>();
    const names = new Map<number, string>();
    for (const event of trace.traceEvents) {
      if (event.ph === "M" && event.name === "thread_name" && event.pid === 1 && event.tid !== undefined) {
        names.set(event.tid, event.args?.name ?? String(event.tid));
      }
    }
    const open = new Map<string, TraceEvent>();
    const found: [TraceEvent, number, number][] = [];
    for (const event of trace.traceEvents) {
      if (event.pid !== 1 || event.ts === undefined || event.tid === undefined) continue;
      if (event.ph === "X") found.push([event, event.ts, event.ts + (event.dur ?? 0)]);
      if (event.ph === "b") open.set(String(event.id), event);
      if (event.ph === "e") {
        const first = open.get(String(event.id));
        if (first) found.push([first, first.ts ?? 0, event.ts]);
        this.lanes = LANES;
      }
    }
    const ids = [...new Set(found.map(([event]) => event.tid!))].sort((a, b) => a - b);
    ids.forEach((id, track) => {
      tracks.set(id, track);
      this.names.push(names.get(id) ?? String(id));
      this.slices.push([]);
    });
    found.sort((a, b) => a[1] - b[1]);
    const busy: number[][] = ids.map(() => []);
    for (const [event, begin, end] of found) {
      const kind = kindOf(event);
      if (!this.kinds.includes(kind)) this.kinds.push(kind);
      const track = tracks.get(event.tid!)!;
      let lane = 0;
      if (this.lanes > 1) {
        while (lane < this.lanes - 1 && (busy[track][lane] ?? 0) > begin) lane += 1;
        busy[track][lane] = end;
      }
      this.slices[track].push({ track, begin, end, name: event.name, kind: this.kinds.indexOf(kind), lane });
      this.end = Math.max(this.end, end);
    }
    this.begin = found[0]?.[1] ?? 0;
    this.end = found.reduce((so, [, , end]) => Math.max(so, end), this.begin + 1e-6);
    [this.from, this.to] = [this.begin, this.end];
  }

  private get width(): number {
    return this.canvas.clientWidth - LEFT;
  }

  private x(us: number): number {
    return LEFT + ((us - this.from) / (this.to - this.from)) * this.width;
  }

  /** Zooms around a point. */
  private zoom(factor: number, x = LEFT + this.width / 2): void {
    const at = this.from + ((x - LEFT) / this.width) * (this.to - this.from);
    const most = this.end - this.begin;
    const length = Math.min(Math.max((this.to - this.from) * factor, 1e-6), most);
    this.from = at - ((x - LEFT) / this.width) * length;
    this.bound(length);
  }

  private bound(length: number): void {
    this.from = Math.min(Math.max(this.from, this.begin), this.end - length);
    this.to = this.from + length;
    this.draw();
  }

  private pan(pixels: number): void {
    const length = this.to - this.from;
    this.from -= (pixels / this.width) * length;
    this.bound(length);
  }

  private get trackHeight(): number {
    return this.lanes > 1 ? TRACK * 1.4 : TRACK;
  }

  private draw(): void {
    const height = Math.max(120, this.element.clientHeight - 64);
    const all = this.slices.length * this.trackHeight + TOP;
    this.scroll = Math.min(Math.max(this.scroll, 0), Math.max(all - height, 0));
    const [width, ratio] = [this.element.clientWidth, Math.min(devicePixelRatio, 2)];
    this.canvas.style.height = `${height}px`;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext("2d");
    if (!context || width < 100) return;
    context.scale(ratio, ratio);
    const [text, grid, paper] = [styled("--text"), styled("--grid"), styled("--paper")];
    this.slices.forEach((slices, track) => {
      const top = TOP + track * this.trackHeight - this.scroll;
      if (top > height || top < TOP - this.trackHeight) return;
      context.fillStyle = grid;
      context.fillRect(LEFT, top + this.trackHeight - 1, width - LEFT, 1);
      this.drawTrack(context, slices, top);
    });
    context.fillStyle = paper;
    context.fillRect(0, 0, LEFT, height);
    context.fillRect(0, 0, width, TOP);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = text;
    this.names.forEach((name, track) => {
      const top = TOP + track * this.trackHeight - this.scroll;
      if (top >= TOP - 4 && top < height) context.fillText(name, 6, top + this.trackHeight / 2, LEFT - 12);
    });
    this.drawAxis(context, width);
  }

  private drawTrack(context: CanvasRenderingContext2D, slices: Slice[], top: number): void {
    const high = (this.trackHeight - 3) / this.lanes;
    // Slices that are thinner than a pixel are one.
    const drawnTo = new Array<number>(this.lanes).fill(Number.NEGATIVE_INFINITY);
    for (const slice of slices) {
      if (slice.end < this.from || slice.begin > this.to) continue;
      const [left, right] = [Math.max(this.x(slice.begin), LEFT), this.x(slice.end)];
      if (right < drawnTo[slice.lane] + 0.5) continue;
      drawnTo[slice.lane] = right;
      const kind = KNOWN.indexOf(this.kinds[slice.kind]);
      context.fillStyle = seriesColour(kind < 0 ? KNOWN.length : kind);
      context.fillRect(left, top + 1 + slice.lane * high, Math.max(right - left, 0.7), high - 1);
      if (right - left > 60 && high > 10) {
        context.fillStyle = "#101418";
        context.font = "10px system-ui, sans-serif";
        context.textBaseline = "middle";
        context.fillText(slice.name, left + 3, top + 1 + high / 2, right - left - 6);
      }
    }
  }

  private drawAxis(context: CanvasRenderingContext2D, width: number): void {
    const rough = (this.to - this.from) / Math.max(this.width / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((of) => of * power).find((of) => of >= rough) ?? rough;
    context.fillStyle = styled("--text");
    context.textBaseline = "middle";
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.x(at);
      context.fillRect(x, TOP - 5, 1, 5);
      if (x < width - 40) context.fillText(tick(at, this.to), x + 3, TOP / 2);
    }
  }

  private sliceAt(x: number, y: number): Slice | null {
    const track = Math.floor((y - TOP + this.scroll) / this.trackHeight);
    if (x < LEFT || y < TOP || track < 0) return null;
    const lane = Math.floor((((y - TOP + this.scroll) % this.trackHeight) / this.trackHeight) * this.lanes);
    const us = this.from + ((x - LEFT) / this.width) * (this.to - this.from);
    const of = this.slices[track] ?? [];
    return of.findLast((slice) => slice.lane === lane && slice.begin <= us && slice.end >= us) ?? null;
  }

  private listen(): void {
    let from: number | null = null;
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      from = event.clientX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => {
      from = null;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from !== null) {
        this.pan(event.clientX - from);
        from = event.clientX;
        return;
      }
      const slice = this.sliceAt(event.offsetX, event.offsetY);
      this.told.textContent = slice
        ? `${this.names[slice.track]}: ${slice.name} (${this.kinds[slice.kind]}), from ${short(slice.begin)} µs, ${time((slice.end - slice.begin) * 1e6)}`
        : "";
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (event.shiftKey || event.offsetX < LEFT) {
          this.scroll += event.deltaY + event.deltaX;
          this.draw();
        } else {
          this.zoom(Math.exp(event.deltaY * 0.0016), event.offsetX);
        }
      },
      { passive: false },
    );
  }

  /** A key; whether it meant something. */
  key(event: KeyboardEvent): boolean {
    const actions: Record<string, () => void> = {
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      "0": () => {
        [this.from, this.to] = [this.begin, this.end];
        this.draw();
      },
      ArrowLeft: () => this.pan(80),
      ArrowRight: () => this.pan(-80),
      ArrowDown: () => {
        this.scroll += 3 * TRACK;
        this.draw();
      },
      ArrowUp: () => {
        this.scroll -= 3 * TRACK;
        this.draw();
      },
    };
    const action = actions[event.key];
    if (!action) return false;
    action();
    return true;
  }
}
