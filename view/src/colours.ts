/** Colours of values: grey where nothing happens, then from light to dark (or dark to light) heat. */

type Colour = [number, number, number];

const LIGHT = ["#c3cad5", "#fed976", "#fd8d3c", "#e31a1c", "#800026"];
const DARK = ["#434e60", "#6a3d9a", "#d6456b", "#fb9f3a", "#fcfdbf"];

/** Colours of series: Okabe and Ito 2008, for all eyes; the grey is that of "all others". */
export const SERIES_LIGHT = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#8a6d00",
  "#56b4e9",
  "#6b7280",
  "#7b3fa0",
];
export const SERIES_DARK = [
  "#4db2ff",
  "#ff9442",
  "#2fd3a5",
  "#f2a3cb",
  "#e6c84b",
  "#9ad9ff",
  "#9aa3b2",
  "#c79bea",
];

const STEPS = 256;

function parsed(hex: string): Colour {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as Colour;
}

/** The colours of values from 0 to 1. */
export class Ramp {
  readonly bytes = new Uint8Array(STEPS * 4);

  constructor(isDark: boolean) {
    const stops = (isDark ? DARK : LIGHT).map(parsed);
    for (let step = 0; step < STEPS; step += 1) {
      const place = (step / (STEPS - 1)) * (stops.length - 1);
      const low = Math.min(Math.floor(place), stops.length - 2);
      for (let part = 0; part < 3; part += 1) {
        const [from, to] = [stops[low][part], stops[low + 1][part]];
        this.bytes[4 * step + part] = Math.round(from + (to - from) * (place - low));
      }
      this.bytes[4 * step + 3] = 255;
    }
  }

  /** The colour of a value, for style sheets and canvases. */
  css(value: number): string {
    const step = Math.round(Math.min(Math.max(value, 0), 1) * (STEPS - 1));
    return `rgb(${this.bytes[4 * step]} ${this.bytes[4 * step + 1]} ${this.bytes[4 * step + 2]})`;
  }
}

/** Whether the page is dark: as chosen, else as the system has it. */
export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The colour of a series by its number. */
export function seriesColour(number: number): string {
  const colours = isDark() ? SERIES_DARK : SERIES_LIGHT;
  return colours[number % colours.length];
}
