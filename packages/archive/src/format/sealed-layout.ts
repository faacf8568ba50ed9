/** Where the parts of a sealed object are. README.md draws them. */
export const headerBytes = 72;
export const macBytes = 32;
export const ivAt = 56;
