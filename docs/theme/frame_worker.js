// A page that was opened as a file may start no worker: its search runs in a hidden frame instead.
if (location.protocol === "file:") {
  const message = (data) => new MessageEvent("message", { data });
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${url}"><\/script>`;
      this.inside = new Promise((loaded) => {
        frame.addEventListener("load", () => {
          frame.contentWindow.postMessage = (data) => this.dispatchEvent(message(data));
          loaded(frame.contentWindow);
        });
      });
      document.body.append(frame);
    }

    async postMessage(data) {
      (await this.inside).dispatchEvent(message(data));
    }
  };
}
