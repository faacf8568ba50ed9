import { z } from 'zod';

/** Everything needed to start the machine, so that a change of configuration does not change existing machines. */
export const machineRecordSchema = z.strictObject({
  name: z.string(),
  spec: z.string(),
  image: z.string(),
  zone: z.string(),
  labels: z.record(z.string(), z.string()),
  cpus: z.int(),
  memoryMb: z.int(),
  diskGb: z.int(),
  system: z.strictObject({
    disk: z.string(),
    kernel: z.string().optional(),
    initrd: z.string().optional(),
    append: z.string().optional(),
  }),
});
export type MachineRecord = z.infer<typeof machineRecordSchema>;

/**
 * A piece of work on one machine: claimed, carried out and kept. The newest one locks the machine while it runs; all of
 * them together are the ledger.
 */
export const jobRecordSchema = z.strictObject({
  /** Counts up without gaps, from 1 (`create`). */
  number: z.int().positive(),
  kind: z.enum([
    'create',
    'start',
    'power_on',
    'power_off',
    'reboot',
    'delete',
    'take_snapshot',
    'delete_snapshot',
    'rollback',
  ]),
  reference: z.string(),
  state: z.enum(['running', 'succeeded', 'failed']),
  /**
   * Whether a rollback has overwritten the disk, or a reboot has stopped the machine. From here on the guest may write
   * again, so that part is never repeated.
   */
  isApplied: z.boolean(),
  /** Whether the machine ran before its rollback or reboot. */
  startsAfter: z.boolean(),
  /** Whether a power_off or reboot stops the machine without asking its guest. */
  isForced: z.boolean().default(false),
  /** How long the guest gets to shut down, when it is asked. */
  guestSeconds: z.int().default(0),
  /** The snapshot that is deleted or rolled back to; null for every other kind. */
  snapshotId: z.string().nullable(),
  /** The description of the snapshot that is taken; empty for every other kind. */
  description: z.string(),
  failure: z
    .strictObject({
      reason: z.enum(['rejected', 'incompatible', 'snapshot_not_found', 'guest_unresponsive']),
      internal: z.string(),
    })
    .nullable(),
  begunAt: z.iso.datetime(),
});
export type JobRecord = z.infer<typeof jobRecordSchema>;

/** The snapshot's name within the disk. Never a bare number: QEMU would take it for its own number of a snapshot. */
export const snapshotIdOf = ({ number }: Pick<JobRecord, 'number'>): string => `s${number}`;
