import { problemCodes, problems } from './problems';

const introduction = `# Errors

Written by \`npm run errors\` from \`packages/contracts/src/platform/problems.ts\`; a test keeps it current.

Every refusal is \`application/problem+json\` (RFC 9457) with \`code\`, \`title\`, \`status\`, \`detail\`, \
\`request_id\` and, where fields were wrong, \`errors\`.
\`code\` is stable: decide by it. \`detail\` is for people and may change. \
The gateway serves each row at \`/problems/{code}\`.
A code that **passes** may be gone when you wait; it is never stored for an Idempotency-Key, \
so the same request is executed when you send it again.
`;

/** The whole registry of problem codes as one Markdown page, in its own order. */
export function describeProblems(): string {
  const rows = problemCodes.map((code) => {
    const { status, title, advice, transient = false } = problems[code];
    return `| \`${code}\` | ${status} | ${title} | ${advice} | ${transient ? 'yes' : ''} |`;
  });
  return (
    `${introduction}\n| code | status | what happened | what to do | passes |\n` +
    `|---|---|---|---|---|\n${rows.join('\n')}\n`
  );
}
