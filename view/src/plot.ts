/** Pictures as the server computes them, drawn by uPlot: the same that `weft plot` draws. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Axis, Panel, Picture, Series } from "./api";
import { isDark, Ramp, seriesColour } from "./colours";
import { h, styled } from "./dom";
import { short } from "./format";

/** The room of the axes in pixels. */
const LEFT = 74;
/** Names of an axis that are written, at most. */
const MOST_NAMES = 24;

function axisText(axis: Axis): string {
  return axis.unit ? `${axis.label} (${axis.unit})` : axis.label;
}

/** The options of an axis. */
function axisOf(axis: Axis, isVertical: boolean): uPlot.Axis {
  const colour = styled("--text");
  const grid = styled("--grid");
  const options: uPlot.Axis = {
    label: axisText(axis),
    stroke: colour,
    font: "11px system-ui, sans-serif",
    labelFont: "11px system-ui, sans-serif",
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1 },
    size: isVertical ? LEFT : 42,
    values: (_plot, splits) =>
      splits.map((value) => (value === null || value === undefined ? "" : short(value))),
  };
  if (axis.names.length > 0) {
    const step = Math.ceil(axis.names.length / MOST_NAMES);
    options.splits = () => axis.names.map((_name, number) => number + 0.5).filter((_at, n) => n % step === 0);
    options.values = (_plot, splits) => splits.map((at) => axis.names[Math.floor(at)] ?? "");
    options.grid = { show: false };
    if (isVertical)
      options.size = Math.min(40 + 6.2 * Math.max(...axis.names.map((name) => name.length)), 190);
  }
  if (axis.log) {
    options.filter = (_plot, splits) => splits;
    // Labels of powers and, where there are few, of twos and fives.
    options.values = (_plot, splits) => splits.map((value) => (value && isMark(value) ? short(value) : ""));
  }
  return options;
}

function isMark(value: number): boolean {
  const first = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
  return [1, 2, 5].some((mark) => Math.abs(first - mark) < 1e-6);
}

/** The mark at or below a value: marks of a logarithmic axis begin at its lower end. */
function markBelow(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  return power * ([5, 2, 1].find((mark) => mark * power <= value * (1 + 1e-9)) ?? 1);
}

