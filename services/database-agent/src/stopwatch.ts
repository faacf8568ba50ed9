/** How long each part of something took, in whole milliseconds: the log of a cutover names what made it long. */
export class Stopwatch {
  readonly laps: Record<string, number> = {};
  private readonly startedMs = performance.now();
  private lastMs = this.startedMs;

  /** Ends a part; the next one begins. */
  lap(part: string): void {
    const nowMs = performance.now();
    this.laps[part] = Math.round(nowMs - this.lastMs);
    this.lastMs = nowMs;
  }

  get totalMs(): number {
    return performance.now() - this.startedMs;
  }
}
