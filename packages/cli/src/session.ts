import { type CallOptions, createDrydock, type Drydock } from '@drydock/client';
import { findTarget } from './contexts';
import type { OperationId } from './generated/contract';
import type { Input } from './operation';

export interface Session {
  drydock: Drydock;
  call(id: OperationId, input: Input, options?: CallOptions): Promise<unknown>;
  /** The `Location` header of the last answer. After a 202 this is the path of the workflow. */
  location(): string | null;
}

export function openSession(context: string | undefined): Session {
  const { url, key } = findTarget(context);
  let location: string | null = null;
  const drydock = createDrydock({
    baseUrl: url,
    apiKey: key,
    fetch: async (...request) => {
      const response = await fetch(...request);
      location = response.headers.get('location');
      return response;
    },
  });
  // The table of operations and the client's methods are generated from the same contract.
  const methods = drydock as unknown as Record<OperationId, (input: Input, options?: CallOptions) => Promise<unknown>>;
  return { drydock, call: (id, input, options) => methods[id](input, options), location: () => location };
}
