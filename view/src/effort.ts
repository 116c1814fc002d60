/** How much of a machine a frame has: as much as the computer draws in time while the view moves, else all. */

/** Milliseconds between frames above which the next has less in it, and below which it has more. */
const SLOW_FRAME = 32;
const FAST_FRAME = 20;
/** Milliseconds without a change after which all is drawn. */
export const REST = 250;
/** Pixels that a frame fills while the view moves, at first, at least and at most. */
const FIRST = 600_000;
const LEAST = 40_000;
const MOST = 6_000_000;
/** Pixels whose filling takes as long as an instance does besides, where the processor draws. */
const INSTANCE = 250;
/** Pixels of the canvas for one of the screen, each way, where the computer is slow and the view moves. */
const COARSE = 0.5;
/** Fast frames with all in them after which it is tried with all pixels again. */
const TRY_AGAIN = 120;

export class Effort {
  private pixels = FIRST;
  private lastAt = Number.NEGATIVE_INFINITY;
  private isResting = true;
  private isCoarse = false;
  /** Whether the last frame left something out. */
  private isLimited = false;
  private fastFrames = 0;

  /** A frame of a view that moves is due at `now`. */
  frame(now: number): void {
    const passed = now - this.lastAt;
    this.lastAt = now;
    const goesOn = passed < REST;
    this.isResting = false;
    const wasLimited = this.isLimited;
    this.isLimited = false;
    if (!goesOn) return;
    if (passed > SLOW_FRAME) {
      // Fewer pixels of the canvas first: what is left out is seen more.
      if (this.isCoarse) this.pixels = Math.max(this.pixels * 0.6, LEAST);
      this.isCoarse = true;
      this.fastFrames = 0;
    } else if (passed < FAST_FRAME && wasLimited) {
      this.pixels = Math.min(this.pixels * 1.1, MOST);
    } else if (passed < FAST_FRAME && this.isCoarse) {
      this.fastFrames += 1;
      if (this.fastFrames > TRY_AGAIN) [this.isCoarse, this.fastFrames] = [false, 0];
    }
  }

  /** The view rests: the next frame has all. */
  rest(): void {
    this.isResting = true;
  }

  /** Pixels of the canvas for one of the style sheet, each way, of those that the screen has. */
  get sharpness(): number {
    return this.isCoarse && !this.isResting ? COARSE : 1;
  }

  /** Of `count` instances that fill `area` pixels together: how many a frame may have of lines, or of shapes. */
  most(count: number, area: number): number {
    if (this.isResting) return count;
    const cost = count * INSTANCE + area * this.sharpness ** 2;
    if (cost * 2 <= this.pixels) return count;
    this.isLimited = true;
    return Math.floor((count * this.pixels) / (2 * cost));
  }
}
