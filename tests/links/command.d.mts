export const isBuilt: boolean;
export function link(
  words: readonly string[],
  input?: string,
): { readonly status: number | null; readonly stdout: string; readonly stderr: string };
