// A table with a row per key. A column is [title, class, function to text, function to mark class,
// action]; with an action its cells are buttons. A column without any text is hidden.
class Table {
  constructor(id, columns) {
    this.element = byId(id);
    this.columns = columns;
    this.body = this.element.tBodies[0];
    this.rows = new Map();
    const head = this.element.tHead.rows[0];
    for (const [title, kind] of columns) {
      const cell = head.appendChild(make("th", title, kind === "number" ? kind : ""));
      cell.scope = "col";
    }
  }

  show(entries, key) {
    const removed = new Set(this.rows.keys());
    const added = document.createDocumentFragment();
    for (const entry of entries) {
      const name = key(entry);
      removed.delete(name);
      let row = this.rows.get(name);
      if (!row) {
        row = this.add(added);
        this.rows.set(name, row);
      }
      row.entry = entry;
      this.fill(row);
    }
    for (const name of removed) {
      this.rows.get(name).element.remove();
      this.rows.delete(name);
    }
    this.body.append(added);
    this.columns.forEach(([, kind], index) => {
      const empty = kind !== "trend" && index > 0 && ![...this.rows.values()].some((row) => row.texts[index]);
      this.element.classList.toggle(`without-${index + 1}`, empty);
    });
  }

  add(parent) {
    const element = parent.appendChild(make("tr"));
    const cells = this.columns.map(([title, kind], index) => {
      const cell = element.appendChild(make(index ? "td" : "th", "", kind));
      if (index) cell.dataset.label = title;
      else cell.scope = "row";
      return cell;
    });
    return { element, cells, texts: [], marks: [], entry: null };
  }

  fill(row) {
    this.columns.forEach(([, kind, text, mark, action], index) => {
      if (kind === "trend") return;
      const value = text(row.entry);
      const markClass = mark ? mark(row.entry) : "";
      if (row.texts[index] === value && row.marks[index] === markClass) return;
      row.texts[index] = value;
      row.marks[index] = markClass;
      const cell = row.cells[index];
      cell.classList.toggle("none", value === "");
      if (action && value) {
        const button = make("button", value, "link");
        button.type = "button";
        button.dataset[action] = value;
        cell.replaceChildren(button);
      } else cell.replaceChildren(markClass && value ? make("span", value, `mark ${markClass}`) : value);
    });
  }
}
