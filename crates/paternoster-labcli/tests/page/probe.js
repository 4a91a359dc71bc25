// Looks at a page from within, when it is drawn: what is on its canvases and in its drawings, what
// it has loaded, what went wrong. The answer goes to the page around it, as JSON.

{
  const failures = [];
  addEventListener("error", (event) => failures.push(String(event.message)));
  const report = console.error;
  console.error = (...words) => (failures.push(words.join(" ")), report(...words));

  /** The pixels of lines, areas and marks: those with a hue. Axes, grids and texts are grey. */
  function pixelsWithHue(canvas) {
    if (canvas.width === 0 || canvas.height === 0) return 0;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) {
      const hue = Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]);
      if (data[i + 3] > 100 && hue > 60) found += 1;
    }
    return found;
  }

  /** Of each row of dots, how far the outermost is from the middle, as a part of half of the drawing. */
  function dotsByRow(section) {
    const reach = new Map();
    for (const dot of section.querySelectorAll("svg.bars circle.dot")) {
      const half = dot.ownerSVGElement.viewBox.baseVal.width / 2;
      const row = Math.floor(dot.cy.baseVal.value / 92);
      reach.set(row, Math.max(reach.get(row) || 0, Math.abs(dot.cx.baseVal.value - half) / half));
    }
    return [...reach.values()];
  }

  function look() {
    const sections = [...document.querySelectorAll("section")].map((section) => [section.id, {
      canvases: [...section.querySelectorAll("canvas")].map(pixelsWithHue),
      shapes: section.querySelectorAll("svg.bars :is(rect, circle, path):not(pattern *)").length,
      rows: section.querySelectorAll("tbody tr").length,
      dots: dotsByRow(section),
    }]);
    const unnamed = [...document.querySelectorAll("canvas, svg.bars")]
      .filter((drawing) => !drawing.closest("[aria-label]")).length;
    const scaled = [...document.querySelectorAll("svg.bars")]
      .filter((drawing) => Math.abs(drawing.viewBox.baseVal.width - drawing.clientWidth) > 1).length;
    const cut = [...document.querySelectorAll("svg.bars text")].filter((text) => {
      const { x, width } = text.getBBox();
      return x < -1 || x + width > text.ownerSVGElement.viewBox.baseVal.width + 1;
    }).map((text) => text.textContent);
    const answer = {
      title: document.title,
      heading: (document.querySelector("h1") || {}).textContent,
      text: document.querySelector("main").textContent,
      scripts: document.scripts.length,
      images: document.images.length,
      sections: Object.fromEntries(sections),
      unnamed,
      scaled,
      cut,
      loaded: performance.getEntriesByType("resource").map((entry) => entry.name),
      page_width: document.documentElement.scrollWidth,
      window_width: innerWidth,
      failures,
    };
    parent.postMessage(btoa(unescape(encodeURIComponent(JSON.stringify(answer)))), "*");
  }

  addEventListener("load", () => setTimeout(look, 500));
}
