// The same requests for a terminal, quoted for a POSIX shell.

import {hubUrl} from "./hub.js";

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const field = (name, value) => `--data-urlencode ${quote(`${name}=${value}`)}`;
const bearer = (token) => (token ? [`-H ${quote(`Authorization: Bearer ${token}`)}`] : []);
const join = (parts) => parts.join(" \\\n  ");

// fields: [[name, value], …]. What is said comes first; the token, which is long, last.
export const publishLine = (fields, token) =>
  join([`curl ${quote(hubUrl.href)}`, ...fields.map(([name, value]) => field(name, value)), ...bearer(token)]);

export const subscribeLine = (pairs, cursor, token) =>
  join([
    `curl -NG ${quote(hubUrl.href)}`,
    ...pairs.map(([name, value]) => field(name, value)),
    ...(cursor ? [`-H ${quote(`Last-Event-ID: ${cursor}`)}`] : []),
    ...bearer(token),
  ]);
