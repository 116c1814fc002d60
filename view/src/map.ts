/** The machine as lines and shapes: where they are, and which of them are seen at a scale. */

import type { Drawing } from "./api";

/** A thing of the machine that can be chosen. */
export type Thing =
  | { kind: "link"; number: number }
  | { kind: "switch"; number: number }
  | { kind: "endpoint"; number: number }
  | { kind: "part"; number: number };

/** A box around a part. */
export interface Box {
  x: number;
  y: number;
  halfWidth: number;
  halfHeight: number;
}

/** A class of links whose links are this much longer than its shortest passes behind other switches. */
const LONG = 1.5;
/** Pieces of a bent link. */
const BENT_PIECES = 8;
/** How far a bent link goes aside, as a share of its length. */
const BEND = 0.16;

/** Straight pieces of links between switches, or of bundles between parts. */
export class Pieces {
  /** Ends of every piece: ax, ay, bx, by. */
  ends = new Float32Array(0);
  /** The link of every piece in its own direction. */
  links = new Uint32Array(0);

  static of(ends: number[], links: number[]): Pieces {
    const pieces = new Pieces();
    pieces.ends = Float32Array.from(ends);
    pieces.links = Uint32Array.from(links);
    return pieces;
  }
}

/** A machine that can be drawn. */
export class MachineMap {
  readonly switches: number;
  readonly endpoints: number;
  readonly linkCount: number;
  /** The other direction of every link; -1: the port has none. */
  readonly reverse: Int32Array;
  /** The switch that every link leaves; -1: it leaves an endpoint. */
  readonly fromSwitch: Int32Array;
  readonly between: Pieces;
  /** Endpoints by switch: `endpointsOf[first[s]]` to `endpointsOf[first[s + 1] - 1]`. */
  readonly endpointFirst: Uint32Array;
  readonly endpointsOf: Uint32Array;
  /** The boxes of parts, and bundles between them; none where parts lie upon each other. */
  readonly boxes: Box[];
  readonly bundles: Pieces;
  /** Links of every bundle, by the number in `bundles.links`. */
  readonly bundleLinks: Uint32Array[] = [];
  /** Links that leave the switches of every part. */
  readonly partLinks: Uint32Array[] = [];
  readonly bounds: Box;
  /** The distance of an endpoint from the next, about. */
  readonly endpointSpacing: number;

  constructor(readonly drawing: Drawing) {
    const { links } = drawing;
    this.switches = drawing.switch_x.length;
    this.endpoints = drawing.endpoint_x.length;
    this.linkCount = links.endpoints + links.reverse.length;
    this.reverse = new Int32Array(this.linkCount).fill(-1);
    this.fromSwitch = new Int32Array(this.linkCount).fill(-1);
    for (let port = 0; port < links.reverse.length; port += 1) {
      const reverse = links.reverse[port];
      if (reverse === null) continue;
      this.reverse[links.endpoints + port] = reverse;
      this.reverse[reverse] = links.endpoints + port;
    }
    for (let at = 0; at < this.switches; at += 1) {
      this.fromSwitch.fill(at, links.first[at], links.first[at + 1]);
    }
    this.endpointFirst = new Uint32Array(this.switches + 1);
    for (const at of drawing.endpoint_switch) this.endpointFirst[at + 1] += 1;
    let most = 0;
    for (let at = 0; at < this.switches; at += 1) {
      most = Math.max(most, this.endpointFirst[at + 1]);
      this.endpointFirst[at + 1] += this.endpointFirst[at];
    }
    const next = this.endpointFirst.slice();
    this.endpointsOf = new Uint32Array(this.endpoints);
    drawing.endpoint_switch.forEach((at, endpoint) => {
      this.endpointsOf[next[at]] = endpoint;
      next[at] += 1;
    });
    this.endpointSpacing = (0.8 * drawing.spacing) / Math.ceil(Math.sqrt(Math.max(most, 1)));
    this.between = this.piecesBetween();
    this.bounds = boxOf(
      [
        ...bounds(drawing.switch_x, drawing.switch_y),
        ...bounds(drawing.endpoint_x, drawing.endpoint_y),
        // Bent and open links reach out.
        ...bounds(every(this.between.ends, 0), every(this.between.ends, 1)),
      ],
      drawing.spacing,
    );
    this.boxes = this.partBoxes();
    this.bundles = this.bundlesBetween();
  }

