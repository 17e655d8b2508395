// SPDX-License-Identifier: MIT OR Apache-2.0
// Looks at a page from within, and tells the page around it what it found.
(function () {
  var errors = [], blobs = [], names = [];
  addEventListener("error", function (e) { errors.push(String(e.message)); }, true);
  addEventListener("unhandledrejection", function (e) { errors.push(String(e.reason)); });
  addEventListener("securitypolicyviolation", function (e) { errors.push(e.violatedDirective + " " + e.blockedURI); });
  // What is saved is noted when it is put together: reading it back would take time that a headless browser may not give.
  var Real = Blob;
  window.Blob = function (parts, options) {
    blobs.push({ type: options.type, text: parts.join("") });
    return new Real(parts, options);
  };
  HTMLAnchorElement.prototype.click = function () { names.push(this.download); };

  function rgb(text) { return (text.match(/[\d.]+/g) || []).map(Number); }
  function light(c) {
    var part = c.slice(0, 3).map(function (v) {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  }
  function contrast(a, b) {
    var x = light(a), y = light(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }
  function ground(element) {
    for (; element; element = element.parentElement) {
      var c = rgb(getComputedStyle(element).backgroundColor);
      if (c.length === 3 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  }
  function visible(element) {
    var box = element.getBoundingClientRect();
    return element.checkVisibility({ visibilityProperty: true }) && box.width + box.height > 0;
  }
  function all(selector, within) { return Array.from((within || document).querySelectorAll(selector)); }

  function texts() {
    var least = { size: 1e9, contrast: 1e9 };
    all("body *").forEach(function (element) {
      var own = Array.from(element.childNodes).some(function (n) { return n.nodeType === 3 && n.data.trim(); });
      if (!own || /^(title|desc|style|script)$/i.test(element.tagName) || !visible(element)) return;
      var style = getComputedStyle(element), size = parseFloat(style.fontSize), colour = style.color;
      if (element instanceof SVGElement) {
        var m = element.getScreenCTM();
        size *= Math.hypot(m.a, m.b);
        colour = style.fill;
      }
      // Text in a cell of a heat map comes behind the cell.
      var behind = element.matches(".in") ? rgb(getComputedStyle(element.previousElementSibling).fill) : ground(element);
      var ratio = contrast(rgb(colour), behind);
      if (size < least.size) { least.size = size; least.smallest = element.textContent.trim(); }
      if (ratio < least.contrast) { least.contrast = ratio; least.faintest = element.textContent.trim(); }
    });
    return least;
  }

  // Pairs of labels of a drawing that lie on each other. Slanted ones have boxes that do so by nature.
  function collisions(svg) {
    var level = all("text", svg).filter(function (t) { return !t.hasAttribute("transform") && !t.matches(".value"); });
    var found = [];
    level.forEach(function (a, i) {
      level.slice(i + 1).forEach(function (b) {
        var p = a.getBoundingClientRect(), q = b.getBoundingClientRect();
        var across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        var down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (across > 1 && down > 3) found.push(a.textContent + " / " + b.textContent);
      });
    });
    return found;
  }

  function chart(svg) {
    var box = svg.getBoundingClientRect();
    var marks = all(".bar, .dot, .curve, .cell", svg).filter(function (m) {
      var b = m.getBoundingClientRect();
      return b.width + b.height > 0 && b.left >= box.left - 2 && b.right <= box.right + 2;
    });
    var out = all("text", svg).filter(function (t) {
      var b = t.getBoundingClientRect();
      return b.left < box.left - 2 || b.right > box.right + 2;
    });
    var faint = marks.reduce(function (least, mark) {
      var style = getComputedStyle(mark), line = mark.matches(".curve, .dot, .bar");
      return line ? Math.min(least, contrast(rgb(style.stroke), ground(svg))) : least;
    }, 21);
    return {
      marks: marks.length, width: box.width, contrast: faint, says_no_data: /no data/.test(svg.textContent),
      outside: out.map(function (t) { return t.textContent; }), collisions: collisions(svg)
    };
  }

  function figure(element) {
    var first = blobs.length;
    all(".save button", element).forEach(function (button) { button.click(); });
    var files = [];
    for (var i = first; i < blobs.length; i++) {
      files.push({ name: names[i], type: blobs[i].type, text: blobs[i].text });
    }
    var drawn = new DOMParser().parseFromString(files.length ? files[files.length - 1].text : "", "image/svg+xml");
    return {
      charts: all("svg", element).filter(visible).map(chart),
      lines: all("tbody tr", element).length,
      files: files,
      svg: drawn.documentElement.tagName === "svg" && !drawn.querySelector("parsererror")
    };
  }

  addEventListener("load", function () {
    var found = { errors: errors };
    try {
      found.width = innerWidth;
      found.content = document.documentElement.scrollWidth;
      found.dark = matchMedia("(prefers-color-scheme: dark)").matches;
      found.requests = performance.getEntriesByType("resource").map(function (e) { return e.name; });
      found.text = texts();
      found.figures = all("figure").map(figure);
      found.unreachable = all("summary, button, .scroll").filter(visible).filter(function (e) {
        e.focus();
        return document.activeElement !== e;
      }).length;
    } catch (e) {
      errors.push(String(e));
    }
    parent.postMessage(JSON.stringify(found), "*");
  });
})();
