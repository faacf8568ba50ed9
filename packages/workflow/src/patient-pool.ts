import { setTimeout as wait } from 'node:timers/promises';
import type { PgPool } from 'bullmq';
import { Pool, type PoolClient, type PoolConfig } from 'pg';

/** As pg's own declaration has it. */
type ConnectCallback = Parameters<Pool['connect']>[0];

const pauseMs = 500;

/**
 * A pool that waits for its database instead of giving up. BullMQ keeps the failure of a first connection for ever, and after a later one asks again at once: a
 * worker that starts while Postgres does not answer would spin until somebody restarted it. Each failure is an `error` event.
 */
export class PatientPool extends Pool {
  private isPatient = true;

  constructor(config: PoolConfig) {
    // What BullMQ gives pools of its own.
    super({ ...config, options: '-c search_path=bullmq' });
  }

  /** BullMQ's own type of a pool, whose `on` pg's declarations do not fit by their overloads alone. */
  forBullmq(): PgPool {
    return this as unknown as PgPool;
  }

  /** From now on what fails has failed: whoever waits is to be closed. */
  loseHope(): void {
    this.isPatient = false;
  }

  override connect(): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<PoolClient> | undefined {
    const connected = this.connectAtLast();
    if (callback === undefined) return connected;
    connected.then(
      (client) => callback(undefined, client, (release) => client.release(release)),
      (error: Error) => callback(error, undefined, () => undefined),
    );
    return undefined;
  }

  private async connectAtLast(): Promise<PoolClient> {
    for (;;) {
      try {
        return await super.connect();
      } catch (error) {
        if (!this.isPatient || this.ending) throw error;
        this.emit('error', error);
      }
      await wait(pauseMs);
    }
  }
}
