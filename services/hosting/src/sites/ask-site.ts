import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import { fencedCall, retryLater, type StepContext } from '@drydock/workflow/definition';
import { refOf, type WorkContext } from '../context/context';
import { hostOf, type Probe } from '../providers/site-host';
import { mayBeTransient, noAnswer, type RecordedAnswer, recordOf, serves } from './probe.rules';

/**
 * How often a site that does not answer is probed, and the longest pause between two tries. Each attempt of the step is
 * one try.
 */
export interface ProbeTries {
  triesMax: number;
  pauseSecondsMax: number;
}

/**
 * For a new site, which has no visitors yet. A probe of the site agent takes at most 8 s, so all tries and pauses take
 * about eight minutes.
 */
export const forNewSite: ProbeTries = { triesMax: 30, pauseSecondsMax: 10 };
/** While visitors wait. The site agent lets a visitor wait for 20 s, and then answers 503. */
export const whileFrozen: ProbeTries = { triesMax: 12, pauseSecondsMax: 1 };

/** Before a backup. A site that still does not answer is backed up all the same. */
const beforeBackup: ProbeTries = { triesMax: 3, pauseSecondsMax: 2 };

/**
 * Probes a site before its backup, so that the answer can be recorded with the backup. After a bad answer the step is
 * tried again, because the machine may only have been busy. The answer to the third try is recorded in any case.
 */
export async function askForRecord(
  context: WorkContext,
  step: StepContext<unknown, unknown>,
  platform: SitePlatform,
): Promise<RecordedAnswer> {
  const probe = await askSite(context, step, platform, beforeBackup);
  if (!serves(probe) && step.attempt < beforeBackup.triesMax) throw retryLater({ seconds: step.attempt });
  return recordOf(probe);
}

/**
 * Probes a site over HTTP and SQL. If either gives no answer, or HTTP answers 503, the machine may only be busy. Then
 * the step runs again later, until the tries are used up. Any other answer is returned at once, and so is a 503 if the
 * recorded answer is a server error.
 */
export async function askSite(
  context: WorkContext,
  step: StepContext<unknown, unknown>,
  platform: SitePlatform,
  { triesMax, pauseSecondsMax }: ProbeTries,
  recorded: RecordedAnswer = noAnswer,
): Promise<Probe> {
  const probe = await hostOf(context.siteHosts, platform).probe(refOf(step), fencedCall(step));
  if ((isAnswered(probe) && !mayBeTransient(probe, recorded)) || step.attempt >= triesMax) return probe;
  step.log.warn(
    { internal: outcomeOf(probe), attempt: step.attempt, tries_max: triesMax },
    'the site does not serve yet',
  );
  throw retryLater({ seconds: Math.min(step.attempt, pauseSecondsMax) });
}

const isAnswered = ({ httpStatus, isSqlAnswered }: Probe): boolean => httpStatus !== 0 && isSqlAnswered;

/** The answers of HTTP and SQL, in words for people. */
export function outcomeOf({ httpStatus, isSqlOk, isSqlAnswered }: Probe): string {
  const http = httpStatus === 0 ? 'HTTP: no answer' : `HTTP: ${httpStatus}`;
  const sql = isSqlOk ? 'works' : isSqlAnswered ? 'refused' : 'no answer';
  return `${http}; SQL: ${sql}`;
}
