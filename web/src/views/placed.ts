// Fields at their places in the document: what a field's element is told, from the catalogue, the
// document, what was opened and what the engine refuses.
import { html, nothing, type TemplateResult } from 'lit';
import type { Field, Issue } from 'servecast';
import { formatGiven } from '../lib/format';
import { equalJson, getAt, type Document, type Json } from '../state/document';
import {
  choiceText,
  explainedChoices,
  fieldAt,
  inheritedInPool,
  isDefaulted,
  isInherited,
  isPoolOwn,
  labelOf,
  turnsOf,
  unitOf,
  valueInForce,
  withRateOfSessions,
  type FormSource,
  type PlacedField,
} from '../state/fields';
import { poolList } from '../state/pools';
import type { ViewContext } from './context';
import './field';
import type { Disclosure, FieldModel } from './field';

export interface Look {
  readonly label?: string;
  readonly slider?: boolean;
  readonly held?: number | null;
  readonly verbatim?: boolean;
  /** Where the catalogue's is too long for a row. */
  readonly unit?: string;
  readonly more?: Disclosure;
  /** What a choice is called here. */
  readonly nameOf?: (choice: string) => string;
}

export function valueAt(source: FormSource, pointer: string): Json | undefined {
  const field = fieldAt(source, pointer);
  return field ? valueInForce(source, { field, pointer }) : undefined;
}

function modelOf(view: ViewContext, source: FormSource, placed: PlacedField, look: Look): FieldModel {
  const { state } = view;
  const { pointer } = placed;
  const field = withRateOfSessions(source, placed.field);
  const own = getAt(source.document, pointer);
  const base = getAt(state.base, pointer);
  const value = valueInForce(source, placed);
  const isOwn = isPoolOwn(pointer);
  return {
    pointer,
    field,
    label: look.label ?? (look.verbatim ? (pointer.split('/').at(-1) ?? pointer) : labelOf(pointer)),
    value,
    base: valueInForce({ ...source, document: state.base }, placed),
    isChanged:
      state.drafts.has(pointer) ||
      (isOwn ? !isInherited(source, pointer) : !equalJson(own, base) && !isSeeded(field, pointer, own, base)),
    isDefault: isDefaulted(source, placed),
    inherited: isOwn ? inheritedText(source, placed) : null,
    issues: issuesAt(view, pointer),
    draft: state.drafts.get(pointer),
    choices: look.nameOf
      ? field.choices.map((id) => ({ id, name: look.nameOf?.(id) ?? id, description: '' }))
      : explainedChoices(source.catalog, placed),
    hint:
      field === placed.field || typeof value !== 'number'
        ? ''
        : `${formatGiven(value)} ${unitOf(field)} × ${turnsOf(source)} turns = ${formatGiven(value * turnsOf(source))} ${unitOf(placed.field)}`,
    slider: (look.slider ?? false) && typeof value === 'number',
    held: look.held ?? null,
    anchor: look.slider ? anchorOf(source, placed) : null,
    verbatim: look.verbatim ?? false,
    unit: look.unit ?? unitOf(field),
    more: look.more ?? null,
  };
}

/** With the first edit of a pool, what was there by default is written out: that changes nothing. */
function isSeeded(field: Field, pointer: string, own: Json | undefined, base: Json | undefined): boolean {
  return base === undefined && pointer.startsWith(`${poolList}/`) && equalJson(own, field.default as Json | undefined);
}

/** "H100 SXM 80 GB", "256 requests"; of nothing, "none". */
function inheritedText(source: FormSource, { field, pointer }: PlacedField): string {
  const value = inheritedInPool(source, pointer);
  if (value === undefined || value === null) return 'none';
  const words =
    typeof value === 'number'
      ? formatGiven(value)
      : typeof value === 'object'
        ? 'table'
        : choiceText(source.catalog, pointer, String(value));
  return unitOf(field) === '' ? words : `${words} ${unitOf(field)}`;
}

/** From the default scenario, because every reader of a link has the same one. */
function anchorOf(source: FormSource, placed: PlacedField): number | null {
  const { catalog } = source;
  const document = catalog.presets.scenarios.find((preset) => preset.id === catalog.default_scenario)?.document as
    | Document
    | undefined;
  const value = valueInForce({ catalog, document: document ?? {}, resolved: null }, placed);
  return typeof value === 'number' ? value : null;
}

export function issuesAt(view: ViewContext, pointer: string): readonly Issue[] {
  const { run, drafts, beside_drafts: beside } = view.state;
  if (drafts.size > 0) return beside.filter((issue) => issue.path === pointer);
  if (run.kind !== 'refused' || run.reason === 'trace') return [];
  return run.issues.filter((issue) => issue.path === pointer);
}

export function renderField(
  view: ViewContext,
  source: FormSource,
  pointer: string,
  look: Look,
): TemplateResult | typeof nothing {
  const field = fieldAt(source, pointer);
  return field ? renderPlaced(view, source, { field, pointer }, look, 'f') : nothing;
}

export function renderPlaced(
  view: ViewContext,
  source: FormSource,
  placed: PlacedField,
  look: Look,
  prefix: string,
): TemplateResult {
  return html`<sc-field
    .app=${view.app}
    .model=${modelOf(view, source, placed, look)}
    .idPrefix=${prefix}
    data-pointer=${placed.pointer}
  ></sc-field>`;
}
