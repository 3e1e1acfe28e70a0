package v3

import (
	"html/template"
	"time"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

// Pages for a browser that returns from an issuer.
var failedPage = template.Must(template.New("failed").Parse(server.SignInHead + `<h1>You are not signed in</h1><p>{{.Message}}</p>{{with .Remedy}}<p>{{.}}</p>{{end}}<p><a href="{{.SignIn}}">Sign in</a></p></body></html>`))

const approvalScript = `
const said = document.getElementById("said"), ask = document.getElementById("ask");
async function answer(allow) {
  try {
    const r = await fetch("/api/v3/signin/approval", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({approval: ask.dataset.approval, allow: allow})});
    const a = await r.json();
    if (!r.ok) { said.textContent = a.message + " " + (a.remedy || ""); return; }
    ask.hidden = true;
    said.textContent = allow ? "The program is signed in. You can close this page." : "It was refused.";
  } catch { said.textContent = "The server didn't answer. Try again."; }
}
document.getElementById("yes").addEventListener("click", () => answer(true));
document.getElementById("no").addEventListener("click", () => answer(false));
`

var approvalPage = template.Must(template.New("approval").Parse(server.SignInHead + `<h1>Sign in a program</h1><div id="ask" data-approval="{{.Approval}}"><p>A program asks to be signed in as <b>{{.Name}}</b>:</p>
<ul><li>program: <b>{{.Client}}</b></li><li>address: <b>{{.Address}}</b></li><li>begun: <b>{{.Began}}</b></li></ul>
<p>Allow it only if you have just started it yourself. Anyone who sent you a code wants to be signed in as you.</p>
<button id="yes">Sign it in</button> <button id="no">Refuse</button></div><p id="said" role="status"></p><script>{{.Script}}</script></body></html>`))

// explain responds with a page that explains an error.
func explain(c *server.Call, err error) error {
	e := app.Meaning(err)
	return c.Page(e.Status, failedPage, "", map[string]any{"Message": e.Message, "Remedy": e.Remedy, "SignIn": server.SignInPath})
}

// askApproval responds with a page that asks whether a program may sign in. The page is for a person who has returned from an issuer.
func askApproval(c *server.Call, w *app.Waiting) error {
	return c.Page(0, approvalPage, approvalScript, map[string]any{"Approval": w.Approval.Reveal(), "Name": w.Name, "Client": w.Client, "Address": w.Address,
		"Began": w.Began.Format(time.RFC1123), "Script": template.JS(approvalScript)}) //nolint:gosec // it is a constant
}
