import { type ApiOptions, openProviderApi, type ProviderApi } from '../http/provider-api';
import { refusalIn } from './hetzner-refusals';

export interface HetznerOptions extends ApiOptions {
  /** The API token of one project. */
  token: string;
}

export const openHetznerApi = ({ token, ...options }: HetznerOptions): ProviderApi =>
  openProviderApi({ ...options, headers: { authorization: `Bearer ${token}` }, refusalIn });
