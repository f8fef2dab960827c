// Small helpers to build the page. Data only ever becomes text nodes and attributes, never markup.

export const $ = (selector, root = document) => root.querySelector(selector);

// el("p", {class: "note", onclick: f}, "text", child): attributes, listeners (on…), properties (.name), children.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith(".")) element[key.slice(1)] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Changes text only where it differs, so that a live region is not read again for nothing.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A button that copies what `text()` returns, and says so.
export function copyButton(text, label = "Copy") {
  const button = el("button", {type: "button", class: "quiet"}, label);
  button.addEventListener("click", async () => {
    setText(button, (await copy(text())) ? "Copied" : "Select and copy");
    setTimeout(() => setText(button, label), 1500);
  });
  return button;
}

// The clipboard needs a secure context, which plain http on another machine is not.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", {".value": text, class: "visually-hidden"});
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
