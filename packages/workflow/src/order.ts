import type { StepContext } from './definition';

/** On whose behalf a step changes the world outside. A target of ours refuses a fence that is lower than one it has seen for the thing. */
export interface Order {
  fence: string;
  workflowId: string;
  /** Stop at the next safe place. */
  signal: AbortSignal;
}

export interface MovingOrder extends Order {
  /** 0 to 1, following bytes. */
  progress(fraction: number): void;
}

export const orderOf = ({ workflowId, fence, signal }: Pick<StepContext<unknown, unknown>, keyof Order>): Order => ({
  workflowId,
  fence,
  signal,
});
