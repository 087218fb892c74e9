// Runs in the page itself (app/panels/navigation.py): what screen readers need and Streamlit does not say.
(told => {
  document.documentElement.lang = told.language;
  const dress = () => {
    const nav = document.querySelector(".st-key-navigation");
    if (!nav) return;
    nav.setAttribute("role", "navigation");
    nav.setAttribute("aria-label", told.label);
    nav.querySelectorAll("a").forEach((link, at) => {
      if (at === told.open) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      link.onclick ??= () => {
        // On a phone the sidebar lies over the page.
        if (window.innerWidth < 768) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
      };
    });
  };
  dress();
  // Links are drawn after this, on a first visit.
  window.glassleafWatch?.disconnect();
  window.glassleafWatch = new MutationObserver(dress);
  window.glassleafWatch.observe(document.querySelector("[data-testid=stSidebar]"), {childList: true, subtree: true});
})
