import { type Claim, type ControlAddress, createControlClient, nothing, type Wanted } from '@drydock/host-kit/control-client';
import type { z } from 'zod';
import {
  type Access,
  accessSchema,
  type CutoverAnswer,
  cutoverAnswerSchema,
  type DatabaseDescription,
  databaseDescriptionSchema,
  databaseHostProtocol,
  type EnsureDatabase,
  judgementSchema,
  type PrepareTarget,
  type ScratchAccess,
  scratchAccessSchema,
  type UpgradeAccess,
  type UpgradeJudgement,
  upgradeAccessSchema,
} from './protocol';

export type { Claim } from '@drydock/host-kit/control-client';

/** What the control protocol can do; see the README of this package. Every change is idempotent under its fence. */
export interface DatabaseHostClient {
  ensureDatabase(databaseId: string, wanted: Wanted<EnsureDatabase>, claim: Claim): Promise<DatabaseDescription>;
  /** `unknown_database` also for one that was never finished. */
  readDatabase(databaseId: string, signal?: AbortSignal): Promise<DatabaseDescription>;
  destroyDatabase(databaseId: string, claim: Claim): Promise<void>;
  precheck(databaseId: string, toMajor: number, signal?: AbortSignal): Promise<UpgradeJudgement>;
  /** To the instance that serves, by the platform's role. Secret. */
  access(databaseId: string, claim: Claim): Promise<Access>;
  prepareTarget(databaseId: string, wanted: Wanted<PrepareTarget>, claim: Claim): Promise<void>;
  /** To both instances of an upgrade, by the platform's role. Secret. */
  accessUpgrade(databaseId: string, upgradeId: string, claim: Claim): Promise<UpgradeAccess>;
  blockWrites(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  /** The point of no return; see switch-over.ts. */
  cutover(databaseId: string, upgradeId: string, claim: Claim): Promise<CutoverAnswer>;
  restOld(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  retireOld(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  abandonUpgrade(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  makeScratch(databaseId: string, wanted: { scratchId: string; major: number }, claim: Claim): Promise<ScratchAccess>;
  /** Roles that can do nothing, for a schema that mentions them. Those that are there stay. */
  makeScratchRoles(databaseId: string, wanted: { scratchId: string; roles: string[] }, claim: Claim): Promise<void>;
  dropScratch(databaseId: string, scratchId: string, claim: Claim): Promise<void>;
  close(): Promise<void>;
}

/** Making an instance takes a second or two, under load ten; ending one in order at most twenty. */
const deadlineMs = 90_000;

/** The typed client of a database host's control protocol. Every method throws {@link DatabaseHostError} as `createControlClient` says. */
export function createDatabaseHostClient(address: ControlAddress): DatabaseHostClient {
  const { ask, change, close } = createControlClient(databaseHostProtocol, { ...address, deadlineMs });
  const upgrade =
    <Answer>(rest: string, answer: z.ZodType<Answer>) =>
    (id: string, upgradeId: string, claim: Claim): Promise<Answer> =>
      change(`POST /upgrade/${rest}`, { id, claim, fields: { upgrade_id: upgradeId }, answer });

  return {
    ensureDatabase: (id, fields, claim) => change('PUT', { id, claim, fields, answer: databaseDescriptionSchema }),
    readDatabase: (id, signal) => ask('GET', { id, signal, answer: databaseDescriptionSchema }),
    destroyDatabase: (id, claim) => change('DELETE', { id, claim, answer: nothing }),
    precheck: (id, toMajor, signal) => ask('POST /precheck', { id, body: { to_major: toMajor }, signal, answer: judgementSchema }),
    access: (id, claim) => change('POST /access', { id, claim, answer: accessSchema }),
    prepareTarget: (id, fields, claim) => change('POST /upgrade', { id, claim, fields, answer: nothing }),
    accessUpgrade: upgrade('access', upgradeAccessSchema),
    blockWrites: upgrade('block', nothing),
    cutover: upgrade('cutover', cutoverAnswerSchema),
    restOld: upgrade('rest', nothing),
    retireOld: upgrade('retire', nothing),
    abandonUpgrade: upgrade('abandon', nothing),
    makeScratch: (id, { scratchId, major }, claim) =>
      change('POST /scratch', { id, claim, fields: { scratch_id: scratchId, major }, answer: scratchAccessSchema }),
    makeScratchRoles: (id, { scratchId, roles }, claim) =>
      change('POST /scratch/roles', { id, claim, fields: { scratch_id: scratchId, roles }, answer: nothing }),
    dropScratch: (id, scratchId, claim) => change('DELETE /scratch', { id, claim, fields: { scratch_id: scratchId }, answer: nothing }),
    close,
  };
}
