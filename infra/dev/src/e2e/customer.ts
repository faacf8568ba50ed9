import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { siteSchema } from '@drydock/contracts/hosting/sites';
import { type WorkflowView, workflowSchema } from '@drydock/contracts/platform/workflows';
import { assertContract, endpointAt } from '@drydock/service/testing/assert-contract';
import { InvariantViolated, until } from '@drydock/testing/wait';

/**
 * Returns undefined for the error of a call without an answer. Rethrows the error of an answer that breaks the
 * contract.
 */
function unanswered(error: unknown): undefined {
  if (error instanceof InvariantViolated) throw error;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: unknown;
}

/** A customer who calls the API with one key. Every answer is checked against the contract. */
export class Customer {
  readonly #baseUrl: string;
  readonly #token: string;

  constructor(baseUrl: string, token: string) {
    this.#baseUrl = baseUrl;
    this.#token = token;
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(this.#baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    const answer = {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? undefined : JSON.parse(text),
    };
    const endpoint = endpointAt(method, path);
    if (endpoint === undefined) throw new Error(`no contract for ${method} ${path}`);
    try {
      assertContract(endpoint, {
        status: answer.status,
        header: (name) => answer.headers.get(name),
        body: answer.body,
      });
    } catch (error) {
      // `until` rejects at once with this error, because no wait can mend a broken contract.
      throw new InvariantViolated(error instanceof Error ? error.message : String(error), { cause: error });
    }
    return answer;
  }

  /** Calls, and repeats the call while there is no answer or a 503, for example during the restart of a process. */
  async insist(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    return until(
      async () => {
        const answer = await this.call(method, path, body, headers).catch(unanswered);
        return answer !== undefined && answer.status !== 503 && answer;
      },
      { timeoutMs: 120_000, what: `an answer to ${method} ${path}` },
    );
  }

  /**
   * Starts a workflow and resolves with its final state. Throws an error with the answer if the answer names no
   * workflow.
   */
  async carryOut(method: string, path: string, body?: unknown): Promise<WorkflowView> {
    const answer = await this.insist(method, path, body);
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
    return this.follow(location);
  }

  async site(id: string) {
    return siteSchema.parse((await this.insist('GET', `/v1/sites/${id}`)).body);
  }

  async takeBackup(siteId: string): Promise<string> {
    await this.insist('POST', `/v1/sites/${siteId}/backups`, {});
    const surface = await until(
      async () => {
        const found = siteBackupSurfaceSchema.parse((await this.insist('GET', `/v1/sites/${siteId}/backups`)).body);
        return !found.in_progress && found;
      },
      { timeoutMs: 240_000, what: 'the backup' },
    );
    const [newest] = surface.backups;
    if (newest?.status !== 'completed') throw new Error(`the backup is ${newest?.status}: ${newest?.error_code}`);
    return newest.id;
  }

  /** Polls the workflow at this Location. Resolves with its final state. */
  follow(location: string): Promise<WorkflowView> {
    return until(
      async () => {
        const workflow = workflowSchema.parse((await this.insist('GET', location)).body);
        return !['queued', 'running'].includes(workflow.status) && workflow;
      },
      { timeoutMs: 240_000, everyMs: 50, what: `the end of ${location}` },
    );
  }
}
