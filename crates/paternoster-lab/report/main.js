"use strict";
// Makes the page of the data that stand in it.

{
  const data = JSON.parse(document.getElementById("data").textContent);
  const pages = { run: runPage, study: studyPage };
  pages[data.kind](data);
  // At once, so that whoever prints the page when it is loaded has it whole.
  drawings.forEach(({ fit }) => fit());
}
