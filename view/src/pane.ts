/** A machine on a canvas: what is seen of it at a scale, its colours, and what the pointer is on. */

import type { Ramp } from "./colours";
import { styled } from "./dom";
import { Effort, REST } from "./effort";
import type { MachineMap, Thing } from "./map";
import { LINE, Painter, SHAPE, type View } from "./painter";

/** Lines that are drawn, at most: of more, all with high values and some of the others. */
const MAX_LINES = 14_000;
/** Pixels between neighbouring switches below which parts are drawn in their place. */
const PARTS_BELOW_PX = 3.5;
/** Switches of a machine that is never drawn by parts. */
const FEW_SWITCHES = 300;
/** Pixels between neighbouring endpoints from which on they are drawn. */
const ENDPOINTS_FROM_PX = 2.2;
/** Lines up to which both directions of a link are told apart. */
const BOTH_DIRECTIONS = 6_000;
/** Pixels across of a line without much traffic, with its soft edges. */
const THIN_PX = 3;
/** Values are sorted in so many steps, so that the highest lie on top. */
const STEPS = 64;
const MOST_ZOOM_PX = 400;
/** Pixels between neighbouring switches above which their names are written. */
const NAMES_FROM_PX = 60;
/** Pixels between rows of a tree that is stretched, at most. */
const MOST_STRETCHED_PX = 40;

/** Whether a thing of several links takes the highest of their values, or the mean. */
export type Gathering = "most" | "mean";

/** Values of a quantity, and the one that has the last colour. */
export interface Values {
  of: Float32Array;
  most: number;
}

/** A line that was drawn, for the pointer. */
interface Drawn {
  lines: Float32Array;
  lineThings: Int32Array;
  lineCount: number;
  mode: "parts" | "switches" | "endpoints";
}

export class Pane {
  readonly element: HTMLElement;
  readonly view: View = { x: 0, y: 0, scale: 1, down: 1 };
  ramp: Ramp;
  values: Values;
  gathering: Gathering = "most";
  chosen: Thing[] = [];
  /** Links of a path that is shown. */
  path: number[] = [];
  onView: (view: View) => void = () => {};
  onChoose: (thing: Thing | null, isSecond: boolean) => void = () => {};
  onHover: (thing: Thing | null) => void = () => {};
  /** The part of the lines that was left out. */
  leftOut = 0;
  private readonly effort = new Effort();
  /** Shapes that the last frame left out. */
  private shapesLeftOut = 0;
  /** Values of switches, endpoints and parts, of which they were gathered. */
  private known: Gathered | null = null;
  /** Pieces that are seen, and their values: room that frames share. */
  private candidates = new Int32Array(0);
  private looks = new Float32Array(0);
  private things = new Int32Array(0);
  private isOverlayClear = false;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private readonly canvas = document.createElement("canvas");
  private readonly overlay = document.createElement("canvas");
  private readonly painter: Painter;
  private width = 1;
  private height = 1;
  private isDue = false;
  private drawn: Drawn = {
    lines: new Float32Array(0),
    lineThings: new Int32Array(0),
    lineCount: 0,
    mode: "switches",
  };

