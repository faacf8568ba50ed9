/** Measures the parts of a process in whole milliseconds: the log of a cutover shows which of them was slow. */
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
