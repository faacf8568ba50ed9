import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { say } from './report';
import { startBenchStack } from './stack';

const waitSeconds = 180;
const measuredSeconds = 60;
/**
 * The goals for all processes together while no request arrives: the most megabytes of memory, and the most processor
 * time in percent of one core.
 */
const bars = { megabytes: 1_228, cpuPercent: 3 };

interface Member {
  pid: number;
  parent: number;
  name: string;
  /**
   * Proportional set size in kB. Linux divides a page that several processes share among them, so the sum over all
   * processes is the memory that they really use.
   */
  pss: number;
  /** Processor time since the process started, in hundredths of a second. */
  ticks: number;
}

const read = (file: string): string | null => {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null; // The process has just ended, or belongs to another user.
  }
};

function readMember(pid: number): Member | null {
  const [stat, rollup, command] = [
    read(`/proc/${pid}/stat`),
    read(`/proc/${pid}/smaps_rollup`),
    read(`/proc/${pid}/cmdline`),
  ];
  if (stat === null || rollup === null || command === null) return null;
  // The second field is the program's name in brackets, which may contain spaces. So the fields are counted from the
  // closing bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    pid,
    parent: Number(fields[1]),
    name: command.split('\0').join(' ').trim().slice(0, 60),
    pss: Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0),
    ticks: Number(fields[11]) + Number(fields[12]),
  };
}

/** Returns the supervisor and all its descendants, by pid. */
function readFamily(supervisor: number): Map<number, Member> {
  const all = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const members = all.flatMap((pid) => readMember(Number(pid)) ?? []);
  const family = new Set([supervisor]);
  for (let grown = true; grown; ) {
    const found = members.filter(({ pid, parent }) => family.has(parent) && !family.has(pid));
    for (const { pid } of found) family.add(pid);
    grown = found.length > 0;
  }
  return new Map(members.filter(({ pid }) => family.has(pid)).map((member) => [member.pid, member]));
}

/** Measures the memory and processor time of each process of `npm start` while no request arrives. */
export async function benchIdle(): Promise<void> {
  const stack = await startBenchStack({ environment: { WORKFLOW_SWEEP_MS: '', WORKFLOW_LEASE_SECONDS: '' } });
  try {
    say(`waiting ${waitSeconds} s for the demo's work to end`);
    await sleep(waitSeconds * 1_000);
    const before = readFamily(stack.supervisorPid);
    await sleep(measuredSeconds * 1_000);
    const after = readFamily(stack.supervisorPid);
    const named = new Map(Object.entries(stack.processes()).map(([name, { pid }]) => [pid, name]));
    named.set(stack.supervisorPid, 'supervisor');
    const ownerOf = (member: Member | undefined): string =>
      member === undefined ? 'other' : (named.get(member.pid) ?? ownerOf(after.get(member.parent)));
    const totals = new Map<string, { count: number; pss: number; ticks: number }>();
    for (const member of after.values()) {
      const owner = ownerOf(member);
      const total = totals.get(owner) ?? { count: 0, pss: 0, ticks: 0 };
      const ticks = member.ticks - (before.get(member.pid)?.ticks ?? 0);
      totals.set(owner, { count: total.count + 1, pss: total.pss + member.pss, ticks: total.ticks + ticks });
    }
    print([...totals].sort(([, left], [, right]) => right.pss - left.pss));
  } finally {
    await stack.stop();
  }
}

function print(rows: ReadonlyArray<readonly [string, { count: number; pss: number; ticks: number }]>): void {
  const megabytes = (pss: number): number => Math.round(pss / 1_024);
  const percent = (ticks: number): number => ticks / measuredSeconds;
  const sum = (of: 'pss' | 'ticks'): number => rows.reduce((total, [, row]) => total + row[of], 0);
  const lines = rows.map(
    ([name, { count, pss, ticks }]) => `| ${name} | ${count} | ${megabytes(pss)} | ${percent(ticks).toFixed(2)} |`,
  );
  const verdict = (value: number, bar: number): string => `${value} ${value <= bar ? 'ok' : 'MISSED'} (bar ${bar})`;
  const total = `| all | ${rows.reduce((all, [, { count }]) => all + count, 0)} | ${verdict(megabytes(sum('pss')), bars.megabytes)} | ${verdict(
    Number(percent(sum('ticks')).toFixed(2)),
    bars.cpuPercent,
  )} |`;
  process.stdout.write(
    `### Idle\n\n| process, with its children | processes | MB | % of a core |\n|---|---|---|---|\n${[...lines, total].join('\n')}\n\n`,
  );
}
