import { z } from 'zod';

/** A visitor's request, as the application is to get it. */
const forwardedSchema = z.object({
  /** The number of the application's process. */
  process: z.int(),
  method: z.string(),
  url: z.string(),
  /** Names and values by turns. */
  headers: z.array(z.string()),
  has_body: z.boolean(),
});
export type Forwarded = z.infer<typeof forwardedSchema>;

/**
 * A question of the host to the child that has a release's files. A visit is one question: the application's files and
 * the file at the path are needed together, and each question costs a turn of two processes.
 */
export const questionSchema = z.discriminatedUnion('ask', [
  z.object({
    ask: z.literal('visit'),
    path: z.string(),
    /** GET and HEAD; nothing else is answered by a file. */
    is_read: z.boolean(),
    /** Whether the file's first bytes are wanted with the answer. */
    is_whole: z.boolean(),
    /** A process of the application runs: the release is one, even if its app.js has just gone. */
    app_runs: z.boolean(),
    /** A page with queries may be rendered; otherwise the answer is that one waits. */
    may_render: z.boolean(),
    /** Where no file answers, the running process does at once, if its application's files ask for no other one. */
    forward: z.object({ request: forwardedSchema, restart_seconds: z.number() }).nullable(),
  }),
  z.object({ ask: z.literal('forward'), request: forwardedSchema }),
  z.object({ ask: z.literal('bytes'), handle: z.int(), start: z.int(), length: z.int() }),
  z.object({ ask: z.literal('close'), handle: z.int() }),
  z.object({ ask: z.literal('describe') }),
  z.object({ ask: z.literal('touch_restart'), now_ms: z.number() }),
]);
export type Question = z.infer<typeof questionSchema>;

/** A later message of the host about a forwarded request, by the number of its question. */
export const hostSaysSchema = z.object({
  /**
   * `more`: another piece of the answer may come. `body`: a piece of the request's body, which `want` asked for; `body_end`: it has ended.
   * `leave`: the visitor has gone. `no_connection`: the application took none.
   */
  say: z.enum(['more', 'body', 'body_end', 'leave', 'no_connection']),
});
export type HostSays = z.infer<typeof hostSaysSchema>;

/** A message of the child about a forwarded request. */
export const childSaysSchema = z.discriminatedUnion('say', [
  /** A piece of the answer, the body of the frame. After each but the last the child waits for `more`. */
  z.object({
    say: z.literal('answer'),
    /** With the first piece. */
    head: z.object({ status: z.int(), message: z.string(), headers: z.array(z.string()) }).nullable(),
    /** `broken`: the application has not said all of it. */
    end: z.enum(['whole', 'broken']).nullable(),
  }),
  /** Another piece of the request's body. */
  z.object({ say: z.literal('want') }),
  /** A connection to the application, which comes with the number of the question. */
  z.object({ say: z.literal('connect') }),
  /** Nothing of an answer came. */
  z.object({ say: z.literal('failed'), reason: z.string() }),
]);
export type ChildSays = z.infer<typeof childSaysSchema>;

/** Tells what is said about a request that is forwarded from questions and their answers, of which there are more. */
export const isSaid = (value: unknown): boolean => typeof value === 'object' && value !== null && 'say' in value;

/** Goes with a connection to the application: the question that it was asked for in. */
export const connectionSchema = z.object({ id: z.int() });

const fileSchema = z.object({
  kind: z.literal('file'),
  /** To ask for more of it; null when the answer's body is all of it. */
  handle: z.int().nullable(),
  size: z.int(),
  /** Nanoseconds, in base 36. */
  mtime: z.string(),
  extension: z.string(),
});

const foundSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('none') }),
  z.object({ kind: z.literal('folder'), location: z.string() }),
  /** Rendered; the answer's body is the HTML. */
  z.object({ kind: z.literal('page') }),
  /** It has to be rendered, which was not allowed. */
  z.object({ kind: z.literal('page_waits') }),
  z.object({ kind: z.literal('page_failed'), is_unavailable: z.boolean(), reason: z.string() }),
  fileSchema,
]);

export const visitSchema = z.object({
  /** Null for a release that is no application. */
  app: z.object({ restart_seconds: z.number(), restarts_always: z.boolean() }).nullable(),
  found: foundSchema,
});
export type Visit = z.infer<typeof visitSchema>;
export type Found = z.infer<typeof foundSchema>;
export type FoundFile = z.infer<typeof fileSchema>;

export const describedSchema = z.object({ has_app: z.boolean() });
export const touchedSchema = z.object({ seconds: z.number().nullable() });
/** Instead of an answer. */
export const failureSchema = z.object({ failure: z.string() });
/** Not asked for: a session that the child has opened, to be ended if the child has to be; or, when `is_overrun`, now. */
export const sessionSchema = z.object({ backend_pid: z.int(), is_overrun: z.boolean() });

/** As much of a file as an answer to a visit carries. */
export const firstBytes = 65_536;
/** As much as is asked for at once afterwards. */
export const chunkBytes = 262_144;
/** As much of an application's answer as one piece carries. */
export const pieceBytes = 65_536;
