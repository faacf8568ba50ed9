import type { FaultMode } from './fault-tokens';

/** The part of a workflow's definition from which the crash cases are derived. */
export interface CrashDefinition {
  kind: string;
  pointOfNoReturn: number;
  steps: readonly { name: string; undo?: unknown }[];
}

export interface CrashCase {
  name: string;
  /** The names of the single cases, if this run combines several cases. */
  names?: readonly string[];
  arm: readonly { point: string; mode: FaultMode; times: number }[];
  /** The step that must be on record. If the workflow must not succeed, the record must say that this step failed. */
  step: string;
  expect: 'succeeded' | 'failed' | 'needs_attention';
  /** How often the step must have started. Without this field the number is not checked. */
  attempts?: number;
  /** True if a worker stops itself (SIGSTOP) and continues after another worker has overtaken it. */
  freezes: boolean;
}

/**
 * `full` has all cases. `short` has fewer freezes, repeated deaths and deaths in undos. `effects` has only the cases
 * right after an effect, because only these depend on a service's own code. Each profile also has a death before the
 * workflow's finish.
 */
export type CrashProfile = 'effects' | 'short' | 'full';

/** Returns the cases of this profile for every step and every undo of the definition. */
export function crashCases(definition: CrashDefinition, profile: CrashProfile): CrashCase[] {
  const ofSteps = profile === 'effects' ? effectCases : stepCases;
  const cases = definition.steps.flatMap((_, index) => ofSteps(definition, index, profile));
  return [
    ...cases,
    ...undoCases(definition, profile),
    killAt('finish.before', definition.steps.at(-1)?.name ?? '', {}),
  ];
}

const isDeath = ({ name, expect, freezes }: CrashCase): boolean =>
  /^kill at /.test(name) && expect === 'succeeded' && !freezes;
const isDeathGoingBack = ({ name }: CrashCase): boolean => name.endsWith(wayBack);

/**
 * Combines deaths in two runs: one with the deaths in all steps, and one with the deaths in all undos. Other cases,
 * such as three deaths in a row at one point, keep separate runs. The two runs take a third of the time of single runs,
 * but a failure shows less clearly which step is wrong.
 */
export function inFewRuns(cases: readonly CrashCase[]): CrashCase[] {
  const alone = cases.filter((one) => !isDeath(one) && !isDeathGoingBack(one));
  return [
    ...allInOne('killed in every step', cases.filter(isDeath)),
    ...allInOne('killed in every undo', cases.filter(isDeathGoingBack)),
    ...alone,
  ];
}

function allInOne(name: string, cases: readonly CrashCase[]): CrashCase[] {
  const last = cases.at(-1);
  if (last === undefined || cases.length === 1) return [...cases];
  const armed = new Map(
    cases.flatMap(({ arm }) => arm.map((order) => [`${order.mode} ${order.point}`, order] as const)),
  );
  // `attempts` holds for a run with one death, so the combined run does not check it.
  const { attempts: _attempts, ...rest } = last;
  return [
    {
      ...rest,
      name: `${name} (${last.name} being the last)`,
      names: cases.map((one) => one.name),
      arm: [...armed.values()],
    },
  ];
}

function effectCases(definition: CrashDefinition, index: number): CrashCase[] {
  const isLastOfItsKind = index === definition.pointOfNoReturn - 1 || index === definition.steps.length - 1;
  const isWanted = ({ name }: CrashCase): boolean =>
    name.endsWith('.after_effect') && !name.includes(' times ') && (!name.startsWith('throw ') || isLastOfItsKind);
  // The number of starts is not checked, because a worker on a busy machine may lose its lease, which costs one more
  // start. The tests of @drydock/workflow check the number.
  return stepCases(definition, index, 'short')
    .filter(isWanted)
    .map(({ attempts: _attempts, ...crashCase }) => crashCase);
}

function stepCases(definition: CrashDefinition, index: number, profile: CrashProfile): CrashCase[] {
  const step = definition.steps[index]?.name ?? '';
  const at = (where: string): string => `${definition.kind}.${step}.${where}`;
  const isLast = index === definition.steps.length - 1;
  const again = { attempts: 2 };
  const kills = [
    killAt(at('before'), step, again),
    killAt(at('after_effect'), step, again),
    // The checkpoint ends this step and starts the next step. So a death after the checkpoint does not start this step
    // again.
    killAt(at('after_checkpoint'), step, { attempts: 1 }),
  ];
  const thrice = profile === 'full' || index === 0 ? [killAt(at('after_effect'), step, { attempts: 4 }, 3)] : [];
  const freezeAt =
    profile === 'full' ? ['before', 'after_effect', ...(isLast ? [] : ['after_checkpoint'])] : ['after_effect'];
  const expected = index < definition.pointOfNoReturn ? 'failed' : 'needs_attention';
  const throws = ['before', 'after_effect'].map((where) => ({
    ...one(at(where), 'throw', step),
    expect: expected as CrashCase['expect'],
  }));
  return [
    ...kills,
    ...thrice,
    one(at('after_effect'), 'repeat', step),
    ...freezeAt.map((where) => ({ ...one(at(where), 'stop', step), freezes: true })),
    ...throws,
  ];
}

const wayBack = ' while going back';

/**
 * Returns cases in which the last step before the point of no return fails and the worker then dies in an undo: one
 * case for each undo, and two in the profile `full`.
 */
function undoCases(definition: CrashDefinition, profile: CrashProfile): CrashCase[] {
  const undoable = definition.steps.slice(0, definition.pointOfNoReturn);
  const last = undoable.at(-1)?.name;
  if (last === undefined) return [];
  const fails = { point: `${definition.kind}.${last}.after_effect`, mode: 'throw' as const, times: 1 };
  const places = profile === 'full' ? ['undo_before', 'undo_after_effect'] : ['undo_after_effect'];
  return undoable
    .filter((step) => step.undo !== undefined)
    .flatMap(({ name }) =>
      places.map((where) => {
        const killed = killAt(`${definition.kind}.${name}.${where}`, last, {});
        return { ...killed, name: `${killed.name}${wayBack}`, arm: [fails, ...killed.arm], expect: 'failed' as const };
      }),
    );
}

const one = (point: string, mode: FaultMode, step: string, times = 1): CrashCase => ({
  name: `${mode}${times > 1 ? ` ${times} times` : ''} at ${point}`,
  arm: [{ point, mode, times }],
  step,
  expect: 'succeeded',
  freezes: false,
});

const killAt = (point: string, step: string, more: { attempts?: number }, times = 1): CrashCase => ({
  ...one(point, 'kill', step, times),
  ...more,
});
