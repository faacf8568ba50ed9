const faultModes = ['kill', 'stop', 'throw', 'delay', 'repeat'] as const;
/**
 * kill: SIGKILL to itself. stop: SIGSTOP. throw: {@link InjectedFault}. delay: the event loop is blocked for 3 s.
 * repeat: the caller runs its work twice.
 */
export type FaultMode = (typeof faultModes)[number];

export interface FaultToken {
  point: string;
  mode: FaultMode;
  /** Tells several tokens of one point and mode apart; the lowest is taken first. */
  number?: number;
}

const isMode = (text: string | undefined): text is FaultMode => faultModes.some((mode) => mode === text);

/** The file name of a token: `<point>@<mode>` or `<point>@<mode>@<number>`. */
export const faultTokenName = ({ point, mode, number }: FaultToken): string =>
  [point, mode, ...(number === undefined ? [] : [number])].join('@');

/** Undefined for a file that is no token. */
export function parseFaultToken(fileName: string): FaultToken | undefined {
  const [point, mode, number] = fileName.split('@');
  if (point === undefined || point === '' || !isMode(mode)) return undefined;
  return { point, mode, ...(number === undefined ? {} : { number: Number(number) }) };
}
