// Runs before the first paint: the theme that was chosen, or the system's.
(() => {
  const NEXT = {auto: "dark", dark: "light", light: "auto"};
  const MEDIA = {auto: "(prefers-color-scheme: dark)", dark: "all", light: "not all"};
  const LABEL = {auto: "as the system", dark: "dark", light: "light"};
  let theme = "auto";
  try {
    theme = localStorage.getItem("hikyaku-theme") || "auto";
  } catch {
    // Storage is closed to this page: the choice lasts until it is reloaded.
  }

  function apply() {
    document.getElementById("dark").media = MEDIA[theme] ?? MEDIA.auto;
    document.documentElement.dataset.theme = theme;
    const label = document.querySelector("#theme .theme-label");
    if (label) label.textContent = `Theme: ${LABEL[theme] ?? LABEL.auto}`;
  }

  apply();
  addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      theme = NEXT[theme] ?? "auto";
      try {
        localStorage.setItem("hikyaku-theme", theme);
      } catch {
        // As above.
      }
      apply();
    });
  });
})();
