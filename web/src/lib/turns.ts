// Work that may wait until what is going on has been said: in tasks of their own, several in one while that is short, so
// that the page follows a hand, and no task grows with the number of charts, fields or views.
const longestMs = 8;
const waiting: (() => void)[] = [];
const next = new MessageChannel();
next.port1.onmessage = () => {
  const begin = performance.now();
  do waiting.shift()?.();
  while (waiting.length > 0 && performance.now() - begin < longestMs);
  if (waiting.length > 0) next.port2.postMessage(null);
};

/** Settles when the work is done. */
export function inTurn(work: () => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    waiting.push(() => {
      try {
        work();
        resolve();
      } catch (error) {
        reject(error);
      }
    });
    if (waiting.length === 1) next.port2.postMessage(null);
  });
}

let isTogether = false;

/** From then on nothing is put off but what asks for a turn: paper and other widths are drawn for at once. */
export function cameTogether(): void {
  isTogether = true;
}

/** While the page comes together, in turn where it waits; else at once. */
export function inTurnIf(waits: boolean, work: () => unknown): Promise<void> | undefined {
  if (waits && !isTogether) return inTurn(work);
  work();
  return undefined;
}