function range(values: number[], axis: Axis): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (!Number.isFinite(value) || (axis.log && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return axis.log ? [1, 10] : [0, 1];
  if (axis.log) return [markBelow(low), Math.max(high * 1.1, low * 2)];
  if (axis.from_zero) low = Math.min(low, 0);
  const room = (high - low || 1) * 0.04;
  return [axis.from_zero && low === 0 ? 0 : low - room, high + room];
}

function scaleOf(axis: Axis, values: number[]): uPlot.Scale {
  const [low, high] = range(values, axis);
  return {
    time: false,
    distr: axis.log ? 3 : 1,
    range: (_plot, min, max) => {
      if (min === null) return [low, high];
      return [axis.log ? markBelow(min) : min, max];
    },
    min: low,
    max: high,
  };
}

/** A plot with its size kept to that of its element. */
function plotted(
  options: Omit<uPlot.Options, "width" | "height">,
  data: uPlot.AlignedData,
  height: number,
): HTMLElement {
  const element = h("div", { class: "plot" });
  let plot: uPlot | null = null;
  const observer = new ResizeObserver(() => {
    const width = element.clientWidth;
    if (width < 20) return;
    if (plot) {
      if (plot.width !== width) plot.setSize({ width, height });
      return;
    }
    plot = new uPlot({ ...options, width, height }, data, element);
  });
  observer.observe(element);
  return element;
}

function lineSeries(series: Series): uPlot.Series {
  return {
    label: series.label,
    stroke: seriesColour(series.colour),
    width: 1.8,
    dash: series.dashed ? [6, 4] : undefined,
    points: { show: series.marks, size: 6, fill: seriesColour(series.colour) },
    spanGaps: true,
    value: (_plot, value) => (value === null || value === undefined ? "–" : short(value)),
  };
}

/** Series on one list of x. */
function joined(all: Series[]): uPlot.AlignedData {
  const tables = all.map((series): uPlot.AlignedData => {
    // Steps of a distribution have points of equal x, of which the last counts.
    const points = new Map(series.points);
    const xs = [...points.keys()].sort((a, b) => a - b);
    return [xs, xs.map((x) => points.get(x)!)];
  });
  return uPlot.join(tables);
}

function lines(panel: Panel, all: Series[], height: number): HTMLElement {
  const data = joined(all);
  const whiskers = (plot: uPlot) => {
    all.forEach((series) => {
      plot.ctx.strokeStyle = seriesColour(series.colour);
      plot.ctx.lineWidth = devicePixelRatio;
      series.interval.forEach(([low, high], number) => {
        const x = plot.valToPos(series.points[number][0], "x", true);
        plot.ctx.beginPath();
        plot.ctx.moveTo(x, plot.valToPos(low, "y", true));
        plot.ctx.lineTo(x, plot.valToPos(high, "y", true));
        plot.ctx.stroke();
      });
    });
  };
  const values = all.flatMap((series) => series.points.map((point) => point[1]));
  return plotted(
    {
      scales: { x: scaleOf(panel.x, data[0] as number[]), y: scaleOf(panel.y, values) },
      axes: [axisOf(panel.x, false), axisOf(panel.y, true)],
      series: [
        { label: axisText(panel.x), value: (_plot, value) => short(value ?? 0) },
        ...all.map(lineSeries),
      ],
      cursor: { drag: { x: true, y: false } },
      hooks: { draw: [whiskers] },
    },
    data,
    height,
  );
}

function stacked(panel: Panel, all: Series[], height: number): HTMLElement {
  const xs = all[0]?.points.map((point) => point[0]) ?? [];
  const sums: number[][] = [];
  for (const series of all) {
    const below = sums.at(-1) ?? xs.map(() => 0);
    sums.push(series.points.map((point, number) => point[1] + (below[number] ?? 0)));
  }
  // The highest first, so that each covers what lies above it.
  const order = all.map((_series, number) => number).reverse();
  const own = order.map((number) => all[number].points.map((point) => point[1]));
  return plotted(
    {
      scales: { x: scaleOf(panel.x, xs), y: scaleOf(panel.y, sums.flat()) },
      axes: [axisOf(panel.x, false), axisOf(panel.y, true)],
      series: [
        { label: axisText(panel.x), value: (_plot, value) => short(value ?? 0) },
        ...order.map(
          (number, place): uPlot.Series => ({
            label: all[number].label,
            stroke: seriesColour(all[number].colour),
            fill: seriesColour(all[number].colour),
            width: 0.5,
            points: { show: false },
            value: (_plot, _value, _series, index) => (index === null ? "–" : short(own[place][index] ?? 0)),
          }),
        ),
      ],
      cursor: { drag: { x: true, y: false } },
    },
    [xs, ...order.map((number) => sums[number])] as uPlot.AlignedData,
    height,
  );
}

/** An empty plot on which a hook draws. */
function drawnOn(
  panel: Panel,
  [xs, ys]: [number[], number[]],
  draw: (plot: uPlot) => void,
  height: number,
): HTMLElement {
  const [x, y] = [
    range(xs, panel.x),
    panel.y.names.length > 0 ? [0, panel.y.names.length] : range(ys, panel.y),
  ];
  const clip = (plot: uPlot) => {
    const { left, top, width, height: high } = plot.bbox;
    plot.ctx.save();
    plot.ctx.beginPath();
    plot.ctx.rect(left, top, width, high);
    plot.ctx.clip();
    draw(plot);
    plot.ctx.restore();
  };
  return plotted(
    {
      scales: {
        x: {
          time: false,
          range: (_plot, min, max) => (min === null || min === max ? (x as [number, number]) : [min, max]),
        },
        y: { range: () => y as [number, number] },
      },
      axes: [axisOf(panel.x, false), axisOf(panel.y, true)],
      series: [{}, { show: true, points: { show: false }, paths: () => null }],
      legend: { show: false },
      cursor: { drag: { x: true, y: false } },
      hooks: { draw: [clip] },
    },
    [x, [null, null]] as unknown as uPlot.AlignedData,
    height,
  );
}

function segments(panel: Panel, all: { label: string; segments: number[][] }[], height: number): HTMLElement {
  const flat = all.flatMap((series) => series.segments);
  const draw = (plot: uPlot) => {
    all.forEach((series, number) => {
      plot.ctx.strokeStyle = seriesColour(number);
      plot.ctx.globalAlpha = Math.min(Math.max(150 / Math.max(series.segments.length, 1), 0.25), 0.9);
      plot.ctx.lineWidth = devicePixelRatio;
      plot.ctx.beginPath();
      for (const [ax, ay, bx, by] of series.segments) {
        plot.ctx.moveTo(plot.valToPos(ax, "x", true), plot.valToPos(ay + 0.5, "y", true));
        plot.ctx.lineTo(plot.valToPos(bx, "x", true), plot.valToPos(by + 0.5, "y", true));
      }
      plot.ctx.stroke();
      plot.ctx.globalAlpha = 1;
    });
  };
  const xs = flat.flatMap((segment) => [segment[0], segment[2]]);
  const ys = flat.flatMap((segment) => [segment[1], segment[3]]);
  const legend = h("p", { class: "legend" });
  all.forEach((series, number) => {
    const key = h("span", { class: "key" });
    key.style.background = seriesColour(number);
    legend.append(key, `${series.label} (${series.segments.length})  `);
  });
  return h("div", {}, drawnOn(panel, [xs, ys], draw, height), legend);
}

function cells(
  panel: Panel,
  of: { edges: number[]; values: number[][]; label: string; unit: string },
  height: number,
): HTMLElement {
  const ramp = new Ramp(isDark());
  const most = of.values.reduce((so, row) => row.reduce((a, b) => Math.max(a, b), so), 0);
  const draw = (plot: uPlot) => {
    of.values.forEach((values, row) => {
      const [bottom, top] = [plot.valToPos(row, "y", true), plot.valToPos(row + 1, "y", true)];
      values.forEach((value, column) => {
        const left = Math.round(plot.valToPos(of.edges[column], "x", true));
        const right = Math.round(plot.valToPos(of.edges[column + 1], "x", true));
        plot.ctx.fillStyle = value > 0 ? ramp.css(0.12 + (0.88 * value) / (most || 1)) : ramp.css(0);
        plot.ctx.globalAlpha = value > 0 ? 1 : 0.25;
        plot.ctx.fillRect(
          left,
          Math.round(top),
          Math.max(right - left, 1),
          Math.max(Math.round(bottom - top), 1),
        );
      });
    });
    plot.ctx.globalAlpha = 1;
  };
  const bar = h("span", { class: "ramp" });
  bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((at) => ramp.css(at)).join(",")})`;
  const unit = of.unit ? ` ${of.unit}` : "";
  const legend = h("p", { class: "legend" }, `${of.label}: 0 `, bar, ` ${short(most)}${unit}`);
  return h("div", {}, drawnOn(panel, [of.edges, []], draw, height), legend);
}

/** A panel of a picture. */
export function panelOf(panel: Panel, height: number): HTMLElement {
  const { content } = panel;
  if ("lines" in content) return lines(panel, content.lines, height);
  if ("stacked" in content) return stacked(panel, content.stacked, height);
  if ("segments" in content) return segments(panel, content.segments, height);
  return cells(panel, content.cells, height);
}

/** A picture with its headings. */
export function pictureOf(picture: Picture): HTMLElement {
  const height = picture.panels.length > 1 ? 340 : 470;
  return h(
    "div",
    { class: "picture", "data-kind": picture.kind },
    h("h2", {}, picture.title),
    h("p", { class: "subtitle" }, picture.subtitle),
    ...picture.panels.flatMap((panel) => [
      panel.title ? h("h3", {}, panel.title) : null,
      panelOf(panel, height),
    ]),
  );
}

/** A small plot of values over virtual time, with a mark at the time that is shown. */
export function history(
  label: string,
  unit: string,
  all: { label: string; values: number[] }[],
  [intervalPs, now]: [number, number | null],
): HTMLElement {
  const xs = all[0].values.map((_value, number) => ((number + 0.5) * intervalPs) / 1e6);
  const mark = (plot: uPlot) => {
    if (now === null) return;
    const x = plot.valToPos(((now + 0.5) * intervalPs) / 1e6, "x", true);
    plot.ctx.strokeStyle = styled("--accent");
    plot.ctx.lineWidth = 1.5 * devicePixelRatio;
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, plot.bbox.top);
    plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
    plot.ctx.stroke();
  };
  const [x, y]: [Axis, Axis] = [
    { label: "time", unit: "µs", log: false, from_zero: true, names: [] },
    { label, unit, log: false, from_zero: true, names: [] },
  ];
  const values = all.flatMap((series) => series.values);
  return plotted(
    {
      scales: { x: scaleOf(x, xs), y: scaleOf(y, values) },
      axes: [axisOf(x, false), { ...axisOf(y, true), size: 52 }],
      series: [
        { label: "time (µs)", value: (_plot, value) => short(value ?? 0) },
        ...all.map(
          (series, number): uPlot.Series => ({
            label: series.label,
            stroke: seriesColour(number),
            width: 1.4,
            points: { show: false },
            value: (_plot, value) => (value === null ? "–" : short(value)),
          }),
        ),
      ],
      cursor: { drag: { x: true, y: false } },
      hooks: { draw: [mark] },
    },
    [xs, ...all.map((series) => series.values)] as uPlot.AlignedData,
    170,
  );
}
