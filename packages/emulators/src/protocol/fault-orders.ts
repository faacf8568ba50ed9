import { z } from 'zod';

const headers = z.record(z.string(), z.string()).default({});
const ms = z.int().min(0).max(600_000);

const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('as_usual') }),
  /** Replaces the real answer. */
  z.strictObject({
    kind: z.literal('fixed'),
    status: z.int().min(200).max(599),
    headers,
    body: z.string().default(''),
  }),
  /** The real JSON answer with some values replaced, by path: `{"action.resources.0.id": 7}`. */
  z.strictObject({ kind: z.literal('edited'), set: z.record(z.string(), z.unknown()) }),
  /** The connection is cut without a byte. */
  z.strictObject({ kind: z.literal('reset') }),
  /** No byte ever. */
  z.strictObject({ kind: z.literal('silence') }),
  /** Announces the whole length, but sends only `bytes` of it. */
  z.strictObject({ kind: z.literal('truncated'), bytes: z.int().min(0) }),
  /** Sends JSON of `bytes` bytes, or without end when `bytes` is missing. */
  z.strictObject({ kind: z.literal('endless'), bytes: z.int().min(1).optional() }),
  /** Sends the real answer, one byte every `intervalMs`. */
  z.strictObject({ kind: z.literal('drip'), intervalMs: ms }),
]);

export const faultOrderSchema = z.strictObject({
  /** The method that the fault affects. When left out, any method. */
  method: z.string().optional(),
  /** A regular expression that the path must match. */
  path: z.string(),
  /** How many calls the fault affects. */
  times: z.int().min(1).default(1),
  /** Whether the call is carried out. If so, only its answer is lost. Otherwise the request is lost. */
  isCarriedOut: z.boolean().default(false),
  delayMs: ms.default(0),
  answer: answerSchema,
});

export type FaultOrder = z.infer<typeof faultOrderSchema>;
export type FaultAnswer = FaultOrder['answer'];
/** A fault in the form in which a test writes it. */
export type FaultWish = z.input<typeof faultOrderSchema>;

export interface FaultOrders {
  add(order: FaultOrder): void;
  /** The first order that matches, which is used up by one. */
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
