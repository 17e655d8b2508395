// SPDX-License-Identifier: MIT OR Apache-2.0
document.querySelectorAll("figure").forEach(function (figure) {
  var bar = document.createElement("p");
  var number = figure.id.replace("figure", "");
  function offer(kind, type, make) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "Save " + kind;
    button.setAttribute("aria-label", "Save figure " + number + " as " + kind);
    button.onclick = function () {
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([make()], { type: type }));
      link.download = figure.dataset.file + "." + kind.toLowerCase();
      link.click();
      setTimeout(URL.revokeObjectURL, 60000, link.href);
    };
    bar.appendChild(button);
  }
  bar.className = "save";
  offer("CSV", "text/csv", function () {
    return figure.querySelector("pre").textContent;
  });
  offer("SVG", "image/svg+xml", function () {
    var drawing = figure.querySelector("svg.wide").cloneNode(true);
    var style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = document.getElementById("light").textContent + document.getElementById("chart").textContent;
    drawing.insertBefore(style, drawing.firstChild);
    return new XMLSerializer().serializeToString(drawing);
  });
  figure.querySelector("figcaption").after(bar);
});
