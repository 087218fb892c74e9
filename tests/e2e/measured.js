// Words of a chart: 12 px as drawn, and 4.5:1 against the page (marks 3:1; an icon stands on one). Targets, but for links in a sentence: 24 px.
() => {
    const parse = colour => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    const over = (front, back) => [0, 1, 2].map(i => front[i] * (front[3] ?? 1) + back[i] * (1 - (front[3] ?? 1)));
    const light = colour => colour.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const above = node => node ? [node, ...above(node.parentElement)] : [];
    const ground = node => above(node).reverse().map(one => parse(getComputedStyle(one).backgroundColor)).reduce(
        (back, front) => over(front, back), [255, 255, 255]);
    const shown = node => {
        const {left, right, width, height} = node.getBoundingClientRect();
        return width > 1 && height > 1 && right > 0 && left < innerWidth && !node.closest("[style*=clip]")
            && node.checkVisibility({opacityProperty: true, visibilityProperty: true});
    };
    const found = [];
    for (const text of document.querySelectorAll("[data-testid=stMain] svg text")) {
        for (const node of [text, ...text.querySelectorAll("tspan")]) {
            const own = [...node.childNodes].filter(one => one.nodeType === Node.TEXT_NODE).map(one => one.nodeValue).join("").trim();
            if (!own || !shown(text)) continue;
            const {fontSize, fontFamily, fill} = getComputedStyle(node), {a, b} = text.getScreenCTM();
            const size = parseFloat(fontSize) * Math.hypot(a, b), back = ground(text);
            const [low, high] = [light(over(parse(fill), back)), light(back)].sort((one, other) => one - other);
            const ratio = (high + 0.05) / (low + 0.05), enough = /[\p{L}\p{N}]/u.test(own) ? 4.5 : 3;
            if (size < 11.99) found.push(`chart-text: ${own} is ${size.toFixed(1)} px`);
            if (ratio < enough && !fontFamily.includes("Symbols")) found.push(`chart-contrast: ${own} has ${ratio.toFixed(2)}:1 (${fill} on ${back})`);
        }
    }
    for (const node of document.querySelectorAll("a[href], button, summary, [role=tab], [role=switch]")) {
        const {width, height} = (node.role === "switch" ? node.closest("label") : node).getBoundingClientRect();
        if (!node.disabled && shown(node) && getComputedStyle(node).display !== "inline" && Math.min(width, height) < 23.99)
            found.push(`target: ${node.ariaLabel ?? node.textContent} is ${width.toFixed(0)} x ${height.toFixed(0)} px`);
    }
    return found;
}
