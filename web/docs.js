// The page of /openapi.json: one fold for each operation.
function make(tag, text, parent, more = {}) {
  const node = document.createElement(tag);
  if (text !== null) node.textContent = text;
  Object.assign(node, more);
  parent?.append(node);
  return node;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  const range = schema.minimum !== undefined ? ` ${schema.minimum}…${schema.maximum}` : "";
  return (schema.format ? `${schema.type} (${schema.format})` : schema.type ?? "any") + range;
}

function table(parent, head, rows) {
  const t = make("table", null, parent), top = make("tr", null, make("thead", null, t)), body = make("tbody", null, t);
  t.tabIndex = 0; // on a narrow screen it scrolls, by keyboard too
  head.forEach((h) => make("th", h, top, { scope: "col" }));
  rows.forEach((row) => {
    const tr = make("tr", null, body);
    row.forEach((cell, i) => (i === 0 ? make("code", cell, make("td", null, tr)) : make("td", cell, tr)));
  });
}

function operation(doc, path, method, op, parent) {
  const fold = make("details", null, parent, { className: "card", open: path === "/predict" });
  const summary = make("summary", null, fold);
  make("b", method.toUpperCase(), summary);
  make("code", path, summary);
  make("span", op.summary, summary, { className: "quiet" });
  if (op.parameters) {
    make("h2", "Parameters, in the query or in the body", fold);
    table(fold, ["name", "meaning", "type", "default"],
      op.parameters.map((p) => [p.name, p.schema.description, typeOf(p.schema), String(p.schema.default ?? "")]));
  }
  if (op.requestBody) {
    make("h2", "Body", fold);
    table(fold, ["type", "schema"], Object.entries(op.requestBody.content).map(([type, c]) => [type, typeOf(c.schema)]));
  }
  make("h2", "Answers", fold);
  table(fold, ["status", "meaning"], Object.entries(op.responses).map(([status, r]) => [status, r.description]));
  if (path === "/predict") {
    make("h2", "Try", fold);
    make("pre", `curl --data-binary @picture.jpg -H 'Content-Type: image/jpeg' '${location.origin}/predict?max_keypoints=10'`, fold);
  }
}

const doc = await (await fetch("/openapi.json")).json(), main = document.getElementById("docs");
main.replaceChildren();
make("p", `${doc.info.description} Version ${doc.info.version}.`, main, { className: "quiet" });
for (const [path, methods] of Object.entries(doc.paths))
  for (const [method, op] of Object.entries(methods)) operation(doc, path, method, op, main);
for (const [name, schema] of Object.entries(doc.components.schemas)) {
  const fold = make("details", null, main, { className: "card" });
  make("code", name, make("summary", null, fold));
  make("pre", JSON.stringify(schema, null, 2), fold);
}
