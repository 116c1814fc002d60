/** Pieces of a time as a bar, with a list. */

import { seriesColour } from "./colours";
import { h, row } from "./dom";
import { percent, time } from "./format";

interface Piece {
  category: string;
  what: string;
  place: string;
  time_ps: number;
  /** Host, injection, fabric or ejection; not of means over several messages. */
  leg?: string;
}

/** The time of each leg of the way, in words. */
function legs(pieces: Piece[], all: number): string {
  const sums = new Map<string, number>();
  for (const { leg, time_ps } of pieces) if (leg) sums.set(leg, (sums.get(leg) ?? 0) + time_ps);
  return [...sums].map(([leg, sum]) => `${leg} ${time(sum)} (${percent(sum / all)})`).join(", ");
}

/** A bar of pieces by category, and the list of them. */
export function share(pieces: Piece[]): HTMLElement {
  const all = pieces.reduce((so, piece) => so + piece.time_ps, 0) || 1;
  const categories = [...new Set(pieces.map((piece) => piece.category))];
  const colour = (piece: Piece) => seriesColour(categories.indexOf(piece.category));
  const bar = h("div", { class: "share" });
  for (const piece of pieces) {
    const part = h("span", { title: `${piece.what}, ${piece.place}: ${time(piece.time_ps)}` });
    part.style.width = `${(100 * piece.time_ps) / all}%`;
    part.style.background = colour(piece);
    bar.append(part);
  }
  const line = (piece: Piece) => {
    const key = h("span", { class: "key" });
    key.style.background = colour(piece);
    const told = row([key, piece.what, piece.place, time(piece.time_ps), percent(piece.time_ps / all)]);
    told.title = piece.category;
    return told;
  };
  return h(
    "div",
    { class: "pieces" },
    bar,
    h("p", { class: "subtitle" }, legs(pieces, all)),
    h("table", { class: "figures" }, row(["", "what", "where", "time", "share"], "th"), ...pieces.map(line)),
  );
}
