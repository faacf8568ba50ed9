import { CpuShares, niceOf, type WorkKind } from '@drydock/agent/host';
import type { ProcessUse } from '@drydock/process';

/* Tests decisions by CPU time with a simulated clock and simulated processes. */

const sampleMs = 500;
const cores = 2;
const [lowest, highest] = [niceOf(1), niceOf(0)];

interface Fake {
  pid: number;
  parent?: number;
  /** The number of cores that the process uses from now on. */
  takes?: number;
}

class Machine {
  private readonly processes = new Map<number, ProcessUse & { takes: number }>();
  private readonly nices = new Map<number, number>();
  private nowMs = 0;
  onRead: () => void = () => undefined;
  readonly shares = new CpuShares({
    clusters: () => [],
    organisationOf: () => null,
    cores,
    now: () => this.nowMs,
    sampleMs: 3_600_000,
    onError: (error) => {
      throw error;
    },
    processes: {
      read: () => {
        this.onRead();
        return Promise.resolve(new Map([...this.processes].map(([pid, use]) => [pid, { ...use }])));
      },
      set: (nices) => {
        for (const [pid, nice] of nices) this.nices.set(pid, nice);
      },
      stop: () => Promise.resolve(),
    },
  });

  run({ pid, parent = 1, takes = 0 }: Fake): void {
    const cpuMs = this.processes.get(pid)?.cpuMs ?? 0;
    this.processes.set(pid, { pid, parent, startedTicks: String(pid), cpuMs, takes });
  }

  /** Adds a box whose first process is `fake`. */
  box(fake: Fake, organisation: string, kind: WorkKind = 'serving'): void {
    this.run(fake);
    this.shares.watch({ process: { pid: fake.pid }, exited: new Promise(() => undefined) }, organisation, kind);
  }

  async pass(seconds: number): Promise<void> {
    for (let samples = (seconds * 1_000) / sampleMs; samples > 0; samples -= 1) {
      this.nowMs += sampleMs;
      for (const use of this.processes.values()) use.cpuMs += use.takes * sampleMs;
      await this.shares.sample();
    }
  }

  niceOf(...pids: number[]): unknown[] {
    return pids.map((pid) => this.nices.get(pid));
  }
}

// The pids are above the highest pid of any machine, so no real process is affected.
const pidOf = (number: number): number => 2 ** 23 + number;
const [greedy, child, grandchild, sister, other, job] = [pidOf(1), pidOf(2), pidOf(3), pidOf(4), pidOf(5), pidOf(6)];

test('the more of the machine an organisation has used, the lower its priority, always below the host’s', () => {
  const values = [0, 0.01, 0.03, 0.06, 0.1, 1].map(niceOf);
  expect(values).toEqual(values.toSorted((left, right) => left - right));
  expect([values[0] === 0, values.at(-1)]).toEqual([false, 19]);
});

test('an organisation that takes the CPU sinks with all its boxes while another one needs it', async () => {
  const machine = new Machine();
  machine.box({ pid: greedy }, 'org-1');
  machine.run({ pid: child, parent: greedy });
  machine.run({ pid: grandchild, parent: child, takes: 1 });
  machine.box({ pid: sister }, 'org-1');
  machine.box({ pid: other, takes: 0.01 }, 'org-2');
  await machine.pass(5);
  expect(machine.niceOf(greedy, child, grandchild, sister)).toEqual([lowest, lowest, lowest, lowest]);
  expect(machine.niceOf(other)).toEqual([niceOf(machine.shares.shareOf('org-2'))]);
  expect(machine.shares.shareOf('org-2')).toBeLessThan(0.01);
});

test('its priority rises within seconds of its last work, and when nobody else is there', async () => {
  const machine = new Machine();
  machine.box({ pid: greedy, takes: 2 }, 'org-1');
  machine.box({ pid: other, takes: 0.01 }, 'org-2');
  await machine.pass(60);
  expect(machine.niceOf(greedy)).toEqual([lowest]);
  machine.run({ pid: greedy, takes: 0 });
  await machine.pass(8);
  expect(machine.niceOf(greedy)).not.toEqual([lowest]);
  machine.run({ pid: greedy, takes: 2 });
  await machine.pass(5);
  expect(machine.niceOf(greedy)).toEqual([lowest]);
  machine.run({ pid: other, takes: 0 });
  await machine.pass(15);
  expect(machine.niceOf(greedy)).toEqual([highest]);
});

test('a job keeps its own low priority and slows no page of its organisation; a stranger is left alone', async () => {
  const machine = new Machine();
  machine.box({ pid: greedy }, 'org-1');
  machine.box({ pid: job, takes: 2 }, 'org-1', 'job');
  machine.box({ pid: other, takes: 0.01 }, 'org-2');
  machine.run({ pid: child, takes: 2 });
  await machine.pass(5);
  expect(machine.niceOf(greedy, job, child)).toEqual([highest, 5, undefined]);
});

test('a new session is sampled soon, and not only when the next sample is due', async () => {
  const machine = new Machine();
  const read = () =>
    new Promise<void>((resolve) => {
      machine.onRead = resolve;
    });
  const first = read();
  machine.shares.start();
  await first;
  machine.box({ pid: greedy, takes: 2 }, 'org-1');
  machine.box({ pid: other, takes: 0.01 }, 'org-2');
  await machine.pass(5);
  machine.run({ pid: child, parent: greedy });
  const next = read();
  machine.shares.sessionBegan();
  await next;
  await machine.shares.stop();
  expect(machine.niceOf(child)).toEqual([lowest]);
});
