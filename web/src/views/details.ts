// What opens below the charts: the scenario as text, what is not modelled, notices; and the footer line.
import { html, nothing, type TemplateResult } from 'lit';
import type { Issue, Report } from 'servecast';
import { download } from '../lib/download';
import { countOf, formatCount, formatPercent, formatTime, sentence, spokenDuration } from '../lib/format';
import { needPart } from '../lib/part';
import { getAt, type Document } from '../state/document';
import type { ViewContext } from './context';
import { isStale } from './verdict';

/** Below the KV memory in use, which is of all pools together: a mean hides the fullest. */
export function renderPoolKv({ pools }: Report): TemplateResult | typeof nothing {
  if (!pools) return nothing;
  return html`<p class="help" id="pool-kv">KV memory by pool: ${pools.map(
    (pool, index) =>
      html`${index > 0 ? '; ' : ''}<b>${pool.name}</b> ${formatPercent(pool.kv_mean_usage)}, at most ${formatPercent(pool.kv_peak_usage)}`,
  )}. The chart is of all together.</p>`;
}

/** Below the KV memory in use; nothing when no prompt was looked up or none could find anything. */
export function renderPrefixCache(report: Report): TemplateResult | typeof nothing {
  const { hit_rate: rate, block_hit_rate: blocks, hit_tokens: hits, evicted_blocks: evicted } = report.prefix_cache;
  if (rate === null) return nothing;
  const said = (pointer: string) => Number(getAt(report.scenario as Document, `/workload/${pointer}`) ?? 0);
  const shares = said('prefix/groups') * said('prefix/tokens') > 0 || said('sessions/turns') > 1;
  const { cpu, disk } = report.kv_offload ?? {};
  if (hits + (cpu?.hit_tokens ?? 0) + (disk?.hit_tokens ?? 0) === 0 && !shares) {
    return report.workload.source === 'trace'
      ? html`<p class="help" id="prefix-cache">Prefix cache: no hits. Only hash ids in a trace say what its prompts share.</p>`
      : nothing;
  }
  return html`<p class="help" id="prefix-cache">Prefix cache: <b>${formatPercent(rate)}</b> of prompt tokens hit
    ${blocks === null ? nothing : html`(${formatPercent(blocks)} of blocks)`}${cpu ? `, ${formatPercent(cpu.hit_rate ?? 0)} more in host memory` : nothing}${disk ? `, ${formatPercent(disk.hit_rate ?? 0)} more on disk` : nothing}, counted when a prompt is first admitted${evicted > 0 ? html`; ${formatCount(evicted)} cached blocks evicted` : nothing}.</p>`;
}

/** Every number of the report; its code is fetched when they are first looked at. */
export function renderAllNumbers(report: Report | null, waitingFor: string): TemplateResult {
  if (!report) return html`<p class="quiet-text">${waitingFor}</p>`;
  needPart('sc-numbers', () => import('./numbers'));
  return html`<sc-numbers .report=${report}></sc-numbers>`;
}

/** Its code is fetched with the first cluster that is looked at. */
export function renderCluster(report: Report, fileStem: string): TemplateResult {
  needPart('sc-cluster', () => import('./cluster'));
  return html`<sc-cluster .report=${report} .fileStem=${fileStem}></sc-cluster>`;
}

export interface ScenarioEditor {
  /** null: shows the current document. */
  readonly text: string | null;
  readonly issues: readonly Issue[];
  edit(text: string | null): void;
  apply(): void;
}

export function renderScenario(view: ViewContext, editor: ScenarioEditor): TemplateResult {
  const { document, shown } = view.state;
  const current = JSON.stringify(document, null, 2);
  const text = editor.text ?? current;
  const resolved = shown ? JSON.stringify(shown.outcome.report.scenario, null, 2) : '';
  const save = (name: string, content: string) =>
    download(name, new Blob([`${content}\n`], { type: 'application/json' }));
  return html`
    <div class="scenario-texts">
      <div>
        <label for="scenario-text">Scenario document (JSON)</label>
        <textarea
          id="scenario-text"
          rows="22"
          spellcheck="false"
          autocomplete="off"
          aria-invalid=${editor.issues.length > 0}
          aria-describedby=${editor.issues.length > 0 ? 'scenario-issues' : nothing}
          .value=${text}
          @input=${(event: Event) => editor.edit((event.target as HTMLTextAreaElement).value)}
        ></textarea>
        ${
          editor.issues.length > 0
            ? html`<ul class="issues" id="scenario-issues" role="alert">${editor.issues.map((issue) => html`<li>${issue.path === '' ? nothing : html`<b>${issue.path}</b>: `}${sentence(issue.message)}</li>`)}</ul>`
            : nothing
        }
        <div class="button-row">
          <button class="primary" type="button" ?disabled=${editor.text === null} @click=${() => editor.apply()}>Apply</button>
          <button type="button" ?disabled=${editor.text === null} @click=${() => editor.edit(null)}>Revert</button>
          <button type="button" @click=${() => save('scenario.json', current)}>Download scenario.json</button>
        </div>
      </div>
      <div>
        <label for="resolved-text">Resolved: presets inlined, runs as it is</label>
        <textarea id="resolved-text" rows="22" readonly .value=${resolved}></textarea>
        <div class="button-row"><button type="button" ?disabled=${resolved === ''} @click=${() => save('scenario-resolved.json', resolved)}>Download resolved.json</button></div>
      </div>
    </div>
  `;
}

export function renderNotModelled(view: ViewContext): TemplateResult {
  const { catalog } = view.state;
  return html`
    <ul class="plain-list">${catalog?.not_modelled.map((item) => html`<li>${item}</li>`)}</ul>
    <h3>Notices</h3>
    <ul class="plain-list">${catalog?.notices.map((item) => html`<li>${item}</li>`)}</ul>
  `;
}

export function renderFooter(view: ViewContext): TemplateResult {
  const { shown, catalog } = view.state;
  if (!shown) return html`<p>${catalog ? `Engine ${catalog.engine_version}` : ''}</p>`;
  const { report, engine_ms: engineMs } = shown.outcome;
  return html`
    <p>
      ${isStale(view.state) ? html`<span>of the last scenario that ran</span>` : nothing}
      <span>${countOf(report.arrived, 'request')}</span>
      <span>${spokenDuration(report.simulated_s)} in ${formatTime(engineMs)}</span>
      <span>engine ${report.engine_version}</span>
      ${report.finished ? html`<span>fingerprint <code id="fingerprint">${report.fingerprint}</code></span>` : html`<span>partial run, which has no fingerprint</span>`}
      <span>scenario <code>${report.scenario_id}</code></span>
    </p>
    <p>
      Latency model ${report.latency_model.backend}: ${sentence(report.latency_model.description)}
    </p>
  `;
}
