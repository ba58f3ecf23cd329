// Renders /openapi.json. It loads nothing else, and it builds text nodes only, never HTML from the document.
"use strict";

const methods = ["get", "post", "put", "patch", "delete"];

function element(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
  for (const child of children.flat(Infinity)) if (child) e.append(child);
  return e;
}

// prose makes `code` of what stands between backquotes.
function prose(text) {
  return (text || "").split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

function nameOf(ref) {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

// typeOf is a schema in a few words, with links to the named ones.
function typeOf(s) {
  if (!s) return ["anything"];
  if (s.$ref) return [element("a", { href: "#schema-" + nameOf(s.$ref) }, nameOf(s.$ref))];
  const alternatives = s.oneOf || s.anyOf;
  if (alternatives) return alternatives.flatMap((one, i) => [i ? " or " : "", ...typeOf(one)]);
  if ("const" in s) return [element("code", {}, JSON.stringify(s.const))];
  if (s.enum) return s.enum.flatMap((v, i) => [i ? ", " : "", element("code", {}, JSON.stringify(v))]);
  const types = [].concat(s.type || "anything");
  if (types.includes("array")) return ["list of ", ...typeOf(s.items)];
  if (types.includes("object") && s.title) return [s.title];
  if (types.includes("object") && s.additionalProperties instanceof Object) return ["object of ", ...typeOf(s.additionalProperties)];
  return [types.join(" or ") + (s.format ? " (" + s.format + ")" : "")];
}

// members is the table of an object's members; inner objects are tables inside it.
function members(s) {
  const rows = Object.entries(s.properties || {}).map(([name, p]) =>
    element("tr", {},
      element("td", {}, element("code", {}, name), (s.required || []).includes(name) ? "" : element("small", {}, " optional")),
      element("td", {}, typeOf(p)),
      element("td", {}, prose(p.description), p.default !== undefined ? " Default " + JSON.stringify(p.default) + "." : "")));
  return rows.length ? element("table", { tabindex: "0" }, rows) : null;
}

function schema(name, s) {
  return element("section", { id: "schema-" + name },
    element("h3", {}, name), element("p", {}, prose(s.description)), members(s),
    s.oneOf ? element("p", {}, "One of ", typeOf(s)) : null,
    (s.examples || []).map((example) => element("pre", { tabindex: "0" }, JSON.stringify(example))));
}

// sample is a value as one would send it, and the default.
function sample(s) {
  const said = [];
  if (s.default !== undefined) said.push(" Default ", element("code", {}, String(s.default)), ".");
  if ((s.examples || []).length) said.push(" Example ", element("code", {}, String(s.examples[0])), ".");
  return said;
}

function content(label, c) {
  const kinds = Object.entries(c || {});
  if (!kinds.length) return null;
  return kinds.map(([media, m]) => element("div", {},
    element("p", {}, label, element("code", {}, media), ": ", typeOf(m.schema)),
    m.schema && m.schema.properties ? members(m.schema) : null));
}

function operation(path, method, op) {
  const parameters = (op.parameters || []).map((p) =>
    element("tr", {},
      element("td", {}, element("code", {}, p.name), element("small", {}, " " + p.in + (p.required ? "" : ", optional"))),
      element("td", {}, typeOf(p.schema)), element("td", {}, prose(p.description), sample(p.schema || {}))));
  const replies = Object.entries(op.responses || {}).map(([status, r]) =>
    element("div", {}, element("p", {}, element("strong", {}, status), " ", r.description || ""), content("", r.content)));
  return element("section", { id: op.operationId },
    element("h3", {}, element("span", { class: "method " + method }, method.toUpperCase()), " ", element("code", {}, path),
      (op.security || []).length ? element("small", {}, " key") : null),
    element("p", {}, element("strong", {}, op.summary || ""), ". ", prose(op.description)),
    parameters.length ? element("table", { tabindex: "0" }, parameters) : null,
    op.requestBody ? content("Body ", op.requestBody.content) : null,
    element("details", {}, element("summary", {}, "Replies"), replies));
}

function render(doc) {
  const operations = Object.entries(doc.paths).flatMap(([path, item]) =>
    methods.filter((m) => item[m]).map((m) => ({ path, method: m, op: item[m] })));
  const parts = [element("h1", {}, doc.info.title), element("p", {}, prose(doc.info.description))];
  const nav = element("ul", {});
  for (const { path, method, op } of operations) {
    nav.append(element("li", {}, element("a", { href: "#" + op.operationId }, method.toUpperCase() + " " + path), " " + (op.summary || "")));
  }
  parts.push(element("nav", { "aria-label": "Operations" }, nav));
  for (const tag of doc.tags) {
    parts.push(element("h2", {}, tag.name), element("p", {}, prose(tag.description)));
    for (const { path, method, op } of operations) if ((op.tags || []).includes(tag.name)) parts.push(operation(path, method, op));
  }
  parts.push(element("h2", {}, "schemas"));
  for (const [name, s] of Object.entries(doc.components.schemas)) parts.push(schema(name, s));
  return parts;
}

fetch("/openapi.json")
  .then((reply) => reply.json())
  .then((doc) => {
    document.getElementById("document").replaceChildren(...render(doc));
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  })
  .catch((error) => {
    document.getElementById("document").replaceChildren(element("p", {}, "The document could not be shown: " + error));
  });
