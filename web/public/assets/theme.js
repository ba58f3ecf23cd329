// Before the first paint: the theme that the button chose, if it was ever used. Without one the page follows the system.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // A browser that keeps nothing follows the system.
}
