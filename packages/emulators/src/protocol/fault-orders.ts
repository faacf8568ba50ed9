import { z } from 'zod';

const headers = z.record(z.string(), z.string()).default({});
const ms = z.int().min(0).max(600_000);

const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('as_usual') }),
  /** Sends this answer and not the real answer. */
  z.strictObject({
    kind: z.literal('fixed'),
    status: z.int().min(200).max(599),
    headers,
    body: z.string().default(''),
  }),
  /** Sends the real JSON answer with some values replaced by path, such as `{"action.resources.0.id": 7}`. */
  z.strictObject({ kind: z.literal('edited'), set: z.record(z.string(), z.unknown()) }),
  /** Closes the connection without an answer. */
  z.strictObject({ kind: z.literal('reset') }),
  /** Keeps the connection open without an answer. */
  z.strictObject({ kind: z.literal('silence') }),
  /** Announces the full length, but sends only `bytes` bytes. */
  z.strictObject({ kind: z.literal('truncated'), bytes: z.int().min(0) }),
  /** Sends JSON of `bytes` bytes, or endless JSON without `bytes`. */
  z.strictObject({ kind: z.literal('endless'), bytes: z.int().min(1).optional() }),
  /** Sends the real answer, one byte every `intervalMs`. */
  z.strictObject({ kind: z.literal('drip'), intervalMs: ms }),
]);

export const faultOrderSchema = z.strictObject({
  /** The method of the affected calls. By default all methods are affected. */
  method: z.string().optional(),
  /** A regular expression that the path must match. */
  path: z.string(),
  /** The number of affected calls. */
  times: z.int().min(1).default(1),
  /**
   * True if the call takes effect although its answer is lost or replaced. Otherwise only the answers `as_usual` and
   * `edited` carry the call out, and in S3 also `truncated` and `drip`.
   */
  isCarriedOut: z.boolean().default(false),
  delayMs: ms.default(0),
  answer: answerSchema,
});

export type FaultOrder = z.infer<typeof faultOrderSchema>;
export type FaultAnswer = FaultOrder['answer'];
/** A fault as a test writes it, without the defaults. */
export type FaultWish = z.input<typeof faultOrderSchema>;

export interface FaultOrders {
  add(order: FaultOrder): void;
  /** Returns the first matching order and counts one call against it. */
  take(method: string, path: string): FaultOrder | null;
  list(): readonly FaultOrder[];
  clear(): void;
}

export function createFaultOrders(): FaultOrders {
  let orders: FaultOrder[] = [];
  const fits = (order: FaultOrder, method: string, path: string): boolean =>
    (order.method ?? method) === method && new RegExp(order.path).test(path);
  return {
    add: (order) => {
      orders.push(order);
    },
    take: (method, path) => {
      const order = orders.find((candidate) => fits(candidate, method, path));
      if (order === undefined) return null;
      order.times -= 1;
      orders = orders.filter(({ times }) => times > 0);
      return order;
    },
    list: () => orders,
    clear: () => {
      orders = [];
    },
  };
}
