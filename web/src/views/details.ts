// Notes below the load chart, and the footer line.
import { html, nothing, type TemplateResult } from 'lit';
import type { Report } from 'servecast';
import { countOf, formatCount, formatNumber, formatPercent, formatTime, sentence, spokenDuration } from '../lib/format';
import { getAt, type Document } from '../state/document';
import type { ViewContext } from './context';
import { isStale } from './verdict';
import { firstRun, whichRun } from '../lib/first-run';

/** Below the KV memory in use, which is of all pools together: a mean hides the fullest. */
export function renderPoolKv(report: Report): TemplateResult | typeof nothing {
  const pools = firstRun(report).pools?.filter((pool) => pool.kv_mean_usage !== null) ?? [];
  if (pools.length < 2) return nothing;
  return html`<p class="help" id="pool-kv">KV memory by pool: ${pools.map(
    (pool, index) =>
      html`${index > 0 ? '; ' : ''}<b>${pool.name}</b> ${formatPercent(pool.kv_mean_usage)}, at most ${formatPercent(pool.kv_peak_usage)}`,
  )}. The chart is of all together.</p>`;
}

/** Below the KV memory in use; nothing when no prompt was looked up or none could find anything. */
export function renderPrefixCache(report: Report): TemplateResult | typeof nothing {
  const {
    hit_rate: rate,
    block_hit_rate: blocks,
    hit_tokens: hits,
    evicted_blocks: evicted,
  } = firstRun(report).prefix_cache;
  if (rate === null) return nothing;
  const said = (pointer: string) => Number(getAt(report.scenario as Document, `/workload/${pointer}`) ?? 0);
  const shares = said('prefix/groups') * said('prefix/tokens') > 0 || said('sessions/turns') > 1;
  const { cpu, disk } = firstRun(report).kv_offload ?? {};
  if (hits + (cpu?.hit_tokens ?? 0) + (disk?.hit_tokens ?? 0) === 0 && !shares) {
    return report.workload.source === 'trace'
      ? html`<p class="help" id="prefix-cache">Prefix cache: no hits. Only hash ids in a trace say what its prompts share.</p>`
      : nothing;
  }
  return html`<p class="help" id="prefix-cache">Prefix cache: <b>${formatPercent(rate)}</b> of prompt tokens hit
    ${blocks === null ? nothing : html`(${formatPercent(blocks)} of blocks)`}${cpu ? `, ${formatPercent(cpu.hit_rate ?? 0)} more in host memory` : nothing}${disk ? `, ${formatPercent(disk.hit_rate ?? 0)} more on disk` : nothing}, counted when a prompt is first admitted${evicted > 0 ? html`; ${formatCount(evicted)} cached blocks evicted` : nothing}.</p>`;
}

/** Below the KV memory in use; nothing without drafts. */
export function renderSpeculation(report: Report): TemplateResult | typeof nothing {
  const { speculative } = firstRun(report);
  if (!speculative) return nothing;
  const {
    acceptance_length: length,
    acceptance_rate: rate,
    draft_tokens: drafts,
    wasted_draft_tokens: wasted,
  } = speculative;
  return html`<p class="help" id="speculation">Speculative decoding: a request's step with drafts yields <b>${formatNumber(length)}</b> tokens on average, as the model verifies drafts together with the token that is due; <b>${formatPercent(rate)}</b> of drafts are accepted, and ${formatCount(wasted)} of ${formatCount(drafts)} were computed for no one. A client gets the tokens of a step at once: ITL is the time between such bursts, TPOT that of a token.</p>`;
}

export function renderFooter(view: ViewContext): TemplateResult {
  const { shown, catalog } = view.state;
  if (!shown) return html`<p>${catalog ? `Engine ${catalog.engine_version}` : ''}</p>`;
  const { report, engine_ms: engineMs } = shown.outcome;
  const { arrived, simulated_s: simulated } = firstRun(report);
  const which = whichRun(report);
  return html`
    <p>
      ${isStale(view.state) ? html`<span>of the last scenario that ran</span>` : nothing}
      <span>${countOf(arrived, 'request')}</span>
      <span>${spokenDuration(simulated)}${which === '' ? '' : `, ${which}`}</span>
      <span>computed in ${formatTime(engineMs)}</span>
      <span>engine ${report.engine_version}</span>
      ${report.finished ? html`<span>fingerprint <code id="fingerprint">${report.fingerprint}</code></span>` : html`<span>partial run, which has no fingerprint</span>`}
      <span>scenario <code>${report.scenario_id}</code></span>
    </p>
    <p>
      Latency model ${report.latency_model.backend}: ${sentence(report.latency_model.description)}
    </p>
    <p>${'docs' in document.documentElement.dataset ? html`<a href="docs/">Documentation</a> · ` : nothing}<a href="method.txt">Method</a> · <a href="accuracy.txt">Accuracy</a> · <a href="LICENSE.txt">Licence</a> · <a href="NOTICE.txt">Notices</a></p>
  `;
}
