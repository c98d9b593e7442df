import { describe, expect, it } from 'vitest';
import { answers } from './search';

const seats = { path: '/engine/max_num_seqs', help: 'maximum number of requests in a step (seats)', choices: [] };
const order = { path: '/scheduler/order', help: 'which waiting request is admitted first', choices: ['fcfs', 'sjf'] };

describe('a search for a field', () => {
  it('finds its name however it is written, before others', () => {
    for (const query of ['max_num_seqs', 'num seqs', 'max-num-seqs', 'MAX NUM']) expect(answers(seats, query)).toBe(2);
  });
  it('finds it by place, help and choices', () => {
    for (const query of ['engine seqs', 'requests in a step', '/engine/max_num_seqs'])
      expect(answers(seats, query)).toBe(1);
    expect(answers(order, 'sjf')).toBe(1);
  });
  it('knows what people call it', () => {
    const clients = { path: '/workload/arrivals/concurrency', help: 'requests under way at a time', choices: [] };
    const rate = { path: '/workload/arrivals/rate_per_s', help: 'requests that arrive', choices: [] };
    for (const query of ['users', 'clients', 'concurrent']) expect(answers(clients, query), query).toBe(2);
    for (const query of ['rpm', 'qps']) expect(answers(rate, query), query).toBe(2);
    for (const query of ['concurrent users', 'simultaneous  requests']) expect(answers(clients, query), query).toBe(2);
    for (const query of ['batch size', 'maximum batch size', 'batch']) expect(answers(seats, query), query).toBe(2);
    expect(answers(rate, 'users')).toBe(0);
    expect(answers(clients, 'batch size')).toBe(0);
  });
  it('wants every word, and finds nothing for none', () => {
    expect(answers(seats, 'seats waiting')).toBe(0);
    expect(answers(seats, '  ')).toBe(0);
  });
});
