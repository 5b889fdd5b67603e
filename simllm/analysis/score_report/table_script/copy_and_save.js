/** Copies of the pairs that match, for the clipboard and for files, as TSV or JSON. */

function record(pair) {
  const fields = { pair: pair.number };
  if (pair.id !== undefined) fields.id = pair.id;
  for (const column of columns.slice(1)) fields[column.name] = column.value(pair);
  if (several) data.same.forEach((_, i) => { fields[nameOfSame(i)] = pair.same[i]; });
  if (hasCauses) {
    const words = (pair.changedBy ?? []).map((own, i) => (own ? `${several ? `${data.same[i]}: ` : ""}${own.join(", ")}` : ""));
    fields["changed by"] = words.filter(Boolean).join("; ");
  }
  data.fields.forEach((name, i) => { fields[`group ${name}`] = pair.groups[i]; });
  fields.note = notes(pair);
  pair.candidates.forEach((text, i) => { fields[several ? `candidate ${data.systems[i]}` : "candidate"] = text; });
  for (const name of otherTexts) fields[name] = pair[name];
  return fields;
}

function shownAs(form) {
  const records = shown.map(record);
  const line = (values) => values.map((value) => asText(value ?? "").replace(/\s/g, " ")).join("\t");
  return form === "json"
    ? JSON.stringify(records, null, 1)
    : [line(Object.keys(record(data.pairs[0]))), ...records.map((fields) => line(Object.values(fields)))].join("\n");
}

async function copy(form) {
  try {
    await navigator.clipboard.writeText(shownAs(form));
    say(`Copied ${count(shown.length)}.`, "done");
  } catch {
    say("The browser does not allow copying.", "done");
  }
}

function save(form) {
  const href = URL.createObjectURL(new Blob([shownAs(form), "\n"]));
  element("a", { href, download: `pairs.${form}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // some browsers read the file after the click
  say(`Saved ${count(shown.length)} as pairs.${form}.`, "done");
}
