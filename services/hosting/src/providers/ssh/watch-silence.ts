/** Aborts after a silence. */
export interface SilenceWatch {
  signal: AbortSignal;
  /** Something moved. */
  heard(): void;
  end(): void;
}

/** `reason`: the error that the aborted call rejects with. */
export function watchSilence(silenceMs: number, reason: () => Error): SilenceWatch {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(reason()), silenceMs);
  return { signal: controller.signal, heard: () => void timer.refresh(), end: () => clearTimeout(timer) };
}
