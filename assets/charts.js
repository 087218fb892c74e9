// Runs in the page itself (app/panels/frame.py): beside the camera of every chart a second one, for SVG; both for the keyboard too.
(words => {
  document.querySelector(".glassleaf-charts")?.closest("[data-testid=stElementContainer]")?.style.setProperty("display", "none");
  const name = (button, title) => {
    button.dataset.title = title;
    button.setAttribute("aria-label", title);
    button.setAttribute("role", "button");
    button.tabIndex = 0;
    button.onkeydown = key => (key.key === "Enter" || key.key === " ") && (key.preventDefault(), button.click());
  };
  const dress = () => document.querySelectorAll(".js-plotly-plot .modebar-group").forEach(group => {
    const png = group.querySelector(".modebar-btn:not(.glassleaf-svg)");
    if (!png || group.querySelector(".glassleaf-svg")) return;
    const svg = document.createElement("a");
    svg.className = "modebar-btn glassleaf-svg";
    svg.textContent = "SVG";
    svg.style.cssText = "font: 600 11px sans-serif; line-height: 20px; text-decoration: none; color: light-dark(#31333f, #e6e9ec)";
    svg.onclick = () => {
      const wanted = group.closest(".js-plotly-plot")._context.toImageButtonOptions;
      wanted.format = "svg";  // read at once, before the picture is made
      png.click();
      wanted.format = "png";
    };
    name(png, words.png);
    name(svg, words.svg);
    group.append(svg);
  });
  let asked = false;
  const soon = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; dress(); });
  };
  dress();
  window.glassleafCharts?.disconnect();  // of the language before
  window.glassleafCharts = new MutationObserver(soon);
  window.glassleafCharts.observe(document.body, {childList: true, subtree: true});
})
