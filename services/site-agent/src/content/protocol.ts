import { z } from 'zod';

/**
 * What the host asks the child that has a release's files. One question for a visit: what the application's files say and what lies at the
 * path are wanted together, and each question costs a turn of two processes.
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
  }),
  z.object({ ask: z.literal('bytes'), handle: z.int(), start: z.int(), length: z.int() }),
  z.object({ ask: z.literal('close'), handle: z.int() }),
  z.object({ ask: z.literal('describe') }),
  z.object({ ask: z.literal('touch_restart'), now_ms: z.number() }),
]);
export type Question = z.infer<typeof questionSchema>;

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
