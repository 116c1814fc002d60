/** What is shown: results, the run, and the theme; and who wants to know of changes. */

import type { ResultInfo } from "./api";

export class State {
  run = 0;
  /** Whether the run goes on: the newest interval is shown as it comes. */
  isLive = false;
  private readonly listeners: (() => void)[] = [];

  constructor(public results: ResultInfo[]) {}

  /** The run of a result that is shown: one that it has. */
  runOf(result: number): number {
    const { runs } = this.results[result];
    return runs.some((run) => run.run === this.run) ? this.run : (runs[0]?.run ?? 0);
  }

  /** Calls `listener` when the run or the theme changes. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }
}
