/** Elements of the page. Text is always text: a name of a result never becomes markup. */

type Child = Node | string | null | undefined;
type Properties = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

/** An element with attributes (`on…` are listeners) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(
    ...children.filter((child): child is Node | string => child !== null && child !== undefined),
  );
  return element;
}

/** A row of a table. */
export function row(cells: Child[], tag: "td" | "th" = "td"): HTMLTableRowElement {
  return h("tr", {}, ...cells.map((cell) => h(tag, {}, cell)));
}

/** The value of a colour or length of the style sheet. */
export function styled(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
