// The row above a pane that says what its marks mean.

export interface KeyEntry {
  readonly label: string;
  /** Classes of the mark before the label; "": it has one in its words. */
  readonly mark?: string;
}

export function paneKey(entries: readonly KeyEntry[], title = ''): HTMLElement {
  const row = document.createElement('p');
  row.className = 'pane-key';
  row.append(title);
  for (const { label, mark = '' } of entries) {
    const key = document.createElement('span');
    key.className = 'key';
    if (mark !== '') {
      const swatch = document.createElement('i');
      swatch.className = mark;
      key.append(swatch);
    }
    key.append(label);
    row.append(key);
  }
  return row;
}
