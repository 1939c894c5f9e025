// memlog has gone: whatever would have to ask it can be used no more, and says why. In the page these elements have `data-asks`.
let why = "";

export const whyLost = () => why;

// Since when it does not answer; "": it does again. Elements that come later need another call.
export function setLost(reason) {
  why = reason;
  document.body.classList.toggle("lost", Boolean(why));
  apply();
}

export function apply() {
  for (const element of document.querySelectorAll("[data-asks]")) {
    const isMarked = element.dataset.title !== undefined;
    if (why && !isMarked) {
      element.dataset.title = element.title;
      element.title = why;
      element.disabled = true;
    }
    if (!why && isMarked) {
      element.title = element.dataset.title;
      delete element.dataset.title;
      element.disabled = false;
    }
  }
}
