/** The one workflow that holds a resource. */
export interface UnfinishedWorkflow {
  id: string;
  kind: string;
  status: 'queued' | 'running' | 'needs_attention';
}
