// What somebody has entered into the page and not sent yet.

const PERMANENT = "[data-turbo-permanent]"; // what Turbo keeps through a refresh
const OUTSIDE = "input, textarea, select, [contenteditable]";

const edited = new WeakMap(); // element with contenteditable → what was in it before somebody wrote into it

// The page says nowhere what was in such an element at first. Heard before an editor hears it, which may write itself, or stop the event.
globalThis.document?.addEventListener("beforeinput", ({target}) => {
  const host = target instanceof Element && target.closest("[contenteditable]");
  if (host && !edited.has(host)) edited.set(host, host.innerHTML);
}, true);

// Returns the forms of the page of which something is no longer as the page came with it.
export function changedForms() {
  return [...document.querySelectorAll("form")].filter((form) => controlsOf(form).some((control) => isChanged(control) && !control.closest(PERMANENT)));
}

// A field named "elements" hides the property of its form, as something named "forms" hides the document's.
function controlsOf(form) {
  return [...Reflect.get(HTMLFormElement.prototype, "elements", form)];
}

// Returns the same of what belongs to no form: controls, and elements with contenteditable.
export function changedControls() {
  return [...document.querySelectorAll(OUTSIDE)].filter((control) => !control.form && !control.closest(PERMANENT) && (isChanged(control) || isEdited(control)));
}

function isEdited(element) {
  if (!edited.has(element)) return false;
  if (edited.get(element) !== element.innerHTML) return true;
  edited.delete(element); // a refresh may bring other contents
  return false;
}

function isChanged(control) {
  if (control.disabled) return false;
  switch (control.localName) {
    case "textarea": return control.value !== control.defaultValue && control.value !== valueGiven(control);
    case "select": return hasOtherOptions(control);
    case "input": return hasOtherValue(control);
    // An editor, as <trix-editor>.
    default: return control.localName.includes("-") && typeof control.defaultValue === "string" && control.value !== control.defaultValue;
  }
}

function hasOtherValue(input) {
  if (input.type === "checkbox") return input.checked !== input.defaultChecked;
  // Of several that the page has checked in one group the browser has left one.
  if (input.type === "radio") return input.checked && !input.defaultChecked;
  if (input.type === "file") return input.files.length > 0;
  return input.type !== "hidden" && input.value !== input.defaultValue && input.value !== valueGiven(input);
}

// A browser writes what the page gives as it would itself: a time without the seconds that Rails says, a colour in small letters. Asked of
// another control that nobody has touched, in a document in which none comes to life.
function valueGiven(control) {
  const untouched = document.implementation.createHTMLDocument("").createElement(control.localName);
  for (const attribute of control.attributes) untouched.setAttributeNode(attribute.cloneNode());
  untouched.defaultValue = control.defaultValue;
  return untouched.value;
}

// Of a list that opens the browser selects an option itself, where the page selects none.
function hasOtherOptions(select) {
  const options = [...select.options];
  const selected = options.filter((option) => option.defaultSelected);
  if (select.type === "select-multiple" || select.size > 1) return options.some((option) => option.selected !== option.defaultSelected);
  return select.selectedIndex !== options.indexOf(selected.pop() ?? options.find((option) => !option.matches(":disabled")));
}