  constructor(
    readonly map: MachineMap,
    ramp: Ramp,
    label: string,
  ) {
    this.ramp = ramp;
    this.values = { of: new Float32Array(map.linkCount), most: 1 };
    this.element = document.createElement("div");
    this.element.className = "pane";
    this.overlay.tabIndex = 0;
    this.overlay.setAttribute("role", "img");
    this.overlay.setAttribute("aria-label", label);
    this.element.append(this.canvas, this.overlay);
    this.painter = new Painter(this.canvas);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  /** Draws at the next frame. */
  due(): void {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame((now) => {
      this.isDue = false;
      this.effort.frame(now);
      this.draw();
      if (this.leftOut > 0 || this.shapesLeftOut > 0 || this.effort.sharpness < 1) this.rest();
    });
  }

  /** Draws all when nothing has moved for a while. */
  private rest(): void {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.effort.rest();
      this.draw();
    }, REST);
  }

  /** Shows the whole machine. */
  fit(): void {
    const { bounds } = this.map;
    this.view.x = bounds.x;
    this.view.y = bounds.y;
    const room = 0.94;
    this.setScale(
      Math.min(
        (room * this.width) / (2 * bounds.halfWidth),
        (room * this.height) / (2 * bounds.halfHeight),
        MOST_ZOOM_PX / this.map.drawing.spacing,
      ),
    );
    this.due();
  }

  /** Sets the scale. A wide tree is stretched downwards as long as all of its height is seen. */
  private setScale(scale: number): void {
    const { bounds, drawing } = this.map;
    const whole = (0.9 * this.height) / (2 * bounds.halfHeight);
    this.view.scale = scale;
    this.view.down = drawing.has_hub
      ? Math.max(scale, Math.min(whole, MOST_STRETCHED_PX / drawing.spacing))
      : scale;
  }

  /** Zooms around a point of the canvas. */
  zoom(factor: number, x = this.width / 2, y = this.height / 2): void {
    const { bounds, drawing } = this.map;
    const least = 0.3 * Math.min(this.width / bounds.halfWidth, this.height / bounds.halfHeight) * 0.5;
    const most = (4 * MOST_ZOOM_PX) / drawing.spacing;
    const scale = Math.min(Math.max(this.view.scale * factor, least), most);
    const [dx, dy] = [x - this.width / 2, y - this.height / 2];
    const before = { ...this.view };
    this.setScale(scale);
    this.view.x += dx / before.scale - dx / this.view.scale;
    this.view.y += dy / before.down - dy / this.view.down;
    this.onView(this.view);
    this.due();
  }

  /** Moves by so many pixels. */
  pan(x: number, y: number): void {
    this.view.x -= x / this.view.scale;
    this.view.y -= y / this.view.down;
    this.onView(this.view);
    this.due();
  }

  /** Brings a thing into the middle, near enough to be told from its neighbours. */
  goTo(thing: Thing): void {
    Object.assign(this.view, this.map.place(thing));
    const px = thing.kind === "endpoint" ? 8 / this.map.endpointSpacing : 40 / this.map.drawing.spacing;
    this.setScale(Math.max(this.view.scale, px));
    this.onView(this.view);
    this.due();
  }

  /** The point of the page at which a thing is drawn. */
  at(thing: Thing): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    let place = this.map.place(thing);
    if (thing.kind === "link") {
      // A bent or open link is not where the middle of its ends is.
      const piece = this.map.between.links.findIndex(
        (link) => link === thing.number || link === this.map.reverse[thing.number],
      );
      if (piece >= 0) {
        const [ax, ay, bx, by] = this.map.between.ends.subarray(4 * piece, 4 * piece + 4);
        place = { x: (ax + bx) / 2, y: (ay + by) / 2 };
      }
    }
    const [x, y] = this.toScreen(place.x, place.y);
    return { x: box.left + x, y: box.top + y };
  }

  get mode(): Drawn["mode"] {
    return this.drawn.mode;
  }

  /** The value of some links together. */
  private gathered(links: Iterable<number>): number {
    let [most, sum, count] = [0, 0, 0];
    for (const link of links) {
      const value = this.values.of[link];
      most = Math.max(most, value);
      sum += value;
      count += 1;
    }
    return this.gathering === "most" ? most : sum / Math.max(count, 1);
  }

  /** The value of a thing, before it is made a colour. */
  valueOf(thing: Thing): number {
    if (thing.kind === "link") return this.values.of[thing.number];
    return this.ofThings()[thing.kind][thing.number];
  }

  /** The values of things of several links, gathered once for all frames of the same values. */
  private ofThings(): Gathered {
    const { map, values, gathering } = this;
    if (this.known?.values === values && this.known.gathering === gathering) return this.known;
    const each = (count: number, linksOf: (number: number) => Iterable<number>) =>
      Float32Array.from({ length: count }, (_one, number) => this.gathered(linksOf(number)));
    this.known = {
      values,
      gathering,
      endpoint: each(map.endpoints, (number) => [number, map.reverse[number]]),
      switch: each(map.switches, (number) => this.linksOf(number)),
      part: each(map.partLinks.length, (number) => map.partLinks[number]),
      bundle: each(map.bundleLinks.length, (number) => map.bundleLinks[number]),
    };
    return this.known;
  }

  private *linksOf(at: number): Iterable<number> {
    const { first } = this.map.drawing.links;
    for (let link = first[at]; link < first[at + 1]; link += 1) {
      if (this.map.reverse[link] >= 0) yield link;
    }
  }

  private resize(): void {
    const box = this.element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) return;
    const isFirst = this.width === 1;
    [this.width, this.height] = [box.width, box.height];
    this.painter.resize(box.width, box.height);
    const ratio = Math.min(devicePixelRatio, 2);
    this.overlay.width = box.width * ratio;
    this.overlay.height = box.height * ratio;
    if (isFirst) this.fit();
    this.due();
  }

  private toScreen(x: number, y: number): [number, number] {
    return [
      (x - this.view.x) * this.view.scale + this.width / 2,
      (y - this.view.y) * this.view.down + this.height / 2,
    ];
  }

  private draw(): void {
    const { map, view } = this;
    const spacingPx = map.drawing.spacing * view.scale;
    const byParts = map.boxes.length > 0 && map.switches > FEW_SWITCHES && spacingPx < PARTS_BELOW_PX;
    const withEndpoints = !byParts && map.endpointSpacing * view.scale >= ENDPOINTS_FROM_PX;
    this.drawn.mode = byParts ? "parts" : withEndpoints ? "endpoints" : "switches";
    const reachX = this.width / 2 / view.scale;
    const reachY = this.height / 2 / view.down;
    const seen = {
      lowX: view.x - reachX,
      highX: view.x + reachX,
      lowY: view.y - reachY,
      highY: view.y + reachY,
    };
    const lineCount = this.fillLines(byParts, withEndpoints, seen);
    const shapeCount = byParts ? this.fillParts() : this.fillSwitches(withEndpoints, seen);
    this.painter.colour(this.ramp);
    this.painter.sharpen(this.effort.sharpness);
    this.painter.lines.show(lineCount);
    this.painter.shapes.show(shapeCount);
    const fade = lineCount > 4_000 ? 0.22 : lineCount > 1_000 ? 0.4 : 0.75;
    this.painter.draw(view, fade);
    this.drawOverlay(seen);
  }

  /** Lines of links that are seen, the highest values last. */
  private fillLines(byParts: boolean, withEndpoints: boolean, seen: Seen): number {
    const { map, values } = this;
    const pieces = byParts ? map.bundles : map.between;
    const scale = values.most > 0 ? 1 / values.most : 0;
    const { ends, links } = pieces;
    const room = links.length + map.endpoints;
    if (this.candidates.length < room) {
      [this.candidates, this.looks] = [new Int32Array(room), new Float32Array(room)];
    }
    const { candidates, looks } = this;
    let [all, area] = [0, 0];
    const steps = new Uint32Array(STEPS + 1);
    const take = (piece: number, value: number, ax: number, ay: number, bx: number, by: number) => {
      const look = Math.min(value * scale, 1);
      candidates[all] = piece;
      looks[all] = look;
      all += 1;
      steps[stepOf(look)] += 1;
      area += this.seenLength(ax, ay, bx, by, seen) * (THIN_PX + 2 * look);
    };
    // Of too many those that only pass through are left out.
    const isIn = (x: number, y: number) => x > seen.lowX && x < seen.highX && y > seen.lowY && y < seen.highY;
    const onlyEnding = !byParts && links.length > MAX_LINES;
    const bundleValues = this.ofThings().bundle;
    for (let piece = 0; piece < links.length; piece += 1) {
      const [ax, ay] = [ends[4 * piece], ends[4 * piece + 1]];
      const [bx, by] = [ends[4 * piece + 2], ends[4 * piece + 3]];
      if (Math.max(ax, bx) < seen.lowX || Math.min(ax, bx) > seen.highX) continue;
      if (Math.max(ay, by) < seen.lowY || Math.min(ay, by) > seen.highY) continue;
      if (onlyEnding && !isIn(ax, ay) && !isIn(bx, by)) continue;
      const link = links[piece];
      const value = byParts ? bundleValues[link] : Math.max(values.of[link], values.of[map.reverse[link]]);
      take(piece, value, ax, ay, bx, by);
    }
    if (withEndpoints) {
      const { endpoint_x, endpoint_y, endpoint_switch, switch_x, switch_y } = map.drawing;
      for (let endpoint = 0; endpoint < map.endpoints; endpoint += 1) {
        const [x, y] = [endpoint_x[endpoint], endpoint_y[endpoint]];
        if (x < seen.lowX || x > seen.highX || y < seen.lowY || y > seen.highY) continue;
        const at = endpoint_switch[endpoint];
        const value = Math.max(values.of[endpoint], values.of[map.reverse[endpoint]]);
        take(-1 - endpoint, value, x, y, switch_x[at], switch_y[at]);
      }
    }
    const kept = this.thin(all, Math.min(MAX_LINES, this.effort.most(all, area)), steps);
    // Where lines of each step begin.
    const places = new Uint32Array(STEPS);
    let count = 0;
    for (let step = 0; step < STEPS; step += 1) {
      places[step] = count;
      count += steps[step];
    }
    const both = !byParts && count < BOTH_DIRECTIONS && map.drawing.spacing * this.view.scale > 24;
    const factor = both ? 2 : 1;
    const data = this.painter.lines.room(count * factor);
    if (this.things.length < count * factor) this.things = new Int32Array(Math.ceil(count * factor * 1.5));
    const { things } = this;
    // Many lines are thin.
    const most = byParts ? 6 : both ? 4 : 3.2;
    const widest = Math.min(Math.max(60 / Math.sqrt(Math.max(count, 1)), 1.2), most);
    let drawnLines = 0;
    for (let number = 0; number < kept; number += 1) {
      const step = stepOf(looks[number]);
      const place = places[step];
      places[step] += 1;
      const piece = candidates[number];
      const link = piece < 0 ? -1 - piece : links[piece];
      for (let side = 0; side < factor; side += 1) {
        const direction = side === 0 ? link : map.reverse[link];
        const look = both ? Math.min(values.of[direction] * scale, 1) : looks[number];
        const at = (place * factor + side) * LINE;
        this.putEnds(data, at, piece, ends);
        data[at + 4] = look;
        data[at + 5] = 1 + look * (widest - 1);
        // Traffic drives on the right, seen from above.
        data[at + 6] = both ? (side === 0 ? 1 : -1) * (0.7 + widest / 4) : 0;
        things[place * factor + side] = direction;
        drawnLines += 1;
      }
    }
    this.drawn.lines = data;
    this.drawn.lineThings = things;
    this.drawn.lineCount = drawnLines;
    return drawnLines;
  }

  /** The pixels of a line that are seen, about. */
  private seenLength(ax: number, ay: number, bx: number, by: number, seen: Seen): number {
    const { scale, down } = this.view;
    const [dx, dy] = [Math.abs(bx - ax), Math.abs(by - ay)];
    const wide = Math.min(Math.max(ax, bx), seen.highX) - Math.max(Math.min(ax, bx), seen.lowX);
    const high = Math.min(Math.max(ay, by), seen.highY) - Math.max(Math.min(ay, by), seen.lowY);
    const share = Math.min(dx > 0 ? wide / dx : 1, dy > 0 ? high / dy : 1);
    return share * (dx * scale + dy * down);
  }

  /**
   * Of more lines than `most` keeps the half of `most` with the highest values, and of the others one in so many.
   * How many are kept.
   */
  private thin(all: number, most: number, steps: Uint32Array): number {
    const { candidates, looks } = this;
    this.leftOut = 0;
    if (all <= most) return all;
    let [hot, step] = [0, STEPS];
    while (step > 0 && hot + steps[step - 1] <= most / 2) {
      step -= 1;
      hot += steps[step];
    }
    const stride = Math.ceil((all - hot) / Math.max(most / 2, 1));
    let [kept, others] = [0, 0];
    steps.fill(0);
    for (let number = 0; number < all; number += 1) {
      const of = stepOf(looks[number]);
      if (of < step) others += 1;
      if (of < step && others % stride !== 0) continue;
      candidates[kept] = candidates[number];
      looks[kept] = looks[number];
      steps[of] += 1;
      kept += 1;
    }
    this.leftOut = all - kept;
    return kept;
  }

  /** Writes the ends of a piece, or of the link of an endpoint (-1 and below). */
  private putEnds(data: Float32Array, at: number, piece: number, ends: Float32Array): void {
    if (piece >= 0) {
      for (let part = 0; part < 4; part += 1) data[at + part] = ends[4 * piece + part];
      return;
    }
    const { endpoint_x, endpoint_y, endpoint_switch, switch_x, switch_y } = this.map.drawing;
    const endpoint = -1 - piece;
    const to = endpoint_switch[endpoint];
    data[at] = endpoint_x[endpoint];
    data[at + 1] = endpoint_y[endpoint];
    data[at + 2] = switch_x[to];
    data[at + 3] = switch_y[to];
  }

  private fillSwitches(withEndpoints: boolean, seen: Seen): number {
    const { map, view } = this;
    const { drawing } = map;
    const scale = this.values.most > 0 ? 1 / this.values.most : 0;
    const spacingPx = drawing.spacing * view.scale;
    const radius = Math.min(Math.max(0.2 * spacingPx, 1.6), 15);
    const room = drawing.spacing;
    const isSeen = (x: number, y: number) =>
      x > seen.lowX - room && x < seen.highX + room && y > seen.lowY - room && y < seen.highY + room;
    const data = this.painter.shapes.room(map.switches + (withEndpoints ? map.endpoints : 0));
    const known = this.ofThings();
    let count = 0;
    const put = (x: number, y: number, half: number, value: number, kind: number) => {
      putShape(data, count * SHAPE, x, y, half, half, Math.min(value * scale, 1), kind);
      count += 1;
    };
    const half = Math.min(Math.max(0.34 * map.endpointSpacing * view.scale, 1), 7);
    if (withEndpoints) {
      for (let number = 0; number < map.endpoints; number += 1) {
        const [x, y] = [drawing.endpoint_x[number], drawing.endpoint_y[number]];
        if (isSeen(x, y)) put(x, y, half, known.endpoint[number], 0);
      }
    }
    const ofEndpoints = count;
    for (let number = 0; number < map.switches; number += 1) {
      const [x, y] = [drawing.switch_x[number], drawing.switch_y[number]];
      if (isSeen(x, y)) put(x, y, radius, known.switch[number], 1);
    }
    const area = ofEndpoints * (2 * half + 2) ** 2 + (count - ofEndpoints) * (2 * radius + 2) ** 2;
    return this.thinShapes(data, 0, count, area);
  }

  /** Of too many shapes from `first` on keeps one in so many, evenly. How many are left, with those before. */
  private thinShapes(data: Float32Array, first: number, count: number, area: number): number {
    const most = this.effort.most(count, area);
    this.shapesLeftOut = 0;
    if (most >= count) return first + count;
    const stride = Math.ceil(count / Math.max(most, 1));
    let kept = first;
    for (let number = 0; number < count; number += stride) {
      const from = (first + number) * SHAPE;
      data.copyWithin(kept * SHAPE, from, from + SHAPE);
      kept += 1;
    }
    this.shapesLeftOut = first + count - kept;
    return kept;
  }

  private fillParts(): number {
    const { map, view } = this;
    const data = this.painter.shapes.room(map.boxes.length + map.switches);
    const scale = this.values.most > 0 ? 1 / this.values.most : 0;
    const isCircle = map.drawing.outline === "circle";
    const known = this.ofThings();
    map.boxes.forEach((box, number) => {
      let [halfX, halfY] = [box.halfWidth * view.scale, box.halfHeight * view.down];
      if (isCircle) halfX = halfY = Math.max(halfX, halfY);
      const value = Math.min(known.part[number] * scale, 1);
      const kind = isCircle ? 3 : 2;
      putShape(data, number * SHAPE, box.x, box.y, Math.max(halfX, 3), Math.max(halfY, 3), value, kind);
    });
    // Switches are dots, so that a hot one is seen from afar.
    const half = Math.min(Math.max(0.4 * map.drawing.spacing * view.scale, 0.9), 3);
    for (let number = 0; number < map.switches; number += 1) {
      const value = Math.min(known.switch[number] * scale, 1);
      const [x, y] = [map.drawing.switch_x[number], map.drawing.switch_y[number]];
      putShape(data, (map.boxes.length + number) * SHAPE, x, y, half, half, value, 1);
    }
    return this.thinShapes(data, map.boxes.length, map.switches, map.switches * (2 * half + 2) ** 2);
  }

  /** Names, what is chosen, and the path. */
  private drawOverlay(seen: Seen): void {
    const context = this.overlay.getContext("2d");
    if (!context) return;
    const { map, view } = this;
    const spacingPx = map.drawing.spacing * view.scale;
    const hasText =
      this.drawn.mode === "parts" || spacingPx > NAMES_FROM_PX || map.endpointSpacing * view.scale > 46;
    const isEmpty = !hasText && this.path.length === 0 && this.chosen.length === 0;
    // A canvas that is touched is drawn anew, with all its pixels.
    if (isEmpty && this.isOverlayClear) return;
    this.isOverlayClear = isEmpty;
    const ratio = this.overlay.width / this.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    if (isEmpty) return;
    const [text, paper, accent] = ["--text", "--paper", "--accent"].map(styled);
    const label = (words: string, x: number, y: number, size: number) => {
      context.font = `${size}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.lineWidth = 3;
      context.strokeStyle = paper;
      context.strokeText(words, x, y);
      context.fillStyle = text;
      context.fillText(words, x, y);
    };
    const isSeen = (x: number, y: number) =>
      x > seen.lowX && x < seen.highX && y > seen.lowY && y < seen.highY;
    if (this.path.length > 0) this.drawPath(context, accent);
    if (this.drawn.mode === "parts") {
      map.boxes.forEach((box, number) => {
        const room =
          2 * Math.max(box.halfWidth, map.drawing.outline === "circle" ? box.halfHeight : 0) * view.scale;
        const name = map.partName(number);
        const short = room > name.length * 7 ? name : name.replace(/^\D+/, "");
        if (room < Math.max(short.length, 1) * 7 || !isSeen(box.x, box.y)) return;
        label(short, ...this.toScreen(box.x, box.y), 12);
      });
    } else {
      if (spacingPx > NAMES_FROM_PX) {
        for (let number = 0; number < map.switches; number += 1) {
          const [x, y] = [map.drawing.switch_x[number], map.drawing.switch_y[number]];
          if (!isSeen(x, y)) continue;
          const [left, top] = this.toScreen(x, y);
          label(map.switchName(number), left, top - Math.min(0.2 * spacingPx, 15) - 9, 11);
        }
      }
      if (map.endpointSpacing * view.scale > 46) {
        for (let number = 0; number < map.endpoints; number += 1) {
          const [x, y] = [map.drawing.endpoint_x[number], map.drawing.endpoint_y[number]];
          if (!isSeen(x, y)) continue;
          const [left, top] = this.toScreen(x, y);
          label(map.drawing.endpoint_names[number] ?? String(number), left, top + 15, 10);
        }
      }
    }
    for (const thing of this.chosen) this.mark(context, accent, thing);
  }

  private drawPath(context: CanvasRenderingContext2D, accent: string): void {
    context.strokeStyle = accent;
    context.lineWidth = 3;
    context.setLineDash([7, 4]);
    context.beginPath();
    this.path.forEach((link, number) => {
      const [from, to] = [this.map.linkEnd(link), this.map.linkEnd(this.map.reverse[link])];
      if (number === 0) context.moveTo(...this.toScreen(from.x, from.y));
      context.lineTo(...this.toScreen(to.x, to.y));
    });
    context.stroke();
    context.setLineDash([]);
  }

  private mark(context: CanvasRenderingContext2D, accent: string, thing: Thing): void {
    context.strokeStyle = accent;
    context.lineWidth = 2.5;
    if (thing.kind === "link") {
      const [from, to] = [this.map.linkEnd(thing.number), this.map.linkEnd(this.map.reverse[thing.number])];
      context.beginPath();
      context.moveTo(...this.toScreen(from.x, from.y));
      context.lineTo(...this.toScreen(to.x, to.y));
      context.strokeStyle = styled("--paper");
      context.lineWidth = 7;
      context.stroke();
      context.strokeStyle = accent;
      context.lineWidth = 4;
      context.stroke();
      return;
    }
    const place = this.map.place(thing);
    const [x, y] = this.toScreen(place.x, place.y);
    const spacingPx = this.map.drawing.spacing * this.view.scale;
    const radius = thing.kind === "switch" ? Math.min(Math.max(0.2 * spacingPx, 2), 15) + 5 : 9;
    context.beginPath();
    if (thing.kind === "part") {
      const box = this.map.boxes[thing.number];
      const [w, h] = [box.halfWidth * this.view.scale + 3, box.halfHeight * this.view.down + 3];
      if (this.map.drawing.outline === "circle") context.arc(x, y, Math.max(w, h) + 2, 0, 2 * Math.PI);
      else context.rect(x - w, y - h, 2 * w, 2 * h);
    } else {
      context.arc(x, y, radius, 0, 2 * Math.PI);
    }
    context.stroke();
  }

  /** The thing at a point of the canvas. */
  hit(x: number, y: number): Thing | null {
    const { map, view, drawn } = this;
    const [worldX, worldY] = [
      (x - this.width / 2) / view.scale + view.x,
      (y - this.height / 2) / view.down + view.y,
    ];
    if (drawn.mode === "parts") return this.hitPart(worldX, worldY);
    const spacingPx = map.drawing.spacing * view.scale;
    const nearest = (
      kind: "switch" | "endpoint",
      xs: number[],
      ys: number[],
      radius: number,
    ): Thing | null => {
      let [best, least] = [-1, radius / view.scale];
      for (let number = 0; number < xs.length; number += 1) {
        const distance = Math.hypot(xs[number] - worldX, ((ys[number] - worldY) * view.down) / view.scale);
        if (distance < least) [best, least] = [number, distance];
      }
      return best < 0 ? null : { kind, number: best };
    };
    const { endpoint_x, endpoint_y, switch_x, switch_y } = map.drawing;
    if (drawn.mode === "endpoints") {
      const radius = Math.min(Math.max(0.4 * map.endpointSpacing * view.scale, 2), 8) + 1;
      const endpoint = nearest("endpoint", endpoint_x, endpoint_y, radius);
      if (endpoint) return endpoint;
    }
    const found = nearest("switch", switch_x, switch_y, Math.min(Math.max(0.2 * spacingPx, 2), 15) + 2);
    return found ?? this.hitLine(x, y);
  }

  private hitPart(x: number, y: number): Thing | null {
    const number = this.map.boxes.findIndex(
      (box) => Math.abs(box.x - x) <= box.halfWidth && Math.abs(box.y - y) <= box.halfHeight,
    );
    return number < 0 ? null : { kind: "part", number };
  }

  private hitLine(x: number, y: number): Thing | null {
    let [best, least] = [-1, 5];
    for (let number = 0; number < this.drawn.lineCount; number += 1) {
      const at = number * LINE;
      const { lines } = this.drawn;
      const [ax, ay] = this.toScreen(lines[at], lines[at + 1]);
      const [bx, by] = this.toScreen(lines[at + 2], lines[at + 3]);
      const [dx, dy] = [bx - ax, by - ay];
      const length = Math.hypot(dx, dy) || 1;
      const shift = lines[at + 6];
      const [px, py] = [x - ax + (dy / length) * shift, y - ay - (dx / length) * shift];
      const along = Math.min(Math.max((px * dx + py * dy) / (length * length), 0), 1);
      const distance = Math.hypot(px - along * dx, py - along * dy);
      if (distance < least) [best, least] = [number, distance];
    }
    return best < 0 ? null : { kind: "link", number: this.drawn.lineThings[best] };
  }

  private listen(): void {
    const { overlay } = this;
    let from: { x: number; y: number; moved: boolean } | null = null;
    const local = (event: MouseEvent): [number, number] => {
      const box = overlay.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    overlay.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY, moved: false };
      overlay.setPointerCapture(event.pointerId);
    });
    overlay.addEventListener("pointermove", (event) => {
      if (!from) {
        const thing = this.hit(...local(event));
        overlay.style.cursor = thing ? "pointer" : "grab";
        this.onHover(thing);
        return;
      }
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      from = { x: event.clientX, y: event.clientY, moved: true };
      this.pan(dx, dy);
    });
    overlay.addEventListener("pointerup", (event) => {
      const wasClick = from && !from.moved;
      from = null;
      if (!wasClick) return;
      const thing = this.hit(...local(event));
      this.onChoose(thing, event.shiftKey);
    });
    overlay.addEventListener("pointerleave", () => this.onHover(null));
    overlay.addEventListener("dblclick", (event) => this.zoom(2.5, ...local(event)));
    overlay.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * 0.0016), ...local(event));
      },
      { passive: false },
    );
  }
}

/** The step of values that a value from 0 to 1 is in. */
function stepOf(look: number): number {
  return Math.min(Math.floor(look * STEPS), STEPS - 1);
}

/** Writes a shape: its middle, half its width and height in pixels, its value, its kind. */
function putShape(
  data: Float32Array,
  at: number,
  ...of: [number, number, number, number, number, number]
): void {
  for (let part = 0; part < SHAPE; part += 1) data[at + part] = of[part];
}

/** Values of things of several links. */
interface Gathered {
  values: Values;
  gathering: Gathering;
  endpoint: Float32Array;
  switch: Float32Array;
  part: Float32Array;
  bundle: Float32Array;
}

interface Seen {
  lowX: number;
  highX: number;
  lowY: number;
  highY: number;
}
