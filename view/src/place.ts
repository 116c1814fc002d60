/** What is shown, in the address behind the `#`: a link restores it. */

export type Place = Record<string, string>;

/** The parts of the address. */
export function place(): Place {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Writes parts into the address, and keeps the others; an empty one goes. */
export function keep(parts: Place): void {
  const all = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(parts)) {
    if (value) all.set(name, value);
    else all.delete(name);
  }
  // In place: the button that goes back leaves the page.
  history.replaceState(null, "", `#${all}`);
}
