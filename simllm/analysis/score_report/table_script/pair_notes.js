/** The notes of a pair: what the last column of the table says about it. */

function notes(pair) {
  const found = [];
  if (pair.boilerplate) found.push("the reference is boilerplate");
  if (pair.empty) found.push("a text is empty");
  else if (!several && pair.unrelated) found.push("scores like unrelated texts");
  if (isChanged(pair)) {
    const where = data.same.length > 1 ? `${data.same.filter((_, i) => pair.changed[i]).join(", ")}: ` : "";
    found.push(`${where}meaning may have changed`);
    pair.changed.forEach((changed, i) => {
      const words = changed ? pair.changedBy?.[i] : null;
      const name = data.same.length > 1 ? `${data.same[i]} ` : "";
      if (words?.length) found.push(`${name}changed by: ${quoted(words)}`);
      else if (words) found.push(`${name}changed by no single word`);
    });
  }
  for (const [note, clauses, more] of pair.clauses ?? []) {
    found.push(`${note}: ${quoted(clauses)}${more ? ` and ${more} more` : ""}`);
  }
  if (pair.long) found.push("a text is too long for the model");
  if (pair.cut) found.push(`cut after ${data.longest.toLocaleString("en")} characters${data.hasReferences ? ", words not compared" : ""}`);
  else if (!several && !pair.empty) {
    const reference = [...wordsOf(pair.reference)];
    const candidate = wordsOf(pair.candidates[0]);
    const missing = reference.filter((word) => !candidate.has(word)).length;
    if (!candidate.size) found.push("the candidate has no words");
    else if (!reference.length) found.push(`the ${otherTexts[0]} has no words`);
    else if (missing === reference.length) found.push("no common words");
    else if (missing && data.hasReferences) found.push(`${missing} of ${reference.length} distinct reference words missing`);
  }
  return found.join("; ");
}
