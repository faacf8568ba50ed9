import { findTarget, openSession, type Session, type Target } from './config';
import { exitCodeOf, exitCodes, messageOf, ShownError } from './exit';
import { operations, version } from './generated/contract';
import { clean, type Format, isObject, print, tableOf } from './output';

interface Check {
  check: string;
  result: 'ok' | 'warning' | 'failed';
  detail: string;
  /** Advice for the user. */
  next?: string;
  exitCode?: number;
}

const timeoutMs = 10_000;
const clockToleranceSeconds = 60;

/**
 * Runs the checks in the order in which a command needs them, and prints advice for each failure or warning. If checks
 * have failed, throws ShownError with the exit code of the first of them.
 */
export async function runDoctor(context: string | undefined, format: Format): Promise<void> {
  const checks: Check[] = [];
  const target = findTarget(context);
  checks.push({ check: 'configuration', result: 'ok', detail: `${target.url}, from ${target.from}` });
  const reached = await reach(target);
  checks.push(...reached);
  if (reached.every(({ result }) => result !== 'failed')) {
    checks.push(await checkVersion(target), await checkReady(target), await checkKey(openSession(context)));
  }
  const shown = checks.map(({ exitCode: _hidden, ...check }) => check);
  const advice = checks.flatMap(({ check, next }) => (next === undefined ? [] : [`\n${check}: ${clean(next)}`]));
  await print(
    format,
    shown,
    () => `${tableOf(['check', 'result', 'detail'], shown)}${advice.join('')}${advice.length > 0 ? '\n' : ''}`,
  );
  const failed = checks.find(({ result }) => result === 'failed');
  if (failed !== undefined) throw new ShownError(failed.exitCode ?? exitCodes.unavailable);
}

/** Requests a public page. The key is not sent, because the server may not be Drydock. */
const ask = ({ url }: Target, path: string): Promise<Response> =>
  fetch(new URL(path, url), { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) });

async function reach(target: Target): Promise<Check[]> {
  try {
    const asked = Date.now();
    const response = await ask(target, '/healthz');
    await response.arrayBuffer();
    const tookMs = Date.now() - asked;
    if (!response.ok) throw new Error(`/healthz answers ${response.status}`);
    return [
      { check: 'reach', result: 'ok', detail: `${target.url} answers` },
      checkClock(response.headers.get('date'), asked + tookMs / 2),
    ];
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    const detail = cause instanceof Error && cause.message !== '' ? cause.message : message;
    const next =
      `Nothing of Drydock's answers at ${target.url}. Compare the address with drydock contexts list, ` +
      'and look at the network, the proxy and the certificate in between. On this machine npm start runs one.';
    return [{ check: 'reach', result: 'failed', detail, next, exitCode: exitCodes.unavailable }];
  }
}

function checkClock(date: string | null, localMs: number): Check {
  const serverMs = Date.parse(date ?? '');
  const seconds = Math.round((localMs - serverMs) / 1_000);
  if (Number.isNaN(serverMs))
    return {
      check: 'clock',
      result: 'warning',
      detail: 'the answer has no date',
      next: 'A proxy removes the Date header of answers.',
    };
  if (Math.abs(seconds) <= clockToleranceSeconds)
    return { check: 'clock', result: 'ok', detail: "the same as the server's" };
  const detail = `${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the server`;
  return {
    check: 'clock',
    result: 'warning',
    detail,
    next: 'Set the clock of this machine, for example by NTP: certificates are checked against it.',
  };
}

async function checkVersion(target: Target): Promise<Check> {
  const check = 'version';
  try {
    const document: unknown = await (await ask(target, '/openapi.json')).json();
    const there = isObject(document) && isObject(document['info']) ? document['info']['version'] : undefined;
    const paths = isObject(document) && isObject(document['paths']) ? Object.values(document['paths']) : [];
    const ids = paths
      .filter(isObject)
      .flatMap((methods) =>
        Object.values(methods).flatMap((one) => (isObject(one) ? [String(one['operationId'])] : [])),
      );
    const unknown = ids.filter((id) => !Object.hasOwn(operations, id)).length;
    const missing = Object.keys(operations).filter((id) => !ids.includes(id)).length;
    if (there === version && unknown === 0 && missing === 0)
      return { check, result: 'ok', detail: `${version}, the same operations` };
    const detail =
      `there ${String(there)}, here ${version}; ${unknown} operations have no command here, ` +
      `${missing} commands no operation there`;
    return { check, result: 'warning', detail, next: 'Use the drydock of the same release as the installation.' };
  } catch (error) {
    return {
      check,
      result: 'warning',
      detail: `/openapi.json cannot be read: ${messageOf(error).trim()}`,
      next: 'The server at this address may not be Drydock.',
    };
  }
}

async function checkReady(target: Target): Promise<Check> {
  const check = 'readiness';
  try {
    const response = await ask(target, '/readyz');
    const body: unknown = await response.json();
    const parts = isObject(body) && isObject(body['checks']) ? Object.entries(body['checks']) : [];
    const bad = parts.flatMap(([name, state]) => (state === 'ok' ? [] : [`${name} ${String(state)}`]));
    if (response.ok && bad.length === 0) return { check, result: 'ok', detail: 'all services' };
    const detail = bad.join(', ') || `/readyz answers ${response.status}`;
    const next =
      'What these services do waits or is refused with 503. Those who run the installation see it in /readyz.';
    return response.ok
      ? { check, result: 'warning', detail, next }
      : { check, result: 'failed', detail, next, exitCode: exitCodes.unavailable };
  } catch (error) {
    return {
      check,
      result: 'failed',
      detail: messageOf(error).trim(),
      next: 'Try again in a minute.',
      exitCode: exitCodes.unavailable,
    };
  }
}

async function checkKey({ drydock }: Session): Promise<Check> {
  try {
    const { key, org, mode, scopes } = await drydock.getMe();
    const detail = `${key.name} (${key.prefix}) of ${org.name}, ${mode}, ${scopes.length} permissions`;
    if (scopes.length > 0) return { check: 'key', result: 'ok', detail };
    return {
      check: 'key',
      result: 'warning',
      detail,
      next:
        'The key has no permissions. ' +
        'Mint another one with drydock keys mint --scope, using a key that holds the scope.',
    };
  } catch (error) {
    const exitCode = exitCodeOf(error);
    const next =
      exitCode === exitCodes.notAllowed
        ? 'The key was revoked, or is of another installation. ' +
          'Mint one with a key that works, and keep it with drydock contexts add.'
        : 'Try again in a minute.';
    return { check: 'key', result: 'failed', detail: messageOf(error).split('\n')[0] ?? '', next, exitCode };
  }
}
