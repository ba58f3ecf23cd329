// The button for light and dark, as the application has it: what it chooses, /assets/theme.js finds before the next first paint.
"use strict";

const button = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

function show() {
  button.classList.toggle("dark", dark());
  button.setAttribute("aria-label", dark() ? "Light theme" : "Dark theme");
}

button.addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // A browser that keeps nothing forgets it.
  }
  show();
});
system.addEventListener("change", show);
show();
button.hidden = false;
