// What the hub says when it refuses: problem+json (RFC 9457) and the Bearer challenge (RFC 6750), as one sentence.

export async function problemOf(response) {
  const text = await response.text().catch(() => "");
  let detail = "";
  if (/^application\/(problem\+)?json/.test(response.headers.get("content-type") || "")) {
    try {
      const body = JSON.parse(text);
      detail = String(body.detail || body.title || "");
    } catch {
      // The status alone must do.
    }
  } else {
    detail = text.slice(0, 300);
  }
  const error = /error="([^"]*)"/.exec(response.headers.get("www-authenticate") || "")?.[1];
  return {status: response.status, detail: detail || response.statusText || "No reason was given.", error};
}

export const sentence = ({status, detail, error}) => `${status}${error ? ` ${error}` : ""}: ${detail.replace(/\.?$/, ".")}`;
