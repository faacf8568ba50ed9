import { problem } from '@drydock/contracts/problem';

/** Places for requests that are being answered. Beyond them it is better to refuse at once than to serve everybody late. */
export interface Places {
  /** Throws 503 `overloaded` when there is none. Give each one back once. */
  take(): void;
  giveBack(): void;
  readonly taken: number;
}

export function createPlaces(placesMax: number, retryAfterSeconds: number): Places {
  let taken = 0;
  return {
    take: () => {
      if (taken >= placesMax) throw problem('overloaded', { retryAfterSeconds });
      taken += 1;
    },
    giveBack: () => {
      taken -= 1;
    },
    get taken() {
      return taken;
    },
  };
}