  /** The switch at the other end of a link that leaves a switch; -1: an endpoint, or nothing. */
  toSwitch(link: number): number {
    const reverse = this.reverse[link];
    if (reverse < 0) return -1;
    return reverse < this.endpoints ? -1 : this.fromSwitch[reverse];
  }

  switchName(number: number): string {
    return this.drawing.switch_names[number] ?? `switch ${number}`;
  }

  endpointName(number: number): string {
    const name = this.drawing.endpoint_names[number];
    return name ? name : `endpoint ${number}`;
  }

  partName(number: number): string {
    return this.drawing.parts[number] ?? "";
  }

  /** The name of a link: from where to where. */
  linkName(link: number): string {
    return `${this.endName(link)} → ${this.endName(this.reverse[link])}`;
  }

  className(link: number): string {
    const port = Math.max(link, this.reverse[link]) - this.endpoints;
    return this.drawing.classes[this.drawing.port_class[port]] ?? "";
  }

  /** The end that a link leaves. */
  private endName(link: number): string {
    if (link < 0) return "nothing";
    if (link < this.endpoints) return this.endpointName(link);
    const at = this.fromSwitch[link];
    return `${this.switchName(at)} port ${link - this.drawing.links.first[at]}`;
  }

  /** The middle of a thing. */
  place(thing: Thing): { x: number; y: number } {
    const { switch_x, switch_y, endpoint_x, endpoint_y } = this.drawing;
    if (thing.kind === "switch") return { x: switch_x[thing.number], y: switch_y[thing.number] };
    if (thing.kind === "endpoint") return { x: endpoint_x[thing.number], y: endpoint_y[thing.number] };
    if (thing.kind === "part") return this.boxes[thing.number];
    const [a, b] = [this.linkEnd(thing.number), this.linkEnd(this.reverse[thing.number])];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  }

  /** The place that a link leaves. */
  linkEnd(link: number): { x: number; y: number } {
    if (link < this.endpoints) return this.place({ kind: "endpoint", number: link });
    return this.place({ kind: "switch", number: this.fromSwitch[link] });
  }

  private piecesBetween(): Pieces {
    const { drawing } = this;
    const shortest: number[] = drawing.classes.map(() => Number.POSITIVE_INFINITY);
    const each = (visit: (link: number, from: number, to: number, length: number, kind: number) => void) => {
      for (let link = this.endpoints; link < this.linkCount; link += 1) {
        // Each link once, by its lower number.
        if (this.reverse[link] < link) continue;
        const [from, to] = [this.fromSwitch[link], this.toSwitch(link)];
        if (to < 0) continue;
        const length = Math.hypot(
          drawing.switch_x[to] - drawing.switch_x[from],
          drawing.switch_y[to] - drawing.switch_y[from],
        );
        visit(link, from, to, length, drawing.port_class[link - this.endpoints]);
      }
    };
    each((_link, _from, _to, length, kind) => {
      shortest[kind] = Math.min(shortest[kind], length);
    });
    const isGrid = drawing.outline !== "circle" && !drawing.has_hub;
    const [ends, links]: [number[], number[]] = [[], []];
    each((link, from, to, length, kind) => {
      const [ax, ay] = [drawing.switch_x[from], drawing.switch_y[from]];
      const [bx, by] = [drawing.switch_x[to], drawing.switch_y[to]];
      const isLong = length > LONG * shortest[kind];
      if (drawing.has_rings && isLong) {
        // Left open: a stub at each end, away from the other.
        const stub = (0.25 * shortest[kind]) / length;
        ends.push(ax, ay, ax - (bx - ax) * stub, ay - (by - ay) * stub);
        ends.push(bx, by, bx + (bx - ax) * stub, by + (by - ay) * stub);
        links.push(link, link);
      } else if (isGrid && isLong && (Math.abs(ax - bx) < 1e-3 || Math.abs(ay - by) < 1e-3)) {
        let [x, y] = [ax, ay];
        for (let piece = 1; piece <= BENT_PIECES; piece += 1) {
          const share = piece / BENT_PIECES;
          const aside = 4 * BEND * share * (1 - share);
          const [toX, toY] = [
            ax + (bx - ax) * share - (by - ay) * aside,
            ay + (by - ay) * share + (bx - ax) * aside,
          ];
          ends.push(x, y, toX, toY);
          links.push(link);
          [x, y] = [toX, toY];
        }
      } else {
        ends.push(ax, ay, bx, by);
        links.push(link);
      }
    });
    return Pieces.of(ends, links);
  }

