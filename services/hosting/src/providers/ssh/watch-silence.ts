/** Aborts when nothing was heard for so long. */
export interface SilenceWatch {
  signal: AbortSignal;
  /** Something moved. */
  heard(): void;
  end(): void;
}

/** `reason`: what a call is then rejected with. */
export function watchSilence(silenceMs: number, reason: () => Error): SilenceWatch {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(reason()), silenceMs);
  return { signal: controller.signal, heard: () => void timer.refresh(), end: () => clearTimeout(timer) };
}
