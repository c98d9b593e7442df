// A time line for a window of Perfetto, by its handshake: PING until it answers PONG, then the file
// (https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui). No server sees it.
const site = 'https://ui.perfetto.dev';
const pingMs = 50;
const patienceMs = 60_000;

/** At a click itself, else browsers open none: null. */
export const openPerfetto = (): Window | null => window.open(site);

/** False: the window was closed, or did not answer. */
export function handToPerfetto(opened: Window, buffer: ArrayBuffer, title: string, fileName: string): Promise<boolean> {
  return new Promise((resolve) => {
    const begun = performance.now();
    const end = (isTaken: boolean) => {
      clearInterval(timer);
      removeEventListener('message', hear);
      resolve(isTaken);
    };
    const hear = ({ source, origin, data }: MessageEvent) => {
      if (source !== opened || origin !== site || data !== 'PONG') return;
      opened.postMessage({ perfetto: { buffer, title, fileName } }, site);
      end(true);
    };
    addEventListener('message', hear);
    const timer = setInterval(() => {
      if (opened.closed || performance.now() - begun > patienceMs) end(false);
      else opened.postMessage('PING', site);
    }, pingMs);
  });
}
