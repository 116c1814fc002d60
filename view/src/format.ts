/** Numbers for people. */

const PS_PER_US = 1e6;

/** A number with about three digits that count. */
export function short(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 4;
  return String(Number(value.toFixed(digits)));
}

/** A count with spaces between its thousands. */
export function count(value: number): string {
  return value.toLocaleString("en").replaceAll(",", " ");
}

/** Virtual time of picoseconds, in the unit that suits it. */
export function time(ps: number): string {
  if (ps === 0) return "0";
  const size = Math.abs(ps);
  for (const [unit, length] of [
    ["s", 1e12],
    ["ms", 1e9],
    ["µs", PS_PER_US],
    ["ns", 1e3],
  ] as const) {
    if (size >= length) return `${short(ps / length)} ${unit}`;
  }
  return `${ps} ps`;
}

/** A time of an axis in µs that ends at `end`, in the unit that suits the whole axis: ticks stay apart. */
export function tick(at: number, end: number): string {
  const [unit, size] = end >= 1e7 ? ["s", 1e6] : end >= 1e4 ? ["ms", 1e3] : ["µs", 1];
  return `${Number((at / Number(size)).toPrecision(12))} ${unit}`;
}

/** Bytes in binary units. */
export function bytes(value: number): string {
  let [size, unit] = [value, 0];
  while (size >= 1024 && unit < 4) {
    size /= 1024;
    unit += 1;
  }
  return `${short(size)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

/** A share of one. */
export function percent(share: number): string {
  return `${short(100 * share)} %`;
}

/** An energy in microjoules. */
export function energy(microjoules: number): string {
  if (microjoules >= 1e6) return `${short(microjoules / 1e6)} J`;
  return microjoules >= 1e3 ? `${short(microjoules / 1e3)} mJ` : `${short(microjoules)} µJ`;
}

/** A value of a quantity of the machine. */
export function valueText(value: number, unit: string): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "uJ") return energy(value);
  return unit === "packets" ? count(Math.round(value)) : percent(value);
}

/** The value of a column of a table, by the unit that ends its name. */
export function column(name: string, value: unknown): string {
  if (typeof value !== "number") return value === null || value === undefined ? "–" : String(value);
  if (name.endsWith("_ps")) return time(value);
  if (name.endsWith("_pj")) return energy(value / 1e6);
  if (name.endsWith("bits_per_second")) return `${short(value / 1e9)} Gb/s`;
  if (name === "bytes" || name.endsWith("_bytes")) return bytes(value);
  if (name === "utilization" || name.endsWith("_share")) return percent(value);
  return count(value);
}

/** The name of a column for people. */
export function columnName(name: string): string {
  return name.replace(/_(ps|ns|us|pj|bytes|gbps|bits_per_second)$/, "").replaceAll("_", " ");
}

/** A text with the thousands of a whole number apart. */
export function apart(text: string): string {
  return /^\d{5,}$/.test(text) ? count(Number(text)) : text;
}

/** A value of a measured row, by the unit that ends its name. */
export function measured(name: string, text: string): string {
  const value = Number(text);
  if (text === "" || Number.isNaN(value)) return text;
  if (name.endsWith("_ns")) return time(value * 1e3);
  if (name.endsWith("_us")) return time(value * PS_PER_US);
  if (name.endsWith("_gbps")) return `${short(value)} Gb/s`;
  if (name.endsWith("_bytes")) return bytes(value);
  return /^\d+$/.test(text) ? apart(text) : short(value);
}
