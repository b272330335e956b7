"""What could a reader of a page not see, read or reach?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

PHONE, DESK = 390, 1280

# Text whose contrast is below WCAG 2's level AA (4.5, or 3 for large text), folds opened first.
LOW_CONTRAST = """() => {
  document.querySelectorAll("details").forEach(fold => { fold.open = true; });
  const colour = text => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return { rgb: [r * scale, g * scale, b * scale], a };
  };
  const over = (top, under) => top.rgb.map((c, i) => c * top.a + under[i] * (1 - top.a));
  const grounds = new Map();
  const ground = element => {
    if (!element) return [255, 255, 255];
    if (!grounds.has(element)) {
      const own = colour(getComputedStyle(element).backgroundColor);
      grounds.set(element, over(own, ground(element.parentElement)));
    }
    return grounds.get(element);
  };
  const opacity = e => e ? getComputedStyle(e).opacity * opacity(e.parentElement) : 1;
  const luminance = rgb => rgb
    .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, style = getComputedStyle(element);
    if (!texts.currentNode.data.trim() || element.closest("script, style")) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const under = ground(element), ink = colour(style.color);
    ink.a *= opacity(element);
    const [low, high] = [luminance(over(ink, under)), luminance(under)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5))
      found.add(`${ratio.toFixed(2)}: ${style.color} on ${under.map(Math.round)}: ` +
                texts.currentNode.data.trim().slice(0, 30));
  }
  return [...found];
}"""
BROKEN_IMAGES = """() => Promise.all([...document.images].map(async image => {
  image.loading = "eager";
  await image.decode().catch(() => {});
  return image.naturalWidth && image.alt ? "" : image.src.slice(0, 100);
})).then(found => found.filter(Boolean))"""
SIDEWAYS = "document.documentElement.scrollWidth - window.innerWidth"


def complaints(tab: Any) -> list[str]:
    """From now on: errors and warnings of the console, and requests that failed or went out."""
    found: list[str] = []
    tab.on("console", lambda m: found.append(m.text) if m.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: found.append(str(error)))
    tab.on("requestfailed", lambda request: found.append(f"failed: {request.url}"))
    tab.on(
        "request",
        lambda r: None if r.url.startswith(("file:", "data:")) else found.append(f"asked: {r.url}"),
    )
    return found


def faults(browser: Any, page: Path) -> list[str]:
    """All that is wrong with a page on a desk and on a phone, by day and by night."""
    found = []
    for width in (DESK, PHONE):
        for scheme in ("light", "dark"):
            tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            said = complaints(tab)
            tab.goto(page.as_uri())
            sideways = tab.evaluate(SIDEWAYS)
            said += [f"scrolls sideways by {sideways} px"] if sideways > 0 else []
            said += [] if tab.title() else ["no title"]
            said += [f"no picture or no alt text: {src}" for src in tab.evaluate(BROKEN_IMAGES)]
            said += [f"contrast {text}" for text in tab.evaluate(LOW_CONTRAST)]
            found += [f"{page.name} at {width} px, {scheme}: {fault}" for fault in said]
            tab.close()
    return found
