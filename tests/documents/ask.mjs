// Asks the command something, as a process of its own.
import { spawn } from 'node:child_process';
import { command } from '../command.mjs';

/**
 * {status, stdout, stderr} of the command; status "hang" when it did not end within `patienceMs`. `watch` is called now
 * and then with its process id.
 */
export function ask(words, input, patienceMs, watch = () => undefined) {
  return new Promise((resolve) => {
    const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    let hung = false;
    const timer = setTimeout(() => {
      hung = true;
      child.kill('SIGKILL');
    }, patienceMs);
    const watching = setInterval(() => watch(child.pid), 50);
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8');
      child[stream].on('data', (text) => (output[stream] += text));
    }
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    child.on('close', (status, signal) => {
      clearTimeout(timer);
      clearInterval(watching);
      resolve({ status: hung ? 'hang' : (status ?? signal), ...output });
    });
  });
}
