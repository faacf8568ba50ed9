/** A session with a place on the serving server. It keeps the place until its backend has ended. */
export interface Occupant {
  /** The address that its client comes from. */
  readonly origin: string;
  /**
   * The port of this machine from which the session reaches the server. The server lists the session with this port.
   * Undefined until the connection is made.
   */
  readonly port: number | undefined;
  /** Begins to end the session. */
  end: () => void;
}

interface Waiter {
  origin: string;
  enter: () => void;
}

export interface SessionPlacesOptions {
  /** The number of places. Beyond it a client is let through only if all sessions have logged in. */
  places: () => number;
  /**
   * Milliseconds that a session gets to log in before it may lose its place. A session gets less if its address has at
   * least two more sessions that have not logged in than the address of the waiting client.
   */
  graceMs: number;
  /** The ports of the sessions that have logged in. */
  readKnownPorts: () => Promise<ReadonlySet<number>>;
}

/** The pause before the server is asked again which sessions have logged in, in milliseconds. */
const againMs = 100;

/**
 * Shares the places of a server whose sessions the agent cannot read. When all places are taken, the agent asks the
 * server which sessions have logged in. The client address with the most sessions that have not logged in then loses
 * the oldest of these. So only logged-in sessions can keep others out. If all sessions have logged in, one more client
 * at a time is let through, and the server itself refuses it.
 */
export class SessionPlaces {
  private readonly options: SessionPlacesOptions;
  /** The sessions with the times of their arrival on the monotonic clock, the oldest first. */
  private readonly here = new Map<Occupant, number>();
  private readonly leaving = new Set<Occupant>();
  /** The waiting clients, in the order of their arrival. */
  private readonly waiting = new Map<object, Waiter>();
  /** The ports of the sessions that had logged in when the server was last asked. */
  private known: ReadonlySet<number> = new Set();
  private isLooking = false;
  private later: NodeJS.Timeout | undefined;

  constructor(options: SessionPlacesOptions) {
    this.options = options;
  }

  /** Waits for a place and then calls `enter`. If the client takes the place, `enter` must call `add` at once. */
  wait(client: object, waiter: Waiter): void {
    this.waiting.set(client, waiter);
    this.goOn();
  }

  /** Removes a client that has gone. Does nothing if it was not waiting. */
  forget(client: object): void {
    this.waiting.delete(client);
  }

  /** Takes a place. The returned function gives it back, and must be called once the backend has ended. */
  add(occupant: Occupant): () => void {
    this.here.set(occupant, performance.now());
    return () => {
      this.here.delete(occupant);
      this.leaving.delete(occupant);
      this.goOn();
    };
  }

  private get free(): number {
    return Math.max(0, this.options.places() - this.here.size);
  }

  private goOn(): void {
    while (this.waiting.size > 0 && this.free > 0) this.letIn();
    if (this.waiting.size > 0 && !this.isLooking && this.later === undefined) void this.look();
  }

  private letIn(): void {
    const [next] = this.queue();
    if (next === undefined) return;
    const [client, waiter] = next;
    this.waiting.delete(client);
    waiter.enter();
  }

  private async look(): Promise<void> {
    this.isLooking = true;
    const asked = [...this.here.keys()];
    const known = await this.options.readKnownPorts().catch(() => null);
    this.isLooking = false;
    // If the server does not answer, all sessions are kept. The server itself ends sessions that log in too slowly.
    if (known !== null) {
      this.known = known;
      this.makeRoom(new Set(asked));
    }
    this.later = setTimeout(() => {
      this.later = undefined;
      this.goOn();
    }, againMs);
  }

  /**
   * Ends one session for each waiting client that would get no place otherwise; see {@link victimOf}. If all sessions
   * have logged in, one client is let through instead. A session that arrived after the server was asked is kept,
   * because it may have logged in since.
   */
  private makeRoom(asked: ReadonlySet<Occupant>): void {
    const strangers = [...this.here.keys()].filter((occupant) => this.isStranger(occupant));
    if (strangers.length === 0) {
      this.letIn();
      return;
    }
    for (const [, waiter] of this.queue().slice(this.free + this.leaving.size)) {
      const remaining = strangers.filter((stranger) => !this.leaving.has(stranger));
      const victim = this.victimOf(remaining, waiter);
      if (victim === undefined || !asked.has(victim)) return;
      this.leaving.add(victim);
      victim.end();
    }
  }

  /**
   * Returns the session to end: the oldest that has not logged in, from the address with the most such sessions. If
   * that address has at most one more of them than the waiting client's address, the session first gets `graceMs` to
   * log in. Undefined if no session is to be ended yet.
   */
  private victimOf(strangers: readonly Occupant[], waiter: Waiter): Occupant | undefined {
    const counts = countOrigins(strangers);
    const most = Math.max(...counts.values());
    const victim = strangers.find(({ origin }) => counts.get(origin) === most);
    if (victim === undefined || most > (counts.get(waiter.origin) ?? 0) + 1) return victim;
    const hereForMs = performance.now() - (this.here.get(victim) ?? 0);
    return hereForMs >= this.options.graceMs ? victim : undefined;
  }

  /**
   * The waiting clients in the order in which they get a place. Clients of the address with the fewest sessions that
   * have not logged in come first.
   */
  private queue(): [client: object, waiter: Waiter][] {
    const counts = countOrigins([...this.here.keys()].filter((occupant) => this.isStranger(occupant)));
    return [...this.waiting].sort(
      ([, one], [, other]) => (counts.get(one.origin) ?? 0) - (counts.get(other.origin) ?? 0),
    );
  }

  private isStranger({ port }: Occupant): boolean {
    return port === undefined || !this.known.has(port);
  }
}

function countOrigins(occupants: readonly Occupant[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { origin } of occupants) counts.set(origin, (counts.get(origin) ?? 0) + 1);
  return counts;
}
