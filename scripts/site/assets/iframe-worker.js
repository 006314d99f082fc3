/* The search is a worker, and a page that is opened as a file may start none: an empty frame of the page runs the
 * worker's script then, in its own global object.  It looks for this name in its parent. */
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.scope = frame.contentWindow;
    this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
    this.scope.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
    this.ready = this.load(url);
  }

  load(url) {
    return new Promise((resolve, reject) => {
      const script = this.scope.document.createElement("script");
      script.src = new URL(url, document.baseURI);
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${script.src}`));
      this.scope.document.head.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", {data})));
  }
}

window.IFrameWorker = IFrameWorker;
if (location.protocol === "file:") {
  window.Worker = IFrameWorker;
}
