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

/** The number that a cell sorts by: its own, or that of its text. */
function sortedBy(cell: HTMLTableCellElement | undefined): number | string {
  const text = cell?.dataset.sort ?? cell?.textContent ?? "";
  const number = Number.parseFloat(text.replaceAll(/[\s,]/g, ""));
  return Number.isNaN(number) ? text : number;
}

/** Sorts a table by a column when its heading is chosen, the largest first, and then the other way round. */
export function sortable(table: HTMLTableElement): HTMLTableElement {
  const [head] = table.rows;
  [...(head?.cells ?? [])].forEach((heading, column) => {
    const button = h(
      "button",
      { class: "sort", title: "sort" },
      ...[...heading.childNodes].map((node) => node as Node),
    );
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const isDown = heading.getAttribute("aria-sort") !== "descending";
      for (const other of head.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const rows = [...table.rows].slice(1);
      const order = (one: HTMLTableRowElement, other: HTMLTableRowElement) => {
        const [a, b] = [sortedBy(one.cells[column]), sortedBy(other.cells[column])];
        if (typeof a === "number" && typeof b === "number") return a - b;
        return String(a).localeCompare(String(b), "en", { numeric: true });
      };
      rows.sort((one, other) => (isDown ? -order(one, other) : order(one, other)));
      rows.forEach((line) => {
        line.parentElement?.append(line);
      });
    });
  });
  return table;
}

/** The value of a colour or length of the style sheet. */
export function styled(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
