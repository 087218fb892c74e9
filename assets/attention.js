// Runs in the page itself (app/panels/attention.py): moves the focus to what has just come, and says it to whoever listens.
(told => {
  let live = document.getElementById("glassleaf-live");
  if (!live) {
    live = document.createElement("div");
    live.id = "glassleaf-live";
    live.setAttribute("role", "status");
    live.setAttribute("aria-live", "polite");
    live.style.cssText = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)";
    document.body.append(live);
  }
  live.textContent = told.words;
  const box = document.querySelector(`.st-key-${told.key}`);
  if (!box) return;
  box.tabIndex = -1;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", told.label);
  box.style.outline = "none";  // the answer is seen without it, and nothing in the box itself can be pressed
  box.style.scrollMarginTop = "var(--glassleaf-above, 4.5rem)";
  // Once the new answer is drawn, so that its height is known.
  setTimeout(() => {
    box.focus({preventScroll: true});
    const {top, bottom} = box.getBoundingClientRect();
    const inView = top >= parseFloat(getComputedStyle(box).scrollMarginTop) - 12 && Math.min(bottom, top + 320) <= window.innerHeight;
    if (!inView) box.scrollIntoView({block: "start"});
  }, 60);
})
