// How many words of a page's main part can be seen, and how many Chinese characters: neither icons, nor drawings, nor what a closed fold holds.
() => {
  const main = document.querySelector("[data-testid=stMain]");
  const apart = "svg, canvas, script, style, [data-testid=stIconMaterial], [aria-hidden=true], .js-plotly-plot, .vega-embed";
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  let words = 0;
  let characters = 0;
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    const box = parent.getBoundingClientRect();
    const seen = box.width > 1 && box.height > 1
      && parent.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true});
    const fold = parent.closest("details:not([open])");
    const folded = fold && !fold.querySelector("summary").contains(parent);
    if (!seen || folded || parent.closest(apart)) {
      continue;
    }
    const text = walker.currentNode.textContent;
    words += (text.match(/[A-Za-z][A-Za-z'’-]*/g) || []).length;
    characters += (text.match(/\p{Script=Han}/gu) || []).length;
  }
  return {en: words, zh: characters};
}
