// What somebody has entered into the page and not sent yet.

// Returns the forms of the page of which something is no longer as the page came with it. What Turbo keeps through a refresh does not count.
export function changedForms() {
  return [...document.forms].filter((form) => [...form.elements].some((control) => isChanged(control) && !control.closest("[data-turbo-permanent]")));
}

function isChanged(control) {
  if (control.disabled) return false;
  switch (control.localName) {
    case "textarea": return control.value !== control.defaultValue;
    case "select": return hasOtherOptions(control);
    case "input": return hasOtherValue(control);
    default: return false;
  }
}

function hasOtherValue(input) {
  if (input.type === "checkbox" || input.type === "radio") return input.checked !== input.defaultChecked;
  if (input.type === "file") return input.files.length > 0;
  // A browser gives these a value where the page gives none.
  if ((input.type === "range" || input.type === "color") && !input.hasAttribute("value")) return false;
  return input.type !== "hidden" && input.value !== input.defaultValue;
}

// Of a list that opens the browser selects an option itself, where the page selects none.
function hasOtherOptions(select) {
  const options = [...select.options];
  const selected = options.filter((option) => option.defaultSelected);
  if (select.type === "select-multiple" || select.size > 1) return options.some((option) => option.selected !== option.defaultSelected);
  return select.selectedIndex !== options.indexOf(selected.pop() ?? options.find((option) => !option.disabled));
}
