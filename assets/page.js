// Runs in the page itself (app/panels/navigation.py): what screen readers and keyboards need and Streamlit does not do.
(told => {
  document.documentElement.lang = told.language;
  if (told.walked) document.cookie = "glassleaf_walked=1; path=/; max-age=31536000; samesite=strict";
  const dress = () => {
    const nav = document.querySelector(".st-key-navigation");
    nav?.setAttribute("role", "navigation");
    nav?.setAttribute("aria-label", told.label);
    nav?.querySelectorAll("a").forEach((link, at) => {
      if (at !== told.open) return link.removeAttribute("aria-current");
      if (link.getAttribute("aria-current") === "page") return;
      link.setAttribute("aria-current", "page");
      if (window.innerWidth >= 768) link.scrollIntoView({block: "nearest"});  // not below the footer
    });
    // Streamlit's own words on an upload are English only.
    document.querySelectorAll("[data-testid=stFileUploaderDropzone], [data-testid=stTooltipErrorContent]").forEach(zone => {
      const walk = document.createTreeWalker(zone, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        const text = walk.currentNode;
        const said = text.nodeValue
          .replace(/^(Upload|Browse files)$/, told.upload)
          .replace(/^(\d+) ?([KMG]B) per file/, (_, size, unit) => told.most.replace("0", `${size} ${unit}`))
          .replace(/^Error: $/, "")
          .replace(/^File must be ([\d.]+?)(?:\.0)? ?([KMG]B) or smaller\.$/,
            (_, size, unit) => told.large.replace("0", `${size} ${unit}`))
          .replace(/^.* files are not allowed\.$/, told.kind);
        if (said !== text.nodeValue) text.nodeValue = said;
      }
    });
    // So are those in a menu.
    document.querySelectorAll("[role=listbox] [role=option]").forEach(option => {
      const text = document.createTreeWalker(option, NodeFilter.SHOW_TEXT).nextNode();
      const said = told.menu[text?.nodeValue];
      if (said && said !== text.nodeValue) text.nodeValue = said;
    });
    // So are those on a server that is gone, which name a command of its own (hidden in assets/page.css).
    const gone = [...document.querySelectorAll("[role=dialog] h2")].find(head => head.textContent === "Connection error");
    if (gone) {
      gone.firstChild.nodeValue = told.gone;
      gone.nextElementSibling.firstElementChild.firstChild.nodeValue = told.gone_until;
    }
    // On a phone a row is a card, which names its columns itself (assets/page.css).
    document.querySelectorAll("[class*=st-key-cards_] table").forEach(table => {
      const heads = [...table.querySelectorAll("thead th")].map(head => head.textContent);
      table.querySelectorAll("tbody tr").forEach(row => [...row.children].forEach((cell, at) => {
        if (cell.dataset.head !== heads[at]) cell.dataset.head = heads[at];
        cell.toggleAttribute("data-none", cell.textContent.trim() === "–");
      }));
    });
    const field = document.querySelector(".st-key-search_typed input");
    if (field && field !== window.glassleafField) field.focus();
    window.glassleafField = field;
  };
  dress();
  // The links may be drawn later: on a first visit, and whenever the sidebar of a phone is opened.
  window.glassleafSeen?.disconnect();
  let waiting = 0;
  window.glassleafSeen = new MutationObserver(() => {
    waiting ||= requestAnimationFrame(() => { waiting = 0; dress(); });
  });
  window.glassleafSeen.observe(document.body, {childList: true, subtree: true});
  // Dialogs and menus stand beside the app, and have its theme, too. Words of a chart have the colour of the theme in which they
  // were drawn: under another one all is drawn again.
  const app = document.querySelector("[data-testid=stApp]");
  const scheme = () => document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme;
  let drawn = scheme();
  window.glassleafTheme?.disconnect();
  window.glassleafTheme = new MutationObserver(() => {
    const before = drawn;
    if ((drawn = scheme()) !== before) document.querySelector(".st-key-draw_again button")?.click();
  });
  window.glassleafTheme.observe(app, {attributes: true, attributeFilter: ["class"]});
  // On a phone the sidebar lies over the page that was chosen in it.
  document.onclick = event => {
    if (window.innerWidth < 768 && event.target.closest?.(".st-key-navigation a"))
      document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
  };
})
