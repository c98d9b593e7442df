// Measured power and energy of an output token as servecast fidelity reads and scores them.
import assert from 'node:assert/strict';
import test from 'node:test';
import { fidelity, rowsOf, withFiles } from './measured_folders.mjs';

const header =
  'model,gpu,num_gpus,tp,ep,max_num_seqs,avg_batch_size,avg_output_len,itl_p50_ms,avg_power_w,avg_power_per_gpu_w,energy_per_token_j';
const of = (rows) => ({ 'lab/power.csv': [header, ...rows] });

test('FidelityPower_OfAGpuOrOfAll_IsScoredAGpu', () => {
  const rows = [
    'Llama-3.1-8B,H100,1,1,1,8,8,100,7,500,,0.5',
    'Llama-3.1-70B,H100,4,4,1,8,8,100,17,,440,4',
    'Llama-3.1-70B,H100,4,4,1,16,16,100,17,1800,,3',
  ];
  withFiles(of(rows), (folder) => {
    const { power, energy, tpot } = fidelity(folder).set('lab/power');
    assert.deepEqual([power.n, energy.n, tpot.n], [3, 3, 3]);
    const measured = rowsOf(folder).filter(({ metric }) => metric === 'power');
    assert.deepEqual(
      measured.map((row) => Number(row.measured)),
      [500, 440, 450],
    );
    for (const { predicted } of measured) assert.ok(predicted > 70 && predicted <= 700, predicted);
    assert.ok(power.median < 0.3, `${power.median}`);
  });
});

// Of seats that are full throughout, not of the end of a run, in which they empty.
test('FidelityPower_Energy_IsThatOfFullSeats', () => {
  withFiles(of(['Llama-3.1-8B,H100,1,1,1,8,8,2000,7,500,,0.5']), (folder) => {
    const { energy, power, tpot } = Object.fromEntries(
      rowsOf(folder).map(({ metric, predicted }) => [metric, Number(predicted)]),
    );
    const more = (energy * 8) / (power * tpot * 1e-3);
    assert.ok(more > 1 && more < 1.02, `${more} times`);
  });
});

test('FidelityPower_WithoutALawOrMeasurement_IsNotScored', () => {
  const rows = ['Llama-3.1-8B,A100 80GB,1,1,1,8,8,100,12,300,,0.5', 'Llama-3.1-8B,H100,,1,1,8,8,100,7,500,,'];
  withFiles(of(rows), (folder) => {
    const set = fidelity(folder).set('lab/power');
    assert.equal(set.tpot.n, 2);
    assert.equal(set.power, undefined);
    assert.equal(set.energy, undefined);
  });
});

test('FidelityPower_OfReplicasOfAttention_HasNoEnergy', () => {
  withFiles(of(['Qwen3-30B-A3B,H100,2,1,2,8,8,100,9,700,,1']), (folder) => {
    const set = fidelity(folder).set('lab/power');
    assert.equal(set.power.n, 1);
    assert.equal(set.energy, undefined);
  });
});

test('FidelityPower_OfNoPower_LeavesTheRowOut', () => {
  withFiles(of(['Llama-3.1-8B,H100,1,1,1,8,8,100,7,0,,0.5']), (folder) => {
    const set = fidelity(folder).set('lab/power');
    assert.equal(set.skipped.length, 1);
    assert.match(set.skipped[0].reason, /avg_power_w/);
  });
});
