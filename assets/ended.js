// Runs in the page itself (app/panels/tray.py): whoever looks at another tab is told by this one's title that a job has ended.
(words => {
  document.querySelectorAll(".glassleaf-ended").forEach(mark => {
    mark.closest("[data-testid=stElementContainer]")?.style.setProperty("display", "none");
  });
  if (!document.hidden) return;
  let own = document.title;
  const keep = () => {
    if (document.title === words) return;
    own = document.title;  // the page was drawn again, and named
    document.title = words;
  };
  const watch = new MutationObserver(keep);
  watch.observe(document.head, {childList: true, subtree: true, characterData: true});
  keep();
  document.addEventListener("visibilitychange", () => {
    watch.disconnect();
    if (document.title === words) document.title = own;
  }, {once: true});
})