  /** Boxes around parts, where they lie apart. */
  private partBoxes(): Box[] {
    const { drawing } = this;
    const corners: number[][] = drawing.parts.map(() => [
      Number.POSITIVE_INFINITY,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
    ]);
    const take = (part: number, x: number, y: number) => {
      const corner = corners[part];
      corner[0] = Math.min(corner[0], x);
      corner[1] = Math.min(corner[1], y);
      corner[2] = Math.max(corner[2], x);
      corner[3] = Math.max(corner[3], y);
    };
    drawing.switch_part.forEach((part, at) => {
      take(part, drawing.switch_x[at], drawing.switch_y[at]);
    });
    drawing.endpoint_switch.forEach((at, endpoint) => {
      take(drawing.switch_part[at], drawing.endpoint_x[endpoint], drawing.endpoint_y[endpoint]);
    });
    if (drawing.parts.length < 2 || corners.some((corner) => corner[0] > corner[2])) return [];
    const boxes = corners.map((corner) => boxOf(corner, 0.3 * drawing.spacing));
    const reach = (box: Box) => 0.8 * Math.max(box.halfWidth, box.halfHeight);
    const areApart = boxes.every((one, number) =>
      boxes.slice(number + 1, number + 4).every((other) => {
        const [dx, dy] = [Math.abs(one.x - other.x), Math.abs(one.y - other.y)];
        const isCircle = drawing.outline === "circle";
        if (isCircle) return Math.hypot(dx, dy) > reach(one) + reach(other);
        return dx > 0.8 * (one.halfWidth + other.halfWidth) || dy > 0.8 * (one.halfHeight + other.halfHeight);
      }),
    );
    return areApart ? boxes : [];
  }

  /** A line for all links between two parts. */
  private bundlesBetween(): Pieces {
    if (this.boxes.length === 0) return new Pieces();
    const { drawing } = this;
    const inPart: number[][] = this.boxes.map(() => []);
    const bundles = new Map<number, number[]>();
    for (let link = this.endpoints; link < this.linkCount; link += 1) {
      if (this.reverse[link] < 0) continue;
      const from = drawing.switch_part[this.fromSwitch[link]];
      inPart[from].push(link);
      const other = this.toSwitch(link);
      if (other < 0) {
        inPart[from].push(this.reverse[link]);
        continue;
      }
      const to = drawing.switch_part[other];
      if (from === to) continue;
      const key = Math.min(from, to) * this.boxes.length + Math.max(from, to);
      const known = bundles.get(key);
      if (known) known.push(link);
      else bundles.set(key, [link]);
    }
    for (const part of inPart) this.partLinks.push(Uint32Array.from(part));
    const [ends, links]: [number[], number[]] = [[], []];
    const hub = drawing.has_hub ? this.boxes.length - 1 : -1;
    for (const [key, of] of bundles) {
      const [a, b] = [this.boxes[Math.floor(key / this.boxes.length)], key % this.boxes.length];
      const end = this.boxes[b];
      // Into a wide row of roots straight up.
      if (b === hub) ends.push(a.x, a.y - a.halfHeight, a.x, end.y + end.halfHeight);
      else ends.push(a.x, a.y, end.x, end.y);
      links.push(this.bundleLinks.length);
      this.bundleLinks.push(Uint32Array.from(of));
    }
    return Pieces.of(ends, links);
  }
}

/** Every second number. */
function every(numbers: Float32Array, from: number): number[] {
  return Array.from({ length: numbers.length / 2 }, (_one, at) => numbers[2 * at + from]);
}

function bounds(x: number[], y: number[]): number[] {
  const [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  let corners = [low, low, high, high];
  for (let at = 0; at < x.length; at += 1) {
    corners = [
      Math.min(corners[0], x[at]),
      Math.min(corners[1], y[at]),
      Math.max(corners[2], x[at]),
      Math.max(corners[3], y[at]),
    ];
  }
  return corners;
}

/** The box around corners (low x, low y, high x, high y, repeated), with room around it. */
function boxOf(corners: number[], room: number): Box {
  const pick = (at: number) => corners.filter((value, place) => place % 4 === at && Number.isFinite(value));
  const [lowX, lowY] = [Math.min(...pick(0)), Math.min(...pick(1))];
  const [highX, highY] = [Math.max(...pick(2)), Math.max(...pick(3))];
  return {
    x: (lowX + highX) / 2,
    y: (lowY + highY) / 2,
    halfWidth: (highX - lowX) / 2 + room,
    halfHeight: (highY - lowY) / 2 + room,
  };
}
