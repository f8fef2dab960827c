// What the hub says about a token: each check, and what it permits.

import {el} from "./dom.js";
import {ask} from "./hub.js";
import {nameOf} from "./matchers.js";
import {problemOf, sentence} from "./problem.js";

export async function explain(token, role) {
  const response = await ask("explain", {token, role});
  if (!response.ok) throw new Error(sentence(await problemOf(response)));
  return response.json();
}

// One sentence: the first check that failed, or what the token permits instead.
export async function whyRefused(token, role) {
  if (!token) return "No token was sent.";
  const report = await explain(token, role).catch(() => null);
  if (!report) return "";
  if (!report.valid) return report.checks.find(({ok}) => ok === false)?.message ?? "";
  const permitted = topicsOf(report, role);
  return permitted.length > 0 ? `The token permits ${role}s only: ${permitted.join(", ")}.` : `The token permits nothing to a ${role}.`;
}

export function drawReport(report, role) {
  const failed = report.checks.find(({ok}) => ok === false);
  const passed = report.checks.filter(({ok}) => ok === true).length;
  return el("section", {class: "report", "data-role": role, "data-valid": String(report.valid)},
    el("h4", {}, role === "publisher" ? "As publisher" : "As subscriber", " ",
      el("span", {class: `badge ${report.valid ? "good" : "bad"}`}, report.valid ? "valid" : "refused"),
      report.legacy && el("span", {class: "badge"}, "0.x")),
    failed ? el("p", {class: "refusal"}, el("strong", {}, `${failed.check}:`), ` ${failed.message}`) : drawPermits(report, role),
    el("details", {}, el("summary", {}, `${passed} of ${report.checks.length} checks passed`),
      el("ul", {class: "checks"}, ...report.checks.map(drawCheck))),
  );
}

function drawPermits(report, role) {
  const permitted = topicsOf(report, role);
  return el("p", {class: "permits"}, permitted.length > 0 ? "Permits " : "Permits nothing.",
    ...permitted.flatMap((topic, index) => [index > 0 ? ", " : "", el("code", {}, topic)]));
}

function drawCheck({check, ok, message}) {
  const [mark, word] = ok === true ? ["✓", "passed"] : ok === false ? ["✗", "failed"] : ["–", "not checked"];
  return el("li", {"data-ok": String(ok)},
    el("span", {class: "mark", "aria-hidden": "true"}, mark),
    el("span", {}, el("span", {class: "visually-hidden"}, `${word}: `), el("strong", {}, check), message ? ` ${message}` : ""));
}

function topicsOf({permits}, role) {
  const details = permits?.[role === "publisher" ? "publish" : "subscribe"] ?? [];
  return details.map(({type, pattern}) => (type === "exact" || pattern === "*" ? pattern : `${pattern} (${nameOf(type)})`));
}
