import type { Reader, Tx } from '../context/database.store';

/**
 * `fresh`: this call has made the note. `sent`: an earlier attempt has made the note. `late`: there is no note, and the
 * request must not be sent any more.
 */
export type OrderNote = 'fresh' | 'sent' | 'late';

/**
 * Notes that the request of the workflow is about to be sent. Makes no note if it is later than `sendBy` by the clock
 * of Postgres, or if the API has stopped waiting and withdrawn the request. A note and a withdrawal are rows with the
 * same key, so only the first of the two is written.
 */
export async function noteSending(tx: Tx, workflowId: string, sendBy: Date): Promise<OrderNote> {
  const noted = await tx.$executeRaw`
    INSERT INTO vendor_orders (workflow_id, state)
    SELECT ${workflowId}::uuid, 'sent' WHERE clock_timestamp() <= ${sendBy}::timestamptz
    ON CONFLICT DO NOTHING`;
  if (noted === 1) return 'fresh';
  return (await isOrderSent(tx, workflowId)) ? 'sent' : 'late';
}

/**
 * Removes the note, so that the request may be sent again. Call it only if the vendor has certainly not accepted the
 * request.
 */
export async function takeBackNote(tx: Tx, workflowId: string): Promise<void> {
  await tx.vendorOrder.deleteMany({ where: { workflowId, state: 'sent' } });
}

/** Withdraws the request, so that it is never sent. False if it was sent already. */
export async function withdrawOrder(tx: Tx, workflowId: string): Promise<boolean> {
  await tx.$executeRaw`INSERT INTO vendor_orders (workflow_id, state) VALUES (${workflowId}::uuid, 'withdrawn')
    ON CONFLICT DO NOTHING`;
  return !(await isOrderSent(tx, workflowId));
}

export async function isOrderSent(tx: Reader, workflowId: string): Promise<boolean> {
  return (await tx.vendorOrder.count({ where: { workflowId, state: 'sent' } })) > 0;
}
