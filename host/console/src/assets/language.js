// uPlot writes numbers in the browser's language, and does not begin where that is not a language: "en-US@posix".
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' });
}
