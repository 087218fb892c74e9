// Runs in the page itself (app/panels/frame.py): beside the picture button of every chart one for SVG; both for the keyboard too.
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
  const save = (figure, kind) => {
    const svg = figure.querySelector("svg"), copy = svg.cloneNode(true), look = getComputedStyle(svg);
    const {width, height} = svg.getBoundingClientRect();
    const whole = document.createElementNS(svg.namespaceURI, "svg");  // with the room beside the drawing
    whole.setAttribute("width", width);
    whole.setAttribute("height", height);
    whole.style.cssText = `color: ${look.color}; font-family: ${look.fontFamily}`;
    copy.setAttribute("x", look.paddingLeft);
    copy.setAttribute("width", width - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight));
    copy.removeAttribute("style");
    whole.append(copy);
    const link = document.createElement("a"), picture = new Image();
    link.download = `${figure.dataset.name ?? "glassleaf-chart"}.${kind}`;
    link.href = picture.src = URL.createObjectURL(
      new Blob([new XMLSerializer().serializeToString(whole)], {type: "image/svg+xml"}));
    if (kind === "svg") return link.click();
    picture.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), {width: 2 * width, height: 2 * height});
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      link.href = canvas.toDataURL("image/png");
      link.click();
    };
  };
  const drawings = () => document.querySelectorAll(".glassleaf-drawing:not(:has(button))").forEach(figure => {
    figure.innerHTML = decodeURIComponent(figure.dataset.svg);
    const bar = document.createElement("div");
    for (const kind of ["png", "svg"]) {
      const button = document.createElement("button");
      button.textContent = kind.toUpperCase();
      button.title = words[kind];
      button.setAttribute("aria-label", words[kind]);
      button.onclick = () => save(figure, kind);
      bar.append(button);
    }
    figure.append(bar);
  });
  const vega = () => document.querySelectorAll("[data-testid=stVegaLiteChart]").forEach(chart => {
    const frame = chart.closest("[data-testid=stFullScreenFrame]");
    const bar = frame?.querySelector("[data-testid=stElementToolbarButtonContainer]");
    if (!bar || bar.querySelector(".glassleaf-svg")) return;
    const button = document.createElement("button");
    button.className = "glassleaf-svg";
    button.textContent = "SVG";
    button.title = words.svg;
    button.setAttribute("aria-label", words.svg);
    button.style.cssText = "font: 600 11px sans-serif; border: 0; background: none; color: inherit; min-width: 24px; min-height: 24px";
    button.onclick = () => save(chart, "svg");
    bar.append(button);
  });
  let asked = false;
  const soon = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; dress(); drawings(); vega(); });
  };
  dress();
  drawings();
  vega();
  window.glassleafCharts?.disconnect();  // of the language before
  window.glassleafCharts = new MutationObserver(soon);
  window.glassleafCharts.observe(document.body, {childList: true, subtree: true});
})
